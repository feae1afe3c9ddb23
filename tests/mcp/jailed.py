"""The processes of a cell, seen from outside: the arguments of a program name them."""
import os
import pathlib
import signal
import uuid

from support import host


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


def wait_for(mark, seconds=20):
    found = host.poll(lambda: processes(mark), seconds)
    assert found, "the program does not start"
    return found


def gone_within(mark, seconds):
    """True once nothing of it is left; looks every millisecond."""
    return host.poll(lambda: not processes(mark), seconds, every=0.001)


def children(pid):
    """Of all threads of the process."""
    return [int(word) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for word in host.read(path).split()]


def brigd_of(mcp):
    """The private brigd of a server."""
    found = [pid for pid in children(mcp.pid) if "brigd" in host.read(f"/proc/{pid}/cmdline")]
    assert len(found) == 1, found
    return found[0]


def kill(pid):
    os.kill(pid, signal.SIGKILL)
