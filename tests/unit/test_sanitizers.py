"""The unit tests once more, under AddressSanitizer and UBSan."""
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.gate

TESTS = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("test_*.c"))


@pytest.mark.parametrize("name", TESTS)
def test_unit_test_under_asan_and_ubsan(asan_build, name):
    done = subprocess.run([asan_build / "tests" / name], capture_output=True, text=True, errors="replace")
    failed = [line for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert (done.returncode, failed) == (0, []), done.stdout[-1000:] + done.stderr[-4000:]
