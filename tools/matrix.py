#!/usr/bin/python3
"""Makes docs/escape-matrix.md of the rows in tests/attack/rows.py and of what became of their tests: ./dev matrix."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "attack")]

from support import host, matrix
import outside
import probes_calls, probes_files, probes_kernel, probes_limits  # they register
import rows

TABLE = ROOT / "docs" / "escape-matrix.md"
HEAD = """# The escape matrix

Every attack that the test suite makes on `brig run` and `brigd`, and its result. `./dev matrix` makes this page from the results of `./dev test`
and `./dev test nightly guests`; changes here are lost.

One or more tests try each row: a program in a real jail attacks, and a process outside judges. **held (n)**: the n tests of the
row passed. **not run**: this host lacks what the test needs, or the test takes minutes under emulation. **RED**: a test failed. Most rows have a
control, the same attack without a jail, on a scratch copy of the host or as a plain user: it must succeed, which shows that the test can fail.
"""


def cell(tests):
    """What became of these tests, in a word or two."""
    if not tests:
        return "not run"
    failed = [name for name, (outcome, _) in tests.items() if outcome == "failed"]
    passed = sum(outcome == "passed" for outcome, _ in tests.values())
    reasons = sorted({reason for outcome, reason in tests.values() if outcome == "skipped"})
    if failed:
        return f"**RED** ({len(failed)} of {len(tests)})"
    words = [f"held ({passed})"] if passed else []
    return "; ".join(words + [f"not run: {reason}" for reason in reasons])


def control_cell(row, results):
    """The control's worth over all hosts, or why there is none."""
    cells = [cell(found[row]["control"]) for found in results.values() if "control" in found.get(row, {})]
    if any("RED" in text for text in cells):
        return "**RED**"
    if any(text.startswith("held") for text in cells):
        return "proved"
    reasons = cells or sorted({probe.why for probe in outside.PROBES if probe.id == row and probe.why})
    return "none: " + "; ".join(reasons)


def table(header, lines):
    yield "| " + " | ".join(header) + " |"
    yield "|---" * len(header) + "|"
    for line in lines:
        yield "| " + " | ".join(str(text).replace("|", "\\|") for text in line) + " |"


def page(results):
    places = sorted(results, reverse=True)
    yield HEAD
    for letter, about in rows.GROUPS.items():
        own = [row for row in rows.ROWS.values() if row.id[0] == letter]
        yield f"## {letter}: {about}\n"
        yield from table(["row", "what must hold", *places, "control"],
                         ([row.id, row.sentence, *(cell(results[place].get(row.id, {}).get("row")) for place in places),
                           control_cell(row.id, results)] for row in own))
        yield ""
    yield "## Limits\n\nWhat rows above find and brig does not prevent.\n"
    yield from table(["row", "limit"], rows.LIMITS.items())
    yield "\n## Not covered\n"
    yield from table(["row", "what would be tried", "why it is not"], rows.UNCOVERED)
    yield "\n## Processes that are taken over\n\nWhat brig-security(7) says of whoever takes over a process, and the tests that act as it.\n"
    yield from table(["process", "what must hold", "tests"], rows.taken_over())


def main():
    results = matrix.known(host.build_dir() / matrix.RESULTS)
    if not results:
        sys.exit("./dev matrix: no results yet; run ./dev test, and ./dev test nightly guests for the other kernel")
    TABLE.write_text("\n".join(page(results)) + "\n")
    red = [row for row in rows.ROWS if any("failed" in str(found.get(row)) for found in results.values())]
    print(f"{TABLE.relative_to(ROOT)}: {len(rows.ROWS)} rows on {len(results)} hosts, {len(red)} red {' '.join(red)}")


main()
