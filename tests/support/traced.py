"""A process of a test under strace, which may delay or fail its calls."""
import subprocess

import pytest

from support import host


class Traced:
    """A process and what it forks meanwhile. log: a path that strace writes."""

    def __init__(self, pid, log, *options):
        if host.lacks("tool:strace"):
            pytest.skip(host.lacks("tool:strace"))
        self.log = log
        self.strace = subprocess.Popen(["strace", "-f", "-y", "-s", "200", "-o", log, *options, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        line = self.strace.stderr.readline()
        assert "attached" in line, line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.strace.terminate()
        self.strace.stderr.read()
        self.strace.wait()
