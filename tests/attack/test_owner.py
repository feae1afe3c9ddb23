"""Nothing of a cell belongs to the user namespace of its program: capabilities inside are no power over it."""
import ctypes
import errno
import fcntl
import os

import pytest

from support import host

NS_GET_USERNS = 0xb701 # ioctl_ns(2)
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
OWNED = {"mnt": CLONE_NEWNS, "uts": CLONE_NEWUTS, "ipc": CLONE_NEWIPC, "pid": CLONE_NEWPID, "net": CLONE_NEWNET}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it enters a cell's user namespace")
libc = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def program(start_brig, token):
    """A process of a jail, by its pid."""
    child = start_brig("--timeout", "300", program="print('ready', flush=True)\nimport time; time.sleep(600)", args=[token], json_record=False)
    assert child.line() == "ready", child.wait(1)
    return next(pid for pid, uid in host.with_token(token) if uid >= 65536)


def open_ns(pid, name):
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def answers_inside(program, user, wanted):
    """errno of setns() into each, for a process with all capabilities in that user namespace; 0: it got in."""
    fds = {name: open_ns(program, name) for name in wanted}
    own = open_ns(user, "user") if user else None
    got, put = os.pipe()
    pid = os.fork()
    if pid == 0:
        if own is not None and libc.setns(own, CLONE_NEWUSER) != 0:
            os._exit(1)
        for name, fd in fds.items():
            os.write(put, f"{name} {0 if libc.setns(fd, OWNED[name]) == 0 else ctypes.get_errno()}\n".encode())
        os._exit(0)
    os.close(put)
    with os.fdopen(got) as told:
        lines = told.read().split("\n")
    assert os.waitpid(pid, 0)[1] == 0
    for fd in (*fds.values(), *([own] if own is not None else [])):
        os.close(fd)
    return {line.split()[0]: int(line.split()[1]) for line in lines if line}


@pytest.mark.parametrize("name", [*OWNED, "cgroup"])
def test_a_namespace_of_a_cell_belongs_to_another_user_namespace_than_its_program(program, name):
    fd = open_ns(program, name)
    owner = fcntl.ioctl(fd, NS_GET_USERNS)
    assert os.fstat(owner).st_ino != os.stat(f"/proc/{program}/ns/user").st_ino
    os.close(owner)
    os.close(fd)


def test_all_capabilities_in_a_cells_user_namespace_are_no_power_over_the_cell(program):
    assert answers_inside(program, program, OWNED) == dict.fromkeys(OWNED, errno.EPERM)


def test_control_root_of_the_host_has_that_power(program):
    assert answers_inside(program, None, OWNED) == dict.fromkeys(OWNED, 0)
