"""I6 once more, natively: each row of the set-up's tables fails, instead of or after doing its work."""
import errno
import os
import subprocess

import pytest

from support import brig, host, tiers

pytestmark = pytest.mark.private("a brig and brigd of its own, built to fail")

FAILS = host.build_dir() / "tests" / "fails" # a brig, and beside it the brigd that fails
ERRNOS = [errno.EPERM, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EINTR]
NO_WAY_BACK = ("become-init", "exec") # have no "after"


def steps():
    """Of the tables as they are built."""
    if not (FAILS / "brig").exists():
        return ["is-built"]
    return subprocess.run([FAILS / "brigd"], env={"BRIG_FAILS": "list"}, capture_output=True, text=True, check=True).stdout.split()


def attempt(order, step, error, how):
    program, *options = order
    own = {"BRIG_PRESETS": str(host.build_dir() / "profiles"), "BRIG_STORE": str(host.store_dir())}
    return subprocess.run([FAILS / "brig", "run", "--timeout", "50", *options, program], capture_output=True, text=True, timeout=host.HANG, stdin=subprocess.DEVNULL,
                          env={**brig.environment(), **own, "BRIG_FAILS": f"{step} {error} {how}"})


def complaint(done, step, error):
    step = step.rpartition(":")[2] # without its table
    if "ran" in done.stdout:
        return "the program ran"
    if step == "exec" and error != errno.EAGAIN: # which is the caller's limit of processes
        return None if done.returncode == 126 and "in the rootfs" in done.stderr else "not what a shell says"
    if done.returncode != 125:
        return "not refused"
    return None if f"step {step}" in done.stderr and os.strerror(error) in done.stderr else "neither step nor reason is named"


@pytest.fixture(scope="module")
def order(jail, tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    (folder / "program.py").write_text("print('ran')\n")
    (folder / "shown").mkdir()
    return folder / "program.py", "--ro", folder / "shown"


@pytest.fixture(scope="module", autouse=True)
def nothing_left_at_the_end(order):
    before = host.Snapshot()
    yield
    assert not before.left_since()


@pytest.mark.row("I6")
@pytest.mark.parametrize("step", steps())
@pytest.mark.parametrize("errors", tiers.few([1, len(ERRNOS)], 1))
@pytest.mark.requirement("B3")
def test_a_step_that_fails_starts_no_program(order, step, errors):
    """With so many errnos instead of its work, with one of them after it."""
    ways = [(error, "instead") for error in ERRNOS[:errors]]
    if step.rpartition(":")[2] not in NO_WAY_BACK:
        ways.append((errno.EPERM, "after"))
    before = host.abandoned_groups()
    for error, how in ways:
        done = attempt(order, step, error, how)
        assert not complaint(done, step, error), f"{complaint(done, step, error)}: {step} {how} {errno.errorcode[error]}: {done}"
    assert host.poll(lambda: not host.abandoned_groups() - before), f"left behind: {host.abandoned_groups() - before}"


@pytest.mark.control("I6")
def test_control_the_program_runs_when_no_step_fails(order):
    done = attempt(order, "no-such-step", errno.EPERM, "instead")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done
