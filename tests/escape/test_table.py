"""The table of rows is whole: every row has a test, every gate row a control or a reason for having none."""
import re
import pathlib

import outside
import probes_calls, probes_files, probes_kernel, probes_limits  # they register
import rows

HERE = pathlib.Path(__file__).parent
TEXT = "\n".join(p.read_text() for folder in (HERE, HERE.parent / "cli") for p in sorted(folder.glob("test_*.py")))


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


def test_the_gate_has_its_36_rows():
    assert len(rows.GATE_ROWS) == 36 and len(rows.ROWS) == len(rows.TABLE)


def test_every_row_has_a_test():
    assert set(rows.ROWS) - with_probe() - marked("row") == set()


def test_every_mark_is_a_row():
    assert (with_probe() | marked("row") | marked("control")) - set(rows.ROWS) == set()


def test_at_least_thirty_gate_rows_have_a_control():
    without = set(rows.GATE_ROWS) - with_control()
    assert len(without) <= 6, f"no control: {sorted(without)}"
    reasons = {p.id for p in outside.PROBES if p.why}
    assert without <= reasons, f"neither a control nor a reason: {sorted(without - reasons)}"
