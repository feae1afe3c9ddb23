"""What the tests of brig-rootfs share: the binary, one built tree, small stores and recipes."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from builder import BINARY, BUILD, REPO, Rootfs
from support import host

# The smallest thing that goes through every stage but compile.
TINY = {"suite": host.debian(), "packages": ["netbase"], "prune": ["/var", "/etc/apt", "/lib*", "/usr/lib*", "/usr/share", "/usr/share/*", "/usr/share/doc", "/bin", "/sbin", "/tmp"],
        "dirs": ["/workspace"], "generate": ["/etc/passwd = passwd"]}


@pytest.fixture(scope="session")
def needs_root():
    if os.geteuid() != 0:
        pytest.skip("missed: root (chroot, device nodes, mounts)")


@pytest.fixture
def rootfs(tmp_path):
    """A store of this test alone; its path has a blank in it, as people's have."""
    return Rootfs(tmp_path / "a store")


@pytest.fixture(scope="session")
def basic():
    """The one tree that all tests look at, built when it is not there."""
    shared = Rootfs(os.environ.get("BRIG_STORE", BUILD / "store"))
    shared.must("build", "basic")
    shared.row = shared.rows()["basic"]
    shared.tree = pathlib.Path(shared.row["path"])
    return shared


@pytest.fixture
def recipe(tmp_path):
    """recipe(name, key=value...) writes TINY with changes and returns its path."""
    def write(name="tiny", **changes):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**TINY, **changes}))
        return path
    return write


@pytest.fixture
def installed(tmp_path):
    """install(NAME={recipe}...): brig-rootfs with TINY, as "tiny", and these in its own folder of recipes."""
    top = tmp_path / "elsewhere"

    def install(**recipes):
        (top / "bin").mkdir(parents=True)
        (top / "recipes").mkdir()
        (top / "brig.mark").touch()
        shutil.copy(BINARY, top / "bin")
        shutil.copytree(REPO / "jail/guest", top / "guest")
        for name, text in {"tiny": TINY, **recipes}.items():
            (top / "recipes" / f"{name}.json").write_text(json.dumps(text))
        mine = Rootfs(top / "store", top / "bin" / "brig-rootfs")
        mine.tiny = TINY
        return mine
    return install


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory):
    """A store that holds TINY; tests copy it rather than build again."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "tiny.json").write_text(json.dumps(TINY))
    store = Rootfs(folder / "store")
    store.must("build", folder / "tiny.json")
    return store


@pytest.fixture
def tiny(tiny_store, tmp_path):
    """A store with the tree "tiny" in it, to be damaged at will."""
    subprocess.run(["cp", "-a", tiny_store.store, tmp_path / "copy"], check=True)
    copy = Rootfs(tmp_path / "copy")
    copy.row = copy.rows()["tiny"]
    copy.tree = pathlib.Path(copy.row["path"])
    return copy
