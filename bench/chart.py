"""chart - from docs/benchmarks.md: the five rows of the README, and the chart beside them

usage: bench/chart.py        writes both; `./dev bench warm --table` does it after it has written docs/benchmarks.md
"""
import pathlib
import re

REPO = pathlib.Path(__file__).resolve().parents[1]
PAGE, README, CHART = REPO / "docs/benchmarks.md", REPO / "README.md", REPO / "docs/images/speed.svg"
MARKS = "<!-- from docs/benchmarks.md: begin -->", "<!-- from docs/benchmarks.md: end -->"
WHOLE = "print(1), whole process: "
ROWS = [ # as the page has it, as the README has it
    (WHOLE + "brig run, ready fork", "`brig run`, a service with ready cells"),
    (WHOLE + "brig run, fork on demand", "`brig run`, a service that forks on demand"),
    (WHOLE + "brig run, cold", "`brig run`, a new Python"),
    (WHOLE + "bwrap + seccomp", "bubblewrap with a system call filter"),
    (WHOLE + "runc", "runc"),
]
BARS = [*ROWS[:3], (WHOLE + "bare python3 -I -S", "python3 without a jail"), *ROWS[3:4], (WHOLE + "firejail", "firejail"), ROWS[4]]

WIDTH, LEFT, RIGHT, LINE, BAR = 720, 290, 90, 30, 18
STYLE = """text { font: 14px system-ui, sans-serif; fill: #24292f } .ours { fill: #1f6feb } .theirs { fill: #8c959f }
  @media (prefers-color-scheme: dark) { text { fill: #d0d7de } .ours { fill: #58a6ff } .theirs { fill: #6e7681 } }"""


def table(page):
    """{row: its cells} of the page's tables."""
    lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[1:] for cells in lines}


def readme_rows(rows):
    out = ["| `print(1)`, whole process, ms | median | p95 | times as fast as bubblewrap |", "|---|---:|---:|---:|"]
    for name, words in ROWS:
        if name not in rows:
            continue
        p50, p95, _, _, ratio = rows[name][:5]
        out.append(f"| {words} | {float(p50):.1f} | {float(p95):.1f} | {ratio} |")
    return "\n".join(out)


def svg(rows):
    bars = [(words.replace("`", ""), float(rows[name][0])) for name, words in BARS if name in rows]
    most, height = max(ms for _, ms in bars), LINE * len(bars) + 16
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="milliseconds of print(1), whole process">',
           f"  <style>{STYLE}</style>"]
    for i, (words, ms) in enumerate(bars):
        y = 8 + i * LINE
        long = max(2, round((WIDTH - LEFT - RIGHT) * ms / most))
        out += [f'  <text x="{LEFT - 12}" y="{y + 15}" text-anchor="end">{words}</text>',
                f'  <rect class="{"ours" if words.startswith("brig") else "theirs"}" x="{LEFT}" y="{y + 1}" width="{long}" height="{BAR}" rx="2"/>',
                f'  <text x="{LEFT + long + 8}" y="{y + 15}">{ms:.1f} ms</text>']
    return "\n".join([*out, "</svg>", ""])


def fill(readme, rows):
    before, rest = readme.split(MARKS[0])
    return f"{before}{MARKS[0]}\n{readme_rows(rows)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def update():
    rows = table(PAGE.read_text())
    CHART.write_text(svg(rows))
    README.write_text(fill(README.read_text(), rows))


if __name__ == "__main__":
    update()
