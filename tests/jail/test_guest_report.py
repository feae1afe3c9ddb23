"""What the runner reports of a program, and that nothing else is different from `python3 -I main.py`."""
import pytest

from guest_judge import check_report, check_shape, is_refused
from guest_rows import ROWS


# What a cell can run is fast in test_guest_cell.py.
@pytest.mark.parametrize("row", [row if is_refused(row) else pytest.param(row, marks=pytest.mark.nightly) for row in ROWS], ids=[row.name for row in ROWS])
def test_a_program_is_run_and_reported(guest, row):
    done = guest(row.source, imports=row.imports, args=row.args, stdin=row.stdin)
    if row.no_report:
        assert done.text == b""
    else:
        assert len(done.text) <= 1 << 20
        check_shape(done.report)
        check_report(row, done.report, guest.main)
        if row.status is None and done.report["exit_code"] != 130:
            assert done.status == done.report["exit_code"] or done.status == 120
    if row.status is not None:
        assert done.status == row.status, done.err
    if row.out is not None:
        assert done.out == row.out
    if row.err is not None:
        assert done.err == row.err
    assert "/usr/lib/brig" not in done.err
    if row.same:
        plain = guest.plain(row.source, row.args, row.stdin)
        assert (done.status, done.out, done.err) == (plain.status, plain.out, plain.err)
