"""Fixtures of the escape suite: the host must be the same afterwards."""
import secrets
import subprocess

import pytest

import outside
from support import host


@pytest.fixture
def token():
    """Names a program among all processes of the host."""
    return f"token-{secrets.token_hex(6)}"


@pytest.fixture
def bystander():
    """A process of the host that no jail may harm."""
    child = subprocess.Popen(["sleep", "600"])
    yield child
    alive = child.poll() is None
    child.kill()
    child.wait()
    assert alive, "a process of the host was killed"


@pytest.fixture
def nothing_left(token):
    """No process with the token, and no control group, mount or file that was not there before."""
    before = host.Snapshot()
    yield
    left = before.left_since()
    assert not host.with_token(token), f"still running: {host.with_token(token)}"
    assert not left, f"left behind: {left}"


@pytest.fixture
def free_python(needs_root, tmp_path):
    """Runs a program on a scratch copy of this host as root: free_python(text, *args) -> CompletedProcess."""
    if host.lacks("overlay"):
        pytest.skip(host.lacks("overlay"))

    def run(text, *args, **kw):
        folder = tmp_path / "scratch"
        folder.mkdir(exist_ok=True)
        argv = outside.scratch_command(folder, f"{host.PYTHON} -I -", *args)
        return subprocess.run(argv, input=text, text=True, capture_output=True, timeout=host.HANG, **kw)
    return run
