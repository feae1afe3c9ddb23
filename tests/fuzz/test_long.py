"""An hour of new bytes for every parser: ./dev test long. Figures go to docs/long-run.log. BRIG_FUZZ_SECONDS is for another time."""
import os
import pathlib
import re
import resource
import subprocess

import pytest

from support import host, longlog

TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in pathlib.Path(__file__).parent.glob("fuzz_*.c"))
SECONDS = int(os.environ.get("BRIG_FUZZ_SECONDS", "3600"))


@pytest.fixture(scope="module")
def figures():
    """Lines of the log; those of targets that were reached."""
    lines = [f"{'target':12} {'executions':>12} {'wall s':>7} {'CPU s':>7} {'edges':>6}  findings"]
    yield lines
    longlog.write("fuzzing", lines)


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last(pattern, text):
    found = re.findall(pattern, text)
    return found[-1] if found else "?"


@pytest.mark.long(seconds=SECONDS + 1800) # the first one builds, and what reads a large corpus does not look at the clock
@pytest.mark.parametrize("target", TARGETS)
def test_an_hour_breaks_no_promise(target, figures):
    before = cpu_seconds()
    done = subprocess.run(["./dev", "fuzz", target], cwd=host.REPO, env={**os.environ, "FUZZ_SECONDS": str(SECONDS)},
                          capture_output=True, text=True, errors="replace")
    figures.append(f"{target:12} {last(r'number_of_executed_units: *([0-9]+)', done.stderr):>12} {SECONDS:7} {cpu_seconds() - before:7.0f} "
                   f"{last(r' cov: ([0-9]+)', done.stderr):>6}  {last(r'promise broken: .*|SUMMARY: .*', done.stderr) if done.returncode else 'none'}")
    assert done.returncode == 0, done.stderr[-4000:]
