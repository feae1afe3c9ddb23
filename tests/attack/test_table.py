"""The table of rows is whole: every row has a test, every gate row a control or a reason for having none."""
import re
import pathlib

import outside
import probes_calls, probes_files, probes_kernel, probes_limits  # they register
import rows

HERE = pathlib.Path(__file__).parent
TEXT = "\n".join(p.read_text() for folder in (HERE, HERE.parent / "run", HERE.parent / "service", HERE.parent / "network") for p in sorted(folder.glob("test_*.py")))


def marked(name):
    """Row ids in marks of the other test files, and in their tables of pairs."""
    found = set(re.findall(rf'mark\.{name}\("(\w+)"\)', TEXT))
    if f"mark.{name}(r)" in TEXT:
        found |= set(re.findall(r'^    "([A-I]\d+)": \("', TEXT, re.M))
    return found


def with_probe():
    return {p.id for p in outside.PROBES}


def with_control():
    return {p.id for p in outside.PROBES if p.free} | marked("control")


def test_the_gate_has_its_40_rows():
    assert len(rows.GATE_ROWS) == 40 and len(rows.ROWS) == len(rows.TABLE)


def test_every_row_has_a_test():
    assert set(rows.ROWS) - with_probe() - marked("row") == set()


def test_every_mark_is_a_row():
    assert (with_probe() | marked("row") | marked("control")) - set(rows.ROWS) == set()


def test_at_least_thirty_gate_rows_have_a_control():
    without = set(rows.GATE_ROWS) - with_control()
    assert len(without) <= 6, f"no control: {sorted(without)}"
    reasons = {p.id for p in outside.PROBES if p.why}
    assert without <= reasons, f"neither a control nor a reason: {sorted(without - reasons)}"


# --- the committed page -----------------------------------------------------------------------------------

PAGE_PATH = HERE.parent.parent / "docs" / "escape-matrix.md"
PAGE = PAGE_PATH.read_text() if PAGE_PATH.exists() else ""
LAST = {"A": 23, "B": 19, "C": 12, "D": 13, "E": 21, "F": 13, "G": 14, "H": 8, "I": 14, "J": 10}


def page_rows(*headings):
    """Cells of the tables below headings that begin so."""
    inside = False
    for line in PAGE.splitlines():
        if line.startswith("## "):
            inside = line.startswith(headings)
        elif inside and line.startswith("| ") and not line.startswith(("| row ", "| process |")):
            yield line.strip("| ").split(" | ")


def test_every_class_of_attack_is_a_row_or_has_a_reason_for_being_none():
    ids = [*rows.ROWS, *(row[0] for row in rows.UNCOVERED)]
    assert len(set(ids)) == len(ids), "a row is both covered and not"
    assert set(ids) == {f"{letter}{n}" for letter, last in LAST.items() for n in range(1, last + 1)}
    assert set(rows.LIMITS) <= set(rows.ROWS)


def test_every_row_has_a_control_or_a_reason_for_having_none():
    reasons = {p.id for p in outside.PROBES if p.why}
    assert set(rows.ROWS) - with_control() - reasons == set()


def page_results():
    return list(page_rows(*(f"## {letter}:" for letter in rows.GROUPS)))


def test_the_page_has_the_rows_of_the_table():
    """./dev matrix makes it."""
    assert {(cells[0], cells[1]) for cells in page_results()} == {(r.id, r.sentence) for r in rows.ROWS.values()}
    assert {tuple(cells) for cells in page_rows("## Not covered")} == set(rows.UNCOVERED)
    assert {tuple(cells) for cells in page_rows("## Limits")} == set(rows.LIMITS.items())


def test_every_process_that_may_be_taken_over_has_tests_and_is_on_the_page():
    assert list(page_rows("## Processes that are taken over")) == rows.taken_over()
    for test in {test for *_, tests in rows.TAKEN_OVER for test in tests.split()}:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (HERE.parent / file).read_text() if name else (HERE.parent / file).exists(), test


def test_every_process_that_the_manual_gives_to_an_attacker_has_tests_and_no_other():
    """brig-security(7) says what is gained with each; "process 1 of a cell, or the program" are two of them."""
    page = (HERE.parent.parent / "man" / "brig-security.7.in").read_text()
    section = page.partition(".Ss A process that was taken over\n")[2].partition("\n.Ss ")[0]
    heads = [re.sub(r" ?,|\bSy ", "", line) for line in re.findall(r"^\.It Sy (.*)$", section, re.M)]
    named = [re.sub(r"^(the|a) ", "", name) for head in heads for name in head.split(" or ")]
    have = {process for process, *_ in rows.TAKEN_OVER}
    assert len(named) > 10 and {name for name in named if not any(name.startswith(process) for process in have)} == set()
    assert {process for process in have if not any(name.startswith(process) for name in named)} == set()


def test_no_row_of_the_page_is_red_without_a_word():
    assert [cells[0] for cells in page_results() if "RED" in str(cells) and cells[0] not in rows.LIMITS] == []


def test_the_page_names_no_path_of_a_machine():

    assert not [word for word in (str(HERE.parent.parent), "/tmp/", "/root", "/home") if word in PAGE]
