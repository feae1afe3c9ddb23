"""A session's files helper outside of a jail: a process of the host's Python, and the client's end of its socket."""
import pathlib
import socket
import subprocess
import sys

import pytest

from support.host import HANG

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "python"))
from brig import files as brig_files  # noqa: E402

PYTHON = "/usr/bin/python3"
HELPER = """
import marshal, sys
names = {"ahead": True, "__builtins__": __builtins__}
with open(sys.argv[1], "rb") as file:
    exec(marshal.loads(file.read()[16:]), names)
names["need"]("context", "session_files")
names["WORKSPACE"] = sys.argv[3]
names["serve_files"](int(sys.argv[2]))
"""


@pytest.fixture
def move(pyc, tmp_path):
    """Moves files in and out of tmp_path, as the client of a session does; returns what was found."""
    def move(files=None, **asked):
        ours, theirs = socket.socketpair()
        helper = subprocess.Popen([PYTHON, "-I", "-c", HELPER, pyc, str(theirs.fileno()), tmp_path], pass_fds=[theirs.fileno()])
        theirs.close()
        transfer = brig_files.Transfer(files, **asked)
        transfer.open(ours.detach())
        transfer.carry_out()
        assert helper.wait(HANG) == 0
        return transfer.taken
    return move


def test_a_module_that_is_put_again_runs_as_it_is_now(move, tmp_path):
    def python(*words):
        return subprocess.run([PYTHON, "-B", *words], cwd=tmp_path, env={}, capture_output=True, text=True, check=True).stdout # where bytecode goes is Python's default
    report = "-c", "import shop.price; print(shop.price.VALUE)"
    move({"shop/price.py": "VALUE = 1\n", "shop/price_list.py": ""})
    # bytecode that is used whatever the time of its source is, as the usual one is within the same second
    python("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "shop")
    assert python(*report) == "1\n"
    move({"shop/price.py": "VALUE = 2\n"})
    assert python(*report) == "2\n" and [path.name.split(".")[0] for path in (tmp_path / "shop/__pycache__").iterdir()] == ["price_list"]


@pytest.mark.parametrize("pattern, fits", [("**/*.csv", "b.csv d/b.csv d/e/c.csv"), ("d/**/c.csv", "d/e/c.csv"), ("**/e", "d/e/c.csv"), ("d/**", "d/b.csv d/e/c.csv"), ("**/e/**/x", ""),
                                           ("./d/", "d/b.csv d/e/c.csv"), ("/workspace/b.csv", "b.csv"), (".", "b.csv d/b.csv d/e/c.csv"), ("d//e", "d/e/c.csv")])
def test_a_pattern_is_a_path_with_any_depth_at_two_stars(move, pattern, fits):
    taken = move({"b.csv": "1", "d/b.csv": "1", "d/e/c.csv": "1"}, get=[pattern])
    assert " ".join(taken.files) == fits and taken.files.left_out == ({} if fits else {pattern: "none"})
