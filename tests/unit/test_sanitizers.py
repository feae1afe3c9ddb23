"""The unit tests once more, under AddressSanitizer and UBSan."""
import pathlib
import shutil
import subprocess

import pytest

from support import host

BUILD = host.REPO / "build" / "asan"
TESTS = sorted(path.stem for path in pathlib.Path(__file__).parent.glob("test_*.c"))


@pytest.fixture(scope="module")
def asan_build():
    """Builds the asan preset; a few seconds when nothing changed."""
    for tool in ("cmake", "ninja"):
        if not shutil.which(tool):
            pytest.skip(f"needs the program {tool}")
    for argv in (["cmake", "--preset", "asan", "-G", "Ninja"], ["cmake", "--build", BUILD]):
        done = subprocess.run(argv, cwd=host.REPO, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return BUILD


@pytest.mark.parametrize("name", TESTS)
def test_unit_test_under_asan_and_ubsan(asan_build, name):
    done = subprocess.run([asan_build / "tests" / name], capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-4000:]
