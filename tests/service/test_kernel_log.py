"""What the runs of a service leave in the kernel's log."""
import pytest

from rules import MANY
from support import kernel_log

pytestmark = pytest.mark.alone("reads the kernel's log, which is one for the whole machine")


@pytest.mark.parametrize("cold", [True, False], ids=["cold", "warm"])
def test_a_run_that_is_ended_for_its_memory_leaves_no_line(start_daemon, cold):
    daemon, log = start_daemon(MANY), kernel_log.KernelLog(kernel_log.MEMORY)
    try:
        with daemon.connect() as talk:
            for limits in {}, {"memory_bytes": 32 << 20}: # a cell as it stood ready, and one that was changed
                run = talk.run("b = bytearray(300 << 20)", cold=cold, limits=limits)
                assert run.reason == "oom", run
        assert log.lines() == []
    finally:
        log.close()
