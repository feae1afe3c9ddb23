"""What ./dev test --warm, --ready and --cold promise of the runs of a session (tests/support/runs.py)."""
import pytest

from support import brig as brig_tool
from support import runs, warm_load


def test_runs_of_a_service_begin_as_the_session_wants(daemon):
    if runs.are_warm():
        assert warm_load.is_warm_again(daemon), daemon.words()
    record = daemon.run("print(1)").record
    assert record["warm"] is runs.are_warm() or not runs.mode(), record


def test_runs_of_brig_go_where_they_can_be_warm(jail, tmp_path):
    run = brig_tool.run(program="print(1)", folder=tmp_path)
    assert run.out == "1\n" and run.record["warm"] is runs.are_warm(), run


@pytest.mark.private("it is what the mark does")
def test_a_private_brigd_stays_one(jail, tmp_path):
    assert brig_tool.run(program="print(1)", folder=tmp_path).record["warm"] is False
