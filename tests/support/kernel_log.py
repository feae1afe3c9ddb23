"""The kernel's log, which is one for the whole machine: a test that reads it is marked `alone`."""
import errno
import os

import pytest

MEMORY = ("oom", "out of memory", "tasks state", "call trace")
CRASHES = ("segfault", "traps:", "Code:", "audit", "seccomp", "callbacks suppressed") # and refusals, and kills of other kinds
ANY = ("",)


def lacks():
    """None when the log can be read, else the reason to print for a skip."""
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as e:
        return f"needs to read /dev/kmsg: {e.strerror}"
    return None


class KernelLog:
    """Lines from now on that have one of these words."""

    def __init__(self, words):
        if lacks():
            pytest.skip(lacks())
        self.words = [word.lower() for word in words]
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self.fd, 0, os.SEEK_END)

    def lines(self):
        found = []
        while True:
            try:
                line = os.read(self.fd, 8192).decode(errors="replace")
            except BlockingIOError:
                return found
            except OSError as e:
                if e.errno != errno.EPIPE:
                    raise
                found.append("the log went round: what was overwritten counts as one")
                continue
            if any(word in line.lower() for word in self.words) and "is deprecated" not in line:
                found.append(line)

    def close(self):
        os.close(self.fd)
