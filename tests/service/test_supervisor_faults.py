"""A call of a supervisor fails for a while: what is left of that when it works again."""
import os
import pathlib
import signal

import pytest

from support import client, host, tiers, warm_load
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


V1, V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")


def cells_group(daemon):
    """The memory group above those of all cells."""
    with daemon.connect() as talk:
        run = talk.start("import time; print('on', flush=True); time.sleep(60)")
        assert run.line() == "on"
        init, = daemon.of_kind("init")
        group = next(path for path in map(pathlib.Path, host.groups_of(init, "memory")) if list(path.glob("memory.*")))
        talk.ask("cancel", run=run.id)
        run.wait()
    return group.parent


@pytest.mark.parametrize("kib", tiers.few([4, 16, 64, 256, 1024, 2048, 4096, 8192], 4, 256, 2048))
def test_a_cell_that_has_no_memory_for_its_set_up_ends_alone(service, kib):
    """PID 1 shares the supervisor's memory while it builds the cell: the kernel must not kill both."""
    group, before = cells_group(service), service.one("supervisor")
    limit, used = [group / name for name in (V2 if (group / "memory.max").exists() else V1)]
    usual = limit.read_text()
    limit.write_text(str(int(used.read_text()) + (kib << 10)))
    reasons = {reason(service) for _ in range(5)}
    limit.write_text("max" if usual == "max\n" else "-1")
    assert reasons <= {"oom", "setup_failed", "exited"} and (kib > 64 or "exited" not in reasons), reasons
    assert reason(service) == "exited" and service.one("supervisor") == before, service.words()


def test_a_slow_step_of_a_cell_makes_only_runs_of_its_profile_wait(service, tmp_path):
    """The supervisor waits for PID 1 until it has become brig-init."""
    assert service.run("print(1)", profile="basic").status == 0
    log = tmp_path / "log"
    with service.connect() as talk, Traced(service.one("supervisor"), log, "-e", "trace=pivot_root", "-e", "inject=pivot_root:delay_enter=3s"):
        tag = talk.begin("exec", argv=["true"])
        assert host.poll(lambda: "pivot_root" in host.read(log))
        assert service.run("print(2)", profile="strict").stdout == "2\n"
        assert "resumed" not in host.read(log) and ") = 0" not in host.read(log), "the step was over before the other run"
        assert talk.started(tag).finish().status == 0
