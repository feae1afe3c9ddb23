"""A call of a supervisor fails for a while: what is left of that when it works again."""
import os
import signal

import pytest

from support import client, host, warm_load
from support import daemon as daemons
from support.traced import Traced


@pytest.fixture
def service(built):
    scratch, profiles = warm_load.only_basic("never")
    with scratch, daemons.Daemon({"ready": 0}, env={"BRIG_PRESETS": str(profiles)}) as daemon:
        yield daemon


def end_supervisor(daemon):
    """The monitor starts another one."""
    before = daemon.one("supervisor")
    os.kill(before, signal.SIGKILL)
    assert host.poll(lambda: not os.path.exists(f"/proc/{before}"))


def reason(daemon):
    with daemon.connect() as talk:
        try:
            return talk.run("print(1)").reason
        except client.NotStarted as e:
            return e.record["exit_reason"]


def test_a_supervisor_that_can_build_no_cell_makes_room_for_one_that_can(service, tmp_path):
    """It failed to begin, for want of memory, say; each of its runs failed, until the service was started again."""
    with Traced(service.one("monitor"), tmp_path / "log", "-e", "trace=mount", "-e", "inject=mount:error=ENOMEM:when=2"):
        end_supervisor(service)
        assert host.poll(lambda: reason(service) == "setup_failed")
    assert host.poll(lambda: reason(service) == "exited"), service.words()


def test_a_tree_that_cannot_be_put_together_is_not_left_mounted(service, tmp_path):
    with Traced(service.one("monitor"), tmp_path / "log", "-e", "trace=move_mount", "-e", "inject=move_mount:error=ENOENT:when=2+2"):
        end_supervisor(service)
        for _ in range(4):
            assert host.poll(lambda: reason(service) == "setup_failed")
        trees = [line for line in host.read(f"/proc/{service.one('supervisor')}/mountinfo").splitlines() if " /tree" in line]
        assert len(trees) <= 1, trees
    assert host.poll(lambda: reason(service) == "exited"), service.words()
