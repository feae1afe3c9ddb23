"""Packages as nobody makes them by accident, signed all the same: nothing outside of the workspace changes, and what is refused leaves nothing."""
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from builder import BINARY, REPO, Rootfs
from packages import FOLDER, HARD, LINK, Keys, archive, hole, member, mirror, trusting
from support import host, terminal

NAME = "hostile"
TOP = [member("./", kind=FOLDER), member("./usr/", kind=FOLDER), member("./usr/file", b"something")]


@pytest.fixture(scope="session")
def keys(needs_root):
    for need in ("tool:gpg", "tool:mmdebstrap", "tool:unshare"):
        if host.lacks(need):
            pytest.skip(host.lacks(need))
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder:
        made = Keys(folder)
        yield made
        made.close()


class Builder(Rootfs):
    """brig-rootfs of one's own, that trusts those keys, and a folder outside of its store in which everybody may do everything."""

    def __init__(self, top, keys, uid):
        super().__init__(top / "store", top / "bin" / "brig-rootfs")
        self.top, self.keys, self.uid, self.outside = top, keys, uid, top / "outside"
        top.chmod(0o755)
        for folder in (top / "bin", top / "recipes", self.store, self.outside):
            folder.mkdir()
        (top / "brig.mark").touch()
        shutil.copy(BINARY, self.binary)
        shutil.copytree(REPO / "jail/guest", top / "guest")
        (self.outside / "victim").write_text("victim")
        os.chown(self.store, uid, uid)
        for path in (self.outside, self.outside / "victim"):
            path.chmod(0o777)

    def build(self, packages, spoil=lambda pool: None, suite="bookworm", named="option", **recipe):
        """named: what names the mirror, an option, the recipe or nothing."""
        top = pathlib.Path(tempfile.mkdtemp(prefix="mirror-", dir=self.top))
        top.chmod(0o755)
        sources = mirror(top, {name: archive(members) if isinstance(members, list) else members for name, members in packages.items()}, self.keys, suite)
        spoil(top / "pool")
        recipe |= {"sources": [sources.read_text().strip()]} if named == "recipe" else {}
        path = self.top / "recipes" / f"{NAME}.json"
        path.write_text(json.dumps({"suite": suite, "packages": [*packages], **recipe}))
        user = ["setpriv", "--reuid", self.uid, "--regid", self.uid, "--clear-groups"] if self.uid else []
        argv = trusting(self.keys, *user, self.binary, "build", "--store", self.store, *(["--sources", sources] if named == "option" else []), path)
        return subprocess.run(argv, capture_output=True, timeout=host.HANG, env={"PATH": os.environ["PATH"]}, cwd=self.outside)

    def wrong(self, done):
        """What is not as it must be after a build that was refused: one clear error, and nothing else anywhere."""
        errors = [line for line in done.stderr.splitlines() if line.startswith(b"brig-rootfs: ")]
        if done.returncode != 1 or len(errors) != 1 or not errors[0].startswith(f"brig-rootfs: {NAME}: ".encode()) or not done.stderr.endswith(errors[0] + b"\n"):
            return f"no clear error: {done}"
        return self.changed() or (terminal.obeyed(done.stderr) and f"a terminal would obey: {done}") or (self.leftovers() and f"left: {self.leftovers()}")

    def changed(self):
        victim = self.outside / "victim"
        if os.listdir(self.outside) != ["victim"] or victim.read_text() != "victim" or victim.stat().st_nlink != 1 or victim.stat().st_mode & 0o7777 != 0o777:
            return f"outside: {os.listdir(self.outside)}, {victim.stat()}"
        return None


@pytest.fixture(params=["root", "a plain user"])
def builder(request, keys):
    with tempfile.TemporaryDirectory(prefix="brig-test-") as top:
        made = Builder(pathlib.Path(top), keys, 0 if request.param == "root" else host.own_id(8))
        yield made


def spoil(pool):
    path = pool / "one.deb"
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def other(pool):
    shutil.copy(pool / "two.deb", pool / "one.deb")


def deep(levels):
    return [member("./" + "d/" * n, kind=FOLDER) for n in range(1, levels + 1)]


