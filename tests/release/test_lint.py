"""./dev lint deep: the checks of C, shell and manual, with clang's analyzer, which takes minutes."""
import shutil
import subprocess

import pytest

from support import host


@pytest.mark.nightly(seconds=1800)
def test_the_analyzer_has_nothing_to_report():
    if not shutil.which("clang-tidy"):
        pytest.skip("missing program: clang-tidy")
    done = subprocess.run(["./dev", "lint", "deep"], cwd=host.REPO, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
