"""The processes of a cell, seen from outside: the arguments of a program name them. Programs that stay until they are killed, or let go."""
import os
import pathlib
import signal
import uuid

from support import host

FOREVER = "import time\nprint('begun', flush=True)\ntime.sleep(600)" # with as long a time limit as there is, it outlives every wait of a test
LONGEST = 300 # seconds: the ceiling of profiles
HELD = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
signal.signal(signal.SIGUSR1, print) # it can be seen from outside that there is a handler
signal.sigwait([signal.SIGUSR1])
""" # and what it does when it was let go


def marker():
    return f"marked-{uuid.uuid4().hex}"


def processes(mark):
    """Of the cell whose program was given this argument."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def wait_for(mark, count=1):
    assert host.poll(lambda: len(processes(mark)) >= count), f"{len(processes(mark))} of {count} programs have started"


def begin(mcp, mark, count=1, **kw):
    """Calls whose programs surely run, and stay."""
    asked = [mcp.begin_call("execute_code", {"code": FOREVER, "args": [mark], "timeout": LONGEST}, **kw) for _ in range(count)]
    wait_for(mark, count)
    return asked


def wait_gone(mark):
    """Until nothing of it is left."""
    assert host.poll(lambda: not processes(mark)), f"{processes(mark)} still run"


def let_go(mark, count=1):
    """So many programs that came to HELD go on."""
    wait_held(mark, count)
    for pid in held(mark):
        os.kill(pid, signal.SIGUSR1)


def wait_held(mark, count=1):
    """Until so many programs came to HELD."""
    assert host.poll(lambda: len(held(mark)) >= count), f"{len(held(mark))} of {count} programs wait"


def held(mark):
    return [pid for pid in processes(mark) if catches(pid, signal.SIGUSR1)]


def catches(pid, number):
    masks = [line.split()[1] for line in host.read(f"/proc/{pid}/status").splitlines() if line.startswith("SigCgt:")]
    return bool(masks) and bool(int(masks[0], 16) >> number - 1 & 1)


def brigd_of(mcp):
    """The private brigd of a server."""
    found = [pid for pid in host.children(mcp.pid) if "brigd" in host.read(f"/proc/{pid}/cmdline")]
    assert len(found) == 1, found
    return found[0]


def kill(pid):
    os.kill(pid, signal.SIGKILL)