NAMES = ["a\nlint: /b: fine", "\x1b]0;x\x07", "\u009b2J", "a\u202eb", "\u2066c", "d\u2028"]
CASES = {
    # what is in the packages: {name: members}, a word of the error
    "a link that another archive goes through": lambda out: ({"one": TOP + [member("./way", kind=LINK, to=out)], "two": [member("./way/", kind=FOLDER), member("./way/new", b"x")]}, "Read-only file system"),
    "a link that another archive overwrites through": lambda out: ({"one": TOP + [member("./way", kind=LINK, to=out)], "two": [member("./way/victim", b"x")]}, ("Read-only file system", "File exists")),
    "a link to the workspace": lambda out: ({"one": TOP + [member("./way", kind=LINK, to="../..")], "two": [member("./way/manifest.json", b"x")]}, "Read-only file system"),
    "a link beside the tree": lambda out: ({"one": TOP + [member("./way", kind=LINK, to="..")], "two": [member("./way/planted", b"x")]}, "[link]"),
    "a name with ..": lambda out: ({"one": TOP + [member("./usr/../../../../../../../.." + out + "/new", b"x")]}, "contains '..'"),
    "a hard link out": lambda out: ({"one": TOP + [member("./usr/hard", kind=HARD, to=out + "/victim")]}, "Cannot hard link"),
    "a hard link through a link": lambda out: ({"one": TOP + [member("./way", kind=LINK, to=out)], "two": [member("./hard", kind=HARD, to="./way/victim")]}, "Invalid cross-device link"),
    "a hard link inside": lambda out: ({"one": TOP + [member("./usr/hard", kind=HARD, to="./usr/file")]}, "[hardlink]"),
    "a link that climbs out": lambda out: ({"one": TOP + [member("./usr/up", kind=LINK, to="../../../../usr/file")]}, "[link]"),
    "a device of characters": lambda out: ({"one": TOP + [member("./null", kind=tarfile.CHRTYPE, dev=(1, 3), mode=0o666)]}, ("[type]", "Cannot mknod")),
    "a device of blocks": lambda out: ({"one": TOP + [member("./disk", kind=tarfile.BLKTYPE, dev=(8, 0), mode=0o666)]}, ("[type]", "Cannot mknod")),
    "a pipe": lambda out: ({"one": TOP + [member("./pipe", kind=tarfile.FIFOTYPE)]}, "[type]"),
    "a file that is setuid": lambda out: ({"one": TOP + [member("./usr/su", b"x", mode=0o4755)]}, "[setid]"),
    "a file that is setgid": lambda out: ({"one": TOP + [member("./usr/sg", b"x", mode=0o2755)]}, "[setid]"),
    "a file of a terabyte": lambda out: ({"one": TOP + [hole("./usr/large", 1 << 40)]}, "size_max of the recipe is 256M"),
    "a file that is shorter than it says": lambda out: ({"one": archive(TOP + [member("./usr/short", b"x" * 5000)[:1024]], ends=False)}, "Unexpected EOF"),
    "no archive": lambda out: ({"one": b"\xff" * 4096}, ("does not look like a tar archive", "corrupt")),
    "names that a terminal obeys": lambda out: ({"one": TOP + [member(f"./usr/{name}") for name in NAMES] + [member("./usr/link", kind=LINK, to=NAMES[2])]}, "its target is not printable UTF-8 [name]"),
    "directories that are too deep": lambda out: ({"one": TOP + deep(1500)}, "more than 64 directories deep"),
    "a package whose digest does not fit": lambda out: ({"one": TOP}, "Hash Sum mismatch", spoil),
    "a package in the place of another": lambda out: ({"one": TOP, "two": TOP + [member("./usr/other")]}, ("Hash Sum mismatch", "unexpected size"), other),
}


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
@pytest.mark.parametrize("what", CASES)
def test_hostile_packages_are_refused_and_change_nothing_outside(builder, what):
    packages, words, *change = CASES[what](str(builder.outside))
    done = builder.build(packages, *change)
    assert not (wrong := builder.wrong(done)), wrong
    assert any(word in done.stderr.decode() for word in ([words] if isinstance(words, str) else words)), done.stderr.decode()


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
@pytest.mark.parametrize("mode", [0, 0o555], ids=["closed", "read-only"])
def test_directories_that_their_owner_may_not_change_are_no_obstacle(builder, mode):
    """To root there are none; of a plain user's build that fails nothing stays, and the next one is not kept from its work."""
    folders = [member("./usr/shut/", kind=FOLDER, mode=mode), member("./usr/shut/below/", kind=FOLDER, mode=mode), member("./usr/shut/below/file", b"x")]
    done = builder.build({"one": TOP + folders + deep(70)})
    assert not (wrong := builder.wrong(done)), wrong
    done = builder.build({"one": TOP})
    assert done.returncode == 0 and not builder.changed() and builder.rows().keys() == {NAME}, done


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
def test_what_is_named_from_the_root_on_lands_in_the_tree(builder):
    with tempfile.TemporaryDirectory(prefix="brig-test-", dir="/var/tmp") as way: # of a tree's /tmp nothing stays
        os.chmod(way, 0o777)
        done = builder.build({"one": TOP + [member(f"{way}/new", b"x")], "two": [member("./usr/more/", kind=FOLDER, mode=0o2777), member("./usr/link", kind=LINK, to=f"{way}/new")]})
        assert done.returncode == 0 and os.listdir(way) == [] and not builder.changed(), done
    tree = pathlib.Path(builder.rows()[NAME]["path"])
    assert (tree / way[1:] / "new").read_text() == "x" and (tree / "usr/more").stat().st_mode & 0o7777 == 0o755
    assert sorted(os.listdir(tree.parent)) == ["lock", "manifest.json", "recipes", "tree"], "something was planted beside it"


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
def test_a_recipe_brings_the_sources_of_a_release_that_the_machines_apt_does_not_have(builder):
    done = builder.build({"one": TOP}, suite="forky", named=None)
    assert not (wrong := builder.wrong(done)), wrong
    assert b'neither /etc/apt nor the recipe has a source of Debian forky (main, signed by Debian); add one to the recipe: "sources": ["deb URI forky main"]' in done.stderr, done
    done = builder.build({"one": TOP}, suite="forky", named="recipe")
    assert done.returncode == 0 and (pathlib.Path(builder.rows()[NAME]["path"]) / "usr/file").read_text() == "something", done


