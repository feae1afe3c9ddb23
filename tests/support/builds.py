"""The tree built by another compiler, or with other options: without a warning, and the unit tests pass."""
import os
import shutil
import subprocess

import pytest

from support import host


def check(folder, compiler, flags, *options):
    """flags: of the compiler. options: of CMake."""
    if not shutil.which(compiler):
        pytest.skip(f"missing program: {compiler}")
    words = ["cmake", "-S", host.REPO, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_C_FLAGS={flags}", *options]
    made = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "CC": compiler})
    assert made.returncode == 0, made.stdout + made.stderr
    built = subprocess.run(["cmake", "--build", folder], capture_output=True, text=True)
    assert built.returncode == 0 and "warning:" not in built.stdout + built.stderr, (built.stdout + built.stderr)[-4000:]
    tested = subprocess.run(["ctest", "--test-dir", folder, "--output-on-failure"], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout[-4000:]
