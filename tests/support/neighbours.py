"""docs/neighbours.md: what honest runs and a process of the host get beside each bomb of tests/attack, from the reports of its tests."""
import json
import statistics

from support import host, longlog

PAGE = host.REPO / "docs" / "neighbours.md"
PROPERTY = "neighbours" # of a test's report: a row, as a dict
QUIET, SPIN = "quiet", "spin"
TOO_MUCH = 3 # times what a bomb costs that only computes
FIGURES = [("p50", "honest", 0), ("p99", "honest", 1), ("longest", "honest", 2), ("gap p50", "host", 0), ("gap p99", "host", 1), ("longest gap", "host", 2)]
RATIOS = [("p99", "honest", 1), ("longest gap", "host", 2)] # each to quiet and to spin
HEAD = """# Honest runs beside bombs

Made by `./dev test neighbours`; changes here are lost. Milliseconds. Each row is {seconds:g} seconds of a service of its own with default settings, in which run:

- **a bomb**: two runs at once, each with the limits of `basic` (one CPU, 64 processes, 256 MB), which do what the row says. A bomb that ends
  is started again. If the bomb is a client, it is two processes, which no jail limits.
- **honest runs**: another user runs `print(1)`, one run after the other; the figure is the time from the request to the record.
- **a process of the host**, which sleeps for a millisecond again and again; the figure (gap) is the time from one wake-up to the next.

`{quiet}` is without a bomb, `{spin}` the bomb that only computes: each was measured {times} times in between, and the ratios are to the middle
figure. **Bold** is more than {much} times what `{spin}` costs. The longest of a few thousand times varies by itself:
ratios of p99 say more. "Rounds" is how often the bomb's first process repeated its work; "kernel's log", how many lines were added
to it. The tests assert that honest runs ended as they should, and that nothing was left behind; they do not assert how fast the runs were.
"""


def report(run):
    """What a bomb says of itself at its end."""
    assert run.status == 0 and run.out, str(run)
    return json.loads(run.out.splitlines()[-1])


def usual(rows, name, kind, place):
    """The middle figure of a row that was measured several times; None where it was not."""
    found = [row[kind][place] for row in rows if row["name"] == name]
    return statistics.median(found) if found else None


def ratio(rows, row, name, kind, place):
    base = usual(rows, name, kind, place)
    return row[kind][place] / base if base else None


def ratio_cell(rows, row, name, kind, place):
    found = ratio(rows, row, name, kind, place)
    text = "" if found is None else f"{found:.1f}"
    return f"**{text}**" if found and name == SPIN and found > TOO_MUCH else text


def table(rows):
    """Lines of Markdown, in columns."""
    heads = ["", *(f"run {head}" if kind == "honest" else head for head, kind, _ in FIGURES)]
    heads += [f"{head} / {name}" for head, _, _ in RATIOS for name in (QUIET, SPIN)] + ["honest runs", "bomb's rounds", "kernel's log", "bomb's ends"]
    cells = [heads]
    for row in rows:
        ends = ", ".join(f"{end} {times}" for end, times in sorted(row["ends"].items()))
        cells.append([row["name"], *(f"{row[kind][place]:.2f}" for _, kind, place in FIGURES),
                      *(ratio_cell(rows, row, name, kind, place) for _, kind, place in RATIOS for name in (QUIET, SPIN)),
                      str(row["runs"]), str(row["rounds"] or ""), "" if row["log"] is None else str(row["log"]), ends])
    widths = [max(map(len, column)) for column in zip(*cells)]
    rule = ["-" * width if n in (0, len(widths) - 1) else "-" * (width - 1) + ":" for n, width in enumerate(widths)]
    for line in [cells[0], rule, *cells[1:]]:
        yield "| " + " | ".join(cell.ljust(width) if n in (0, len(widths) - 1) else cell.rjust(width) for n, (cell, width) in enumerate(zip(line, widths))) + " |"


def page(rows, busy):
    yield HEAD.format(seconds=rows[0]["seconds"], quiet=QUIET, spin=SPIN, times=sum(row["name"] == QUIET for row in rows), much=TOO_MUCH)
    yield from (f"    {line}" for line in longlog.HEADING)
    if busy:
        yield f"\nThe machine was busy with something else (up to {busy:.0%} of its CPU time, before rows of `{QUIET}`): not worth quoting."
    yield ""
    yield from table(rows)
    yield "\n## What each does\n"
    yield from (f"- **{name}**: {about}" for name, about in dict.fromkeys((row["name"], row["about"]) for row in rows))


class Table:
    """Rows travel in the reports. The table is shown at the end, and when it is whole the page is written."""

    def __init__(self):
        self.rows = []

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.rows += [row for name, row in report.user_properties if name == PROPERTY]

    def pytest_terminal_summary(self, terminalreporter):
        if not self.rows:
            return
        terminalreporter.section("neighbours, ms")
        for line in table(self.rows):
            terminalreporter.write_line(line)
        if len(self.rows) == self.rows[0]["of"]:
            PAGE.write_text("\n".join(page(self.rows, max(row["busy"] for row in self.rows))) + "\n")
            terminalreporter.write_line(f"written to {PAGE.relative_to(host.REPO)}")
