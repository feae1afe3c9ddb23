"""Prints by how much tests wait longer on this machine, from 1 to 10: one that is virtualised in software starts a process in four times the time."""
import os
import time

USUAL = 0.0008 # seconds: a process of a small program, from its start to its end, on a machine of its own
ROUNDS, EACH = 5, 20


def one_round():
    began = time.monotonic()
    for _ in range(EACH):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    return (time.monotonic() - began) / EACH


if __name__ == "__main__":
    print(min(max(round(min(one_round() for _ in range(ROUNDS)) / USUAL), 1), 10))
