"""Every fuzz target keeps its promises: about the corpus, about what was once found, about a seed for every row."""
import pathlib
import subprocess

import pytest

from support import fuzzing, host

pytestmark = pytest.mark.gate

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def seeds(asan_build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    subprocess.run([asan_build / "tests/fuzz_seeds", host.REPO, folder], check=True)
    return folder


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_every_promise_holds(asan_build, seeds, target):
    folders = [folder for folder in (HERE / "corpus" / target, HERE / "found" / target, seeds / target) if folder.is_dir()]
    done = subprocess.run([asan_build / f"tests/replay_{target}", *folders], capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_there_is_something_to_start_from(seeds, target):
    """A seed for every row, and what a longer run once reached."""
    assert any((seeds / target).iterdir()) and any((HERE / "corpus" / target).iterdir())


def test_nothing_is_kept_for_a_target_that_is_gone():
    kept = {path.name for name in ("corpus", "found") for path in (HERE / name).iterdir()}
    assert kept <= set(fuzzing.TARGETS)
