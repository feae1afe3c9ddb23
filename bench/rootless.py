#!/usr/bin/python3
"""What one run costs a plain user, with a range of ids and with his own only, against root's and against bwrap as the same user.

usage: bench/rootless.py [--rounds N]
"""
import argparse
import pathlib
import sys
import tempfile

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))
from support import host, users

COMMANDS = {"print(1)": ["/usr/bin/python3", "-I", "-c", "print(1)"], "/bin/true": ["/bin/true"]}
SAME = "what each is started by - nsenter, setpriv, env - is counted for all"


def candidates(world, command):
    """All become who they are by the same three programs."""
    brig = [world.binary, "exec", "--", *command]
    bwrap = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", world.root / "rootfs", "/", "--proc", "/proc", "--dev", "/dev",
             "--tmpfs", "/tmp", "--", *command]
    rows = [("brig, root", users.User("root", 0), brig), ("brig, range", users.PLAIN, brig), ("brig, one id", users.BARE, brig),
            ("bwrap", users.BARE, bwrap)]
    for name, user, argv in rows:
        yield lib.Candidate(name, [str(word) for word in world.as_user(user, *argv)])


def succeeds(candidate, scratch):
    """Not by its words: brig says on stderr what a user has not."""
    _, status = lib.once(candidate, 0, str(scratch / "output"))
    if status:
        print(f"left out: {candidate.name}: status {status}, said: {(scratch / 'output').read_text(errors='replace')[:300]}")
    return status == 0


def measure(world, title, rounds, scratch):
    found = [c for c in candidates(world, COMMANDS[title]) if succeeds(c, scratch)]
    lib.interleave(found, rounds)
    print(f"\n{title}, {rounds} interleaved rounds; {SAME}\n")
    lib.table(found, ["brig, root", "bwrap"])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=lib.count, default=100)
    options = parser.parse_args()
    lib.look_whether_busy()
    world = users.World()
    try:
        tree = (host.store_dir() / "names" / "basic").resolve() / "tree"
        world.change(f"mkdir {world.root}/rootfs; mount --bind {tree} {world.root}/rootfs")
        with tempfile.TemporaryDirectory(prefix="brig-bench-") as scratch:
            for title in COMMANDS:
                measure(world, title, options.rounds, pathlib.Path(scratch))
    finally:
        world.close()


main()
