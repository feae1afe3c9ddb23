"""The guest runner in a rootfs: which files, made by whose Python, and that another runner makes another tree."""
import json
import shutil
import stat

import pytest

from support.host import REPO

GUEST = REPO / "jail/guest"
PLACE = "usr/lib/brig"


@pytest.fixture
def run(basic, tmp_path, needs_root):
    from test_rootfs_basic import inside
    return lambda *command, **kwargs: inside(basic.tree, tmp_path, *command, **kwargs)


def test_the_tree_has_its_sources_as_they_are_and_one_packed_file(basic):
    assert {path.name for path in (basic.tree / PLACE).iterdir()} == {path.name for path in GUEST.glob("*.py")} | {"guest.pyc"}
    for path in GUEST.glob("*.py"):
        assert (basic.tree / PLACE / path.name).read_bytes() == path.read_bytes()


def test_everybody_may_read_it_and_nobody_write(basic):
    for path in (basic.tree / PLACE).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644, path


def test_the_manifest_covers_it(basic):
    manifest = json.loads((basic.tree.parent / "manifest.json").read_text())
    assert {f"/{PLACE}", f"/{PLACE}/guest.py", f"/{PLACE}/guest.pyc", f"/{PLACE}/check.py"} <= {row["path"] for row in manifest["files"]}


def test_it_is_compiled_for_the_python_of_the_tree_and_never_looked_at_again(basic, run):
    done = run("/usr/bin/python3", "-I", "-c", "import importlib.util, sys; sys.stdout.write(importlib.util.MAGIC_NUMBER.hex())")
    head = (basic.tree / PLACE / "guest.pyc").read_bytes()[:8]
    assert head[:4].hex() == done.stdout and head[4:] == b"\1\0\0\0"


def test_it_runs_with_the_python_of_the_tree(basic, run):
    script = f"cd /tmp && echo 'print(1); 2 + 2' > main.py && exec /usr/bin/python3 -I /{PLACE}/guest.pyc report 5 '*' '*' '' -- 5>&2"
    done = run("/bin/sh", "-c", script)
    assert done.returncode == 0 and done.stdout == "1\n" and json.loads(done.stderr)["result"] == 4


@pytest.mark.nightly
def test_a_tree_without_a_python_has_no_runner(tiny):
    assert not (tiny.tree / "usr/lib/brig").exists()


# --- another runner, another tree ---

@pytest.fixture
def mine(installed):
    mine = installed()
    mine.guest = mine.binary.parent.parent / "guest"
    return mine


ALREADY = "tiny is already built from this recipe; --force builds it again\n"
OUTDATED = "tiny in the store was built from another recipe or by another brig\n"


@pytest.mark.nightly
def test_a_tree_is_built_again_when_the_runner_has_changed(mine, needs_root):
    first = mine.must("build", "tiny").stderr
    assert OUTDATED not in first
    assert mine.must("build", "tiny").stderr == ALREADY
    (mine.guest / "value.py").write_text("# another\n")
    assert mine.must("build", "tiny").stderr.startswith(OUTDATED)
    assert mine.must("build", "tiny").stderr == ALREADY


@pytest.mark.parametrize("change", [
    lambda guest: (guest / "more.py").write_text(""),
    lambda guest: (guest / "value.py").unlink(),
    lambda guest: (guest / "value.py").rename(guest / "walue.py"),
    lambda guest: (guest / "value.py").write_bytes((guest / "value.py").read_bytes() + b"\n"),
], ids=["a file more", "a file less", "another name", "a line more"])
@pytest.mark.nightly
def test_every_change_of_its_files_counts(mine, change, needs_root):
    mine.must("build", "tiny")
    change(mine.guest)
    assert mine.must("build", "tiny").stderr.startswith(OUTDATED)


@pytest.mark.nightly
def test_what_is_not_python_does_not_count(mine, needs_root):
    mine.must("build", "tiny")
    (mine.guest / "README.md").write_text("other words\n")
    (mine.guest / ".value.py.swp").write_text("an editor's\n")
    (mine.guest / ".hidden.py").write_text("an editor's\n")
    assert mine.must("build", "tiny").stderr == ALREADY


def test_without_its_files_nothing_is_built(mine):
    shutil.rmtree(mine.guest)
    done = mine("build", "tiny")
    assert (done.returncode, done.stderr) == (
        1, f"brig-rootfs: {mine.guest}, which has what runs programs inside a jail: No such file or directory\n")
    mine.guest.mkdir()
    done = mine("build", "tiny")
    assert (done.returncode, done.stderr) == (1, f"brig-rootfs: {mine.guest}: no file of what runs programs inside a jail\n")
    assert mine.leftovers() == []


@pytest.mark.nightly
def test_a_runner_that_does_not_compile_is_not_published(mine, needs_root):
    """With a Python in the tree; its words are in the log."""
    (mine.guest / "value.py").write_text("def f(:\n")
    recipe = json.loads((REPO / "recipes/basic.json").read_text())
    recipe["compile"] = []
    (mine.guest.parent / "recipes/small.json").write_text(json.dumps(recipe))
    done = mine("build", "small")
    assert done.returncode == 1 and "SyntaxError" in done.stderr and "brig-rootfs: small: runner: " in done.stderr
    assert mine.leftovers() == []
