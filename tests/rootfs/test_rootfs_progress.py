"""What a build shows of itself while it goes on."""
import os
import pty
import re
import subprocess

import pytest

from builder import BINARY
from support import host


@pytest.mark.nightly
def test_a_terminal_sees_which_stage_goes_on_and_a_pipe_only_those_that_are_over(recipe, tmp_path):
    words = [BINARY, "build", recipe(), "--store", tmp_path / "store"]
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
        os.close(slave)
        shown = b""
        try:
            while more := screen.read(65536):
                shown += more
        except OSError: # EIO: no process has the other side any more
            pass
        assert child.wait(timeout=host.HANG) == 0, shown
    assert re.search(rb"\r  unpack +1 s   stage 1 of \d+\x1b\[K.*\r\x1b\[K  unpack +\d+\.\d s\r\n", shown, re.S), shown
    quiet = subprocess.run([*words, "--force"], capture_output=True, text=True)
    assert quiet.returncode == 0 and "stage" not in quiet.stderr and "\r" not in quiet.stderr and re.search(r"^  unpack +\d+\.\d s$", quiet.stderr, re.M)
