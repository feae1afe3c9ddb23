"""An hour of new bytes for every parser: ./dev test long (BRIG_FUZZ_SECONDS for another time)."""
import os
import pathlib
import subprocess

import pytest

from support import host

TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in pathlib.Path(__file__).parent.glob("fuzz_*.c"))
SECONDS = int(os.environ.get("BRIG_FUZZ_SECONDS", "3600"))


@pytest.mark.long(seconds=SECONDS + 1800)  # the first one builds, and reading a large corpus does not count for libFuzzer
@pytest.mark.parametrize("target", TARGETS)
def test_an_hour_breaks_no_promise(target):
    done = subprocess.run(["./dev", "fuzz", target], cwd=host.REPO, env={**os.environ, "FUZZ_SECONDS": str(SECONDS)},
                          capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-4000:]
