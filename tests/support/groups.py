"""Where in the control groups things live, as the host sees it."""
import os

from support import brig, host

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
GROW = "keep = []\nfor n in range(160): keep.append(bytearray(1 << 20))\nprint('survived')"


def group_of(pid):
    """The v2 group of a process."""
    return next(line[3:].strip() for line in host.read(f"/proc/{pid}/cgroup").splitlines() if line.startswith("0::"))


def cell_of(token):
    """The group of the program with this token among its arguments."""
    def cells():
        return [group for pid, _ in host.with_token(token) for group in [host.read(f"/proc/{pid}/cgroup")] if "/cell-" in group]
    found = host.poll(cells)
    assert found, f"no program runs in a cell: {host.with_token(token)}"
    return found[0].strip()[len("0::"):]


def start(program, *options, through=(), args=(), folder):
    """brig run, started by another program; systemd-run --user finds its bus by the runtime directory."""
    argv = [*map(str, through), *brig.command(*options, program=program, args=args, folder=folder)]
    return brig.Child(argv, env={"XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR")})
