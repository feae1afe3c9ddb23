"""The walkthroughs, followed literally: each patch applies, the tree builds, each command does what the page says."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest


ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs/walkthroughs").glob("*.md"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The tracked files, and a store to run from. One for all pages: what one adds does not disturb the next, which builds little anew."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    made = tmp_path_factory.mktemp("walk") / "tree"
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).exists():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made / name, follow_symlinks=False)
    (made / "build").mkdir()
    (made / "build/store").symlink_to(os.environ.get("BRIG_STORE", ROOT / "build/store"))
    return made


def blocks_of(page):
    return re.findall(r"^```(diff|sh)\n(.*?)^```$", page.read_text(), re.M | re.S)


def apply(text, tree):
    done = subprocess.run(["patch", "-p1", "--no-backup-if-mismatch"], input=text, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_its_patches_apply(page, tmp_path):
    """Which a change of a comment beside them undoes: the fast tier tells, and builds nothing."""
    for kind, text in blocks_of(page):
        if kind == "diff":
            for name in re.findall(r"^--- a/(.*)$", text, re.M):
                if not (tmp_path / name).exists():
                    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, tmp_path / name)
            apply(text, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_following_it_does_what_it_says(page, tree, needs_root):
    blocks = blocks_of(page)
    assert {kind for kind, _ in blocks} == {"diff", "sh"}
    for kind, text in blocks:
        if kind == "diff":
            apply(text, tree)
            continue
        for line in text.splitlines():
            status = re.search(r"#.*\bstatus (\d+)", line)
            words = line.replace("./dev test", f"/usr/bin/python3 -m pytest -q -p no:cacheprovider -p no:xdist --rootdir={tree}") if line.startswith("./dev test") else line
            done = subprocess.run(["bash", "-c", words], cwd=tree, capture_output=True, text=True, env={**os.environ, "BRIG_BUILD": f"{tree}/build"})
            assert done.returncode == (int(status[1]) if status else 0), f"{line}\n{done.stdout}\n{done.stderr}"
            printed = re.search(r"# prints (.*)$", line)
            assert not printed or done.stdout == f"{printed[1]}\n", line
            assert "no tests ran" not in done.stdout


def test_there_is_one_for_each_of_the_three_tables():
    assert [page.stem for page in PAGES] == ["add-a-limit", "add-a-request", "add-a-set-up-step"]
