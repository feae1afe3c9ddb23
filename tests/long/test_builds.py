"""Other compilers, optimizations and ways to link: the tree builds without a warning, and the unit tests pass."""
import os
import shutil
import subprocess

import pytest

from support import host

pytestmark = pytest.mark.long
WAYS = [*((compiler, f"-O{level}", "ON") for compiler in ("gcc", "clang") for level in range(4)), ("gcc", "-O2", "OFF"), ("clang", "-O2", "OFF")]


@pytest.mark.parametrize("compiler, level, static", WAYS, ids=lambda value: value)
def test_it_builds_without_a_warning_and_the_unit_tests_pass(compiler, level, static, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"missing program: {compiler}")
    words = ["cmake", "-S", host.REPO, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_C_FLAGS={level}", f"-DBRIG_STATIC_LIBS={static}"]
    made = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "CC": compiler})
    assert made.returncode == 0, made.stdout + made.stderr
    built = subprocess.run(["cmake", "--build", tmp_path], capture_output=True, text=True)
    assert built.returncode == 0 and "warning:" not in built.stdout + built.stderr, (built.stdout + built.stderr)[-4000:]
    tested = subprocess.run(["ctest", "--test-dir", tmp_path, "--output-on-failure"], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout[-4000:]
