"""The tests of every tier that is run often, once more with runs that begin in each way: tests/support/runs.py."""
import os
import subprocess
import sys

import pytest

from support import host, runs


@pytest.mark.long(seconds=7200)
@pytest.mark.parametrize("way", runs.KEYS)
def test_the_tests_succeed_whichever_way_runs_begin(way):
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "tests"], cwd=host.REPO, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env={**os.environ, "BRIG_TEST_RUNS": way})
    assert done.returncode == 0, done.stdout[-10000:]
    assert "\nruns: " in done.stdout, done.stdout[-3000:]
