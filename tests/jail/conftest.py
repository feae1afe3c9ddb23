"""The guest runner outside of a jail: under the host's Python, with a pipe where brigd puts one."""
import json
import os
import pathlib
import subprocess
import threading

import pytest

from support import daemon
from support.host import HANG

REPO = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"


class Done:
    """status, out and err as of a process; text is what came over the report's pipe."""

    def __init__(self, status, out, err, text):
        self.status, self.out, self.err, self.text = status, out, err, text

    @property
    def report(self):
        return json.loads(self.text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


class Guest:
    def __init__(self, pyc, folder):
        self.pyc, self.folder = pyc, folder
        self.main = folder / "main.py"

    def write(self, source):
        self.main.write_bytes(source.encode() if isinstance(source, str) else source)

    def start(self, argv, stdin, pass_fds=()):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        done = subprocess.run([PYTHON, "-I", *argv], cwd=self.folder, env=env, input=stdin.encode(), capture_output=True, pass_fds=pass_fds, timeout=HANG)
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def plain(self, source, args=(), stdin=""):
        self.write(source)
        return Done(*self.start(["main.py", *args], stdin), None)

    def __call__(self, source, mode="report-written", imports="*", modules="*", calls="", args=(), stdin=""):
        self.write(source)
        reading, writing = os.pipe()
        pieces = []

        def read():
            with os.fdopen(reading, "rb") as pipe:
                pieces.append(pipe.read())
        reader = threading.Thread(target=read)
        reader.start()
        try:
            ended = self.start([self.pyc, mode, str(writing), imports, modules, calls, "--", *args], stdin, [writing])
        finally:
            os.close(writing)
            reader.join()
        return Done(*ended, pieces[0])

    def check(self, source, imports="*", modules="*", calls=""):
        return self(source, "check", imports, modules, calls).report


@pytest.fixture(scope="session")
def pyc(tmp_path_factory):
    path = tmp_path_factory.mktemp("guest") / "guest.pyc"
    subprocess.run([PYTHON, "-I", "-S", "-B", REPO / "jail/guest/pack.py", path], check=True)
    return path


@pytest.fixture
def guest(pyc, tmp_path):
    return Guest(pyc, tmp_path)


@pytest.fixture(scope="module")
def service(jail):
    lack = daemon.lacks_binaries("brigd", "monitor")
    if lack:
        pytest.fail(lack)
    with daemon.Daemon(None) as service:
        yield service
