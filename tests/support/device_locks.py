"""Locks on device nodes: a program that takes them, and whether the host meets them."""
import fcntl

DEVICES = [f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")]

# A program that has them all goes on.
TAKE = f"""
import fcntl
got = 0
for path in {DEVICES}:
    for mode, take in ("r+b", fcntl.flock), ("r+b", fcntl.lockf):
        try:
            file = open(path, mode, buffering=0)
            take(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError: continue
        globals()[f"kept_{{got}}"] = file
        got += 1
assert got == {2 * len(DEVICES)}, got
"""


def met_on_host():
    """Devices of the host that another process has locked."""
    met = []
    for path in DEVICES:
        for take in fcntl.flock, fcntl.lockf:
            with open(path, "r+b", buffering=0) as file:
                try:
                    take(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    met.append(f"{path}: {take.__name__}")
    return met