@pytest.fixture(scope="session")
def python(tmp_path_factory):
    """A program that takes the place of the tree's Python, as bytes."""
    if host.lacks("tool:gcc"):
        pytest.skip(host.lacks("tool:gcc"))
    path = tmp_path_factory.mktemp("python") / "python3"
    done = subprocess.run(["gcc", "-static", "-O1", "-o", path, REPO / "tests/rootfs/hostile_python.c"], capture_output=True, text=True, timeout=host.HANG)
    if done.returncode:
        pytest.skip(f"needs a static C library: {done.stderr.splitlines()[-1:]}")
    return path.read_bytes()


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
def test_a_python_that_is_somebody_elses_has_no_rights_while_the_tree_is_made(builder, python):
    """The builder has it compile the library. It is told to fail, so that its words are shown."""
    done = builder.build({"one": TOP + [member("./usr/bin/", kind=FOLDER), member("./usr/bin/python3", python, mode=0o755)]})
    assert not (wrong := builder.wrong(done)), wrong
    said = [line.removeprefix("python: ") for line in done.stderr.decode().splitlines() if line.startswith("python: ")]
    user = [said.pop(said.index(line)) for line in list(said) if line.startswith("user namespace: ")]
    assert builder.uid == 0 or user == ["user namespace: No space left on device"], user # of root's build it would be the host's limit
    assert said == ["capabilities 0", "new privileges 1", "mknod: Operation not permitted", "mount: Operation not permitted", "chroot: Operation not permitted", "unshare: Operation not permitted",
                    "parent: none", "proc: No such file or directory", "descriptors: 0 directories", "network: Network is unreachable", "?[2Jfrom a terminal's view"], done.stderr.decode()


@pytest.mark.nightly
@pytest.mark.diagonal("builder")
def test_control_the_same_packages_without_what_is_hostile_are_built(builder):
    done = builder.build({"one": TOP, "two": [member("./way/", kind=FOLDER), member("./way/new", b"x")]})
    tree = pathlib.Path(builder.rows()[NAME]["path"])
    assert done.returncode == 0 and (tree / "usr/file").read_text() == "something" and (tree / "way/new").read_text() == "x" and not builder.changed(), done
