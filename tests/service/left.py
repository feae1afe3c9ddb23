"""What a daemon must not leave behind while it lives on, with cells that wait and other daemons beside it."""
import os

from support import daemon as daemons
from support import host


def ancestors(pid):
    while pid > 1:
        yield pid
        stat = host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        pid = int(stat[1]) if stat else 0


def orphans():
    """Processes of cells that are below no living daemon or brig: nobody will end them. The dead wait for the host's first process only."""
    ours = ("server", "monitor", "brig", "launcher")
    return {one for one in host.cell_processes() if is_alive(one[0]) and not any(daemons.kind_of(pid) in ours for pid in ancestors(one[0]))}


def is_alive(pid):
    state = host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(state) and state[0] not in "ZX"


def files_of_cells(folder):
    for entry in os.scandir(folder):
        try:
            if entry.stat(follow_symlinks=False).st_uid >= 65536:
                yield entry.path
        except OSError:
            pass


class Snapshot(host.Snapshot):
    """A cell that waits has a process, a group, a slot; they count when nobody holds them. Of the store, only the top: kills take hundreds."""

    @staticmethod
    def take():
        return {
            "mount": {line.split(" ", 3)[-1] for line in host.read("/proc/self/mountinfo").splitlines()},
            "cgroup": host.abandoned_groups(), "process": orphans(),
            "store": {str(path) for path in host.store_dir().glob("*/*")},
            "tmp": {path for place in ("/tmp", "/dev/shm") for path in files_of_cells(place)},
        }


def wrong(before, token=None):
    """None when nothing is left in the end, else a sentence."""
    if token and not host.poll(lambda: not host.with_token(token)):
        return f"these run on: {host.with_token(token)}"
    left = before.left_since()
    return f"left behind: {left}" if left else None
