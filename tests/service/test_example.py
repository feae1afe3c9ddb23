"""The client in brig-protocol(7) is a whole one: what it needs to know is on the page."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES_MAX = 70


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    page = (ROOT / "man/brig-protocol.7.in").read_text()
    path = tmp_path_factory.mktemp("example") / "client.py"
    path.write_text(re.search(r"^\.Bd -literal\n(#!/usr/bin/python3\n.*?)^\.Ed$", page, re.M | re.S)[1])
    return path


@pytest.fixture
def run_example(example, daemon, tmp_path):
    def run(program, *args):
        path = tmp_path / "program.py"
        path.write_text(program)
        return subprocess.run([sys.executable, example, path, *args], env={**os.environ, "BRIG_SOCKET": str(daemon.path)},
                              capture_output=True, text=True, timeout=host.HANG)
    return run


def test_it_is_short_enough_to_be_read(example):
    assert len(example.read_text().splitlines()) <= LINES_MAX


def test_it_passes_arguments_streams_and_the_status_on(run_example):
    done = run_example("import sys; print(sys.argv[1]); print('no', file=sys.stderr); sys.exit(3)", "yes")
    assert (done.returncode, done.stdout) == (3, "yes\n"), done
    assert re.fullmatch(r"no\nexited [\d.]+ ms\n", done.stderr), done


def test_it_ends_a_program_that_writes_without_end(run_example):
    done = run_example("while True: print('x' * 10000)")
    assert done.stderr.startswith("output_limit") and len(done.stdout) == 1 << 20, done.stderr


def test_it_says_why_a_request_was_refused(run_example):
    done = run_example("'\0'")
    assert done.returncode == 1 and done.stderr == "has a NUL byte; a Python program is text\n", done
