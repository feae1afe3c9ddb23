"""Requirements of a recipe: real pip, wheels from a folder and from an index, and hostile wheels."""
import json
import os
import pathlib
import stat
import subprocess
import tempfile

import pytest

from builder import BUILD, Rootfs
from support import host, terminal
from wheels import digest, index, wheel

PYTHON = {"bookworm": "python3.11", "trixie": "python3.13"}[host.debian()]
LIBRARY = f"usr/local/lib/{PYTHON}/dist-packages"
GREETING = {"greeting/__init__.py": "def main():\n    print('hello from a wheel')\n", "greeting/template.py": "class {{ name }}:\n", "greeting/words.txt": "words\n"}
# The least that pip runs in.
SMALL = {"suite": host.debian(), "packages": ["python3"], "omit": ["ca-certificates"], "prune": ["/etc/apt", "/usr/share/doc", "/usr/share/man", "/var"],
         "generate": ["/etc/hosts = hosts"]}


class Builder(Rootfs):
    """Builds the recipe "wheels", with wheels from a folder beside it."""

    def __init__(self, top):
        super().__init__(top / "store")
        self.top, self.folder = top, top / "folder"
        self.folder.mkdir(parents=True)

    def build(self, lines, user=None, **recipe):
        as_user = {"user": user, "group": user, "extra_groups": []} if user else {}
        (self.top / "requirements.txt").write_text(lines)
        source = {} if "index" in recipe else {"wheels": "folder"}
        path = self.top / "wheels.json"
        path.write_text(json.dumps({**SMALL, "requirements": "requirements.txt", **source, **recipe}))
        return self("build", path, **as_user)

    def tree(self):
        return pathlib.Path(self.rows()["wheels"]["path"])

    def refuses(self, lines, **recipe):
        """The one error of a build that leaves nothing."""
        done = self.build(lines, **recipe)
        errors = [line for line in done.stderr.splitlines() if line.startswith("brig-rootfs: ")]
        assert done.returncode == 1 and len(errors) == 1 and done.stderr.endswith(errors[0] + "\n"), done
        assert not terminal.obeyed(done.stderr) and self.leftovers() == [], done
        return errors[0], done.stderr


@pytest.fixture
def builder(tmp_path):
    return Builder(tmp_path / "a place")


@pytest.fixture(scope="session")
def greeted(tmp_path_factory):
    made = Builder(tmp_path_factory.mktemp("wheels") / "a place")
    made.line = wheel(made.folder, "greeting", GREETING, scripts="greet = greeting:main")
    made.done = made.build("# by hand\n" + made.line)
    assert made.done.returncode == 0, made.done.stderr
    return made


# --- what comes of it ---

@pytest.mark.nightly
def test_what_is_required_is_installed_with_its_scripts_and_compiled_and_pip_is_gone(greeted):
    tree = greeted.tree()
    assert (tree / LIBRARY / "greeting/words.txt").read_text() == "words\n"
    assert (tree / "usr/local/bin/greet").read_text().startswith("#!/usr/bin/python3\n")
    [compiled] = (tree / LIBRARY / "greeting/__pycache__").iterdir()
    assert compiled.name.startswith("__init__.") and compiled.read_bytes()[4:8] == b"\1\0\0\0"
    assert not list(tree.glob(".brig*")) and not (tree / "usr/share/python-wheels").exists()
    assert not os.path.lexists(tree / "etc/resolv.conf") and not os.path.lexists(tree / "etc/ssl/certs/ca-certificates.crt")
    assert (tree / "etc/hosts").read_text().startswith("127.0.0.1 localhost brig\n")
    greeted.must("verify", "wheels")


@pytest.mark.nightly
def test_the_manifest_names_what_came_from_wheels_and_no_pip(greeted):
    packages = json.loads((greeted.tree().parent / "manifest.json").read_text())["packages"]
    assert {"name": "greeting", "version": "1.0"} in packages
    assert not [row for row in packages if "pip" in row["name"]]


@pytest.mark.nightly
def test_a_run_imports_it_and_starts_its_script(greeted, tmp_path, needs_root):
    (tmp_path / "python.policy").write_text((host.REPO / "profiles/python.policy").read_text())
    (tmp_path / "groups.policy").write_text((host.REPO / "profiles/groups.policy").read_text())
    (tmp_path / "mine.json").write_text('{"rootfs": "wheels", "policy": "python"}')
    (tmp_path / "main.py").write_text("import greeting, subprocess\ngreeting.main()\nsubprocess.run(['/usr/local/bin/greet'], check=True)\n")
    done = subprocess.run([BUILD / "bin/brig", "run", "-p", "mine", tmp_path / "main.py"], capture_output=True, text=True, timeout=host.HANG,
                          env={**os.environ, "BRIG_PROFILES": str(tmp_path), "BRIG_STORE": str(greeted.store)})
    assert (done.returncode, done.stdout) == (0, "hello from a wheel\nhello from a wheel\n"), done.stderr


@pytest.mark.nightly
def test_another_comment_makes_no_other_rootfs_and_another_hash_does(greeted):
    assert "already built" in greeted.build("# another comment\n" + greeted.line).stderr
    error = greeted.build(greeted.line.strip() + " --hash=sha256:" + 64 * "0" + "\n", size_max="1K").stderr
    assert "already built" not in error and "was built from another recipe" in error


@pytest.mark.nightly
def test_an_index_gives_the_same_tree_as_a_folder_and_its_address_is_nowhere(greeted, builder, tmp_path):
    line = wheel(tmp_path / "served", "greeting", GREETING, scripts="greet = greeting:main")
    with index(tmp_path / "served") as address:
        done = builder.build(line, index=address)
    assert done.returncode == 0, done.stderr
    assert line == greeted.line and builder.rows()["wheels"]["digest"] == greeted.rows()["wheels"]["digest"]
    assert "127.0.0.1:" not in (builder.tree().parent / "manifest.json").read_text()


@pytest.mark.nightly
def test_a_plain_users_build_gives_the_same_tree(greeted, needs_root):
    with tempfile.TemporaryDirectory(prefix="brig-test-") as top:
        mine, uid = Builder(pathlib.Path(top) / "a place"), host.own_id(8)
        assert wheel(mine.folder, "greeting", GREETING, scripts="greet = greeting:main") == greeted.line
        for path in (pathlib.Path(top), mine.top):
            path.chmod(0o755)
        mine.store.mkdir()
        os.chown(mine.store, uid, uid)
        done = mine.build(greeted.line, user=uid)
        assert done.returncode == 0, done.stderr
        assert mine.rows()["wheels"]["digest"] == greeted.rows()["wheels"]["digest"]


# --- what is refused before anything is built ---

HASH = " --hash=sha256:" + 64 * "a"
LINES = [
    # what is wrong, the file, the error
    ("no hash", "six==1.16.0\n", "line 1: six==1.16.0 has no hash: add --hash=sha256:..., which `pip hash FILE.whl` prints, or let `pip-compile --generate-hashes` write the file"),
    ("no version", "\nsix" + HASH, "line 2: six: expected six==VERSION; pip-compile --generate-hashes writes such a file"),
    ("an option", "--index-url https://example.org/simple\n", "line 1: --index-url https://example.org/simple: options are not taken from a file; "
                                                              "index or wheels of the recipe says where wheels come from"),
    ("an address", "six @ https://example.org/six.whl" + HASH, "line 1: six: expected six==VERSION; pip-compile --generate-hashes writes such a file"),
    ("nothing", "# nothing\n", "nothing is required; write NAME==VERSION --hash=sha256:..., a line for each package"),
    ("a zero byte", "six==1.0\0" + HASH, "no text"),
]


@pytest.mark.parametrize("lines, error", [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_a_bad_requirements_file_gives_one_line(builder, lines, error):
    said, everything = builder.refuses(lines)
    assert said == f"brig-rootfs: requirements: {builder.top}/requirements.txt: {error}" and everything == said + "\n"


def test_a_requirements_file_that_is_not_there_is_named(builder):
    error, _ = builder.refuses("", requirements="other.txt")
    assert error == f"brig-rootfs: requirements: {builder.top}/other.txt: No such file or directory"


def test_a_folder_that_is_not_there_is_named(builder):
    error, _ = builder.refuses("six==1.0" + HASH, wheels="elsewhere")
    assert error == f"brig-rootfs: wheels: wheels: {builder.top}/elsewhere: No such file or directory"


def test_a_wheel_that_is_not_in_the_folder_is_named(builder):
    wheel(builder.folder, "six", {}, version="2.0")
    error, _ = builder.refuses("six==1.0" + HASH)
    assert error == f"brig-rootfs: wheels: {builder.top}/requirements.txt: line 1: no wheel of six==1.0 in {builder.top}/folder"


def test_a_wheel_with_another_hash_is_named_with_the_one_that_it_has(builder):
    wheel(builder.folder, "six", {})
    error, _ = builder.refuses("six==1.0" + HASH)
    assert error == (f"brig-rootfs: wheels: {builder.top}/requirements.txt: line 1: six-1.0-py3-none-any.whl has "
                     f"sha256:{digest(builder.folder / 'six-1.0-py3-none-any.whl')}, which is not among the hashes of six==1.0")


def test_a_source_archive_is_no_wheel(builder):
    (builder.folder / "six-1.0.tar.gz").write_bytes(b"setup.py")
    error, _ = builder.refuses(f"six==1.0 --hash=sha256:{digest(builder.folder / 'six-1.0.tar.gz')}")
    assert error.endswith(f"no wheel of six==1.0 in {builder.top}/folder")


def test_requirements_and_where_they_come_from_are_inherited_together(installed, tmp_path):
    """An extension that names neither has both of the base; one that names one of them has none."""
    mine = installed(base={"suite": host.debian(), "packages": ["netbase"], "requirements": "own.txt", "wheels": "own"}, more={"extends": "base"},
                     other={"extends": "base", "wheels": "elsewhere"})
    recipes = mine.binary.parent.parent / "recipes"
    assert mine("build", "more").stderr == f"brig-rootfs: requirements: {recipes}/own.txt: No such file or directory\n"
    assert mine("build", "other").stderr == f"brig-rootfs: {recipes}/other.json: wheels: there is no requirements that says what to take from it\n"


# --- what is refused by pip, or after it ---

@pytest.mark.nightly
def test_an_index_whose_file_has_another_hash_is_refused(builder, tmp_path):
    wheel(tmp_path / "served", "six", {})
    with index(tmp_path / "served") as address:
        error, everything = builder.refuses("six==1.0" + HASH, index=address)
    assert error == "brig-rootfs: wheels: wheels: pip, fetching from the index: /usr/bin/python3: exit status 1"
    assert "DO NOT MATCH THE HASHES" in everything and "127.0.0.1" not in everything


@pytest.mark.nightly
def test_an_index_that_has_the_source_only_is_refused_and_its_setup_is_not_run(builder, tmp_path):
    (tmp_path / "served").mkdir()
    path = tmp_path / "served/six-1.0.tar.gz"
    path.write_bytes(b"setup.py")
    line = f"six==1.0 --hash=sha256:{digest(path)}"
    with index(tmp_path / "served") as address:
        error, everything = builder.refuses(line, index=address)
    assert error.endswith("requirements.txt: line 1: no wheel of six==1.0 fits the tree's Python and machine") and "its log" not in everything


@pytest.mark.nightly
def test_a_wheel_for_another_python_is_named(builder):
    wheel(builder.folder, "six", {})
    path = (builder.folder / "six-1.0-py3-none-any.whl").rename(builder.folder / "six-1.0-cp39-cp39-manylinux_2_17_x86_64.whl")
    error, everything = builder.refuses(f"# for Python 3.9\nsix==1.0 --hash=sha256:{digest(path)}")
    assert error.endswith("requirements.txt: line 2: no wheel of six==1.0 fits the tree's Python and machine") and "its log" not in everything


@pytest.mark.nightly
def test_a_tree_without_a_python_takes_no_wheels(builder):
    error, _ = builder.refuses(wheel(builder.folder, "six", {}), packages=["netbase"])
    assert error.endswith('requirements: the tree has no /usr/bin/python3; the package "python3" brings it')


HOSTILE = {
    # what is in the wheel, a part of what is said
    "a path that climbs": ({"../../../../../../../escaped": "x"}, "outside"),
    "an absolute path": ({"/escaped": "x"}, "outside"),
    "data that climb": ({"evil-1.0.data/data/../../../../escaped": "x"}, "Unknown scheme key"),
    "data over the standard library": ({"evil-1.0.data/stdlib/os.py": "x"}, "Unknown scheme key"),
    "a name that a terminal obeys": ({"evil/\x1b[2Jx.txt": "x"}, "[name]"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("files, words", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_wheel_is_refused_and_changes_nothing_outside(builder, files, words):
    _, everything = builder.refuses(wheel(builder.folder, "evil", files))
    assert words in everything
    assert not list(builder.top.glob("**/escaped")) and not os.path.lexists("/escaped")


@pytest.mark.nightly
def test_a_script_cannot_take_the_place_of_a_program(builder):
    done = builder.build(wheel(builder.folder, "evil", {"evil.py": ""}, scripts=f"../../bin/{PYTHON} = evil:main\n../../../workspace/x = evil:main"))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (builder.tree() / "usr/local/bin").iterdir()) == [PYTHON, "x"]
    assert (builder.tree() / "usr/bin" / PYTHON).read_bytes()[:4] == b"\x7fELF" and not list((builder.tree() / "workspace").iterdir())


@pytest.mark.nightly
def test_modes_links_and_start_up_files_of_a_wheel_give_it_no_right(builder):
    """A set-id bit is dropped, a link becomes a file, and nothing of it runs while the tree is built."""
    files = {"evil/su": "x", "evil/link": "/etc/shadow", "evil.pth": "import os; os.mkdir('/usr/local/ran')\n", "sitecustomize.py": "import os; os.mkdir('/usr/local/ran')\n",
             "evil-1.0.data/scripts/su": "#!python\n", "setup.py": "import os; os.mkdir('/usr/local/ran')\n"}
    modes = {"evil/su": stat.S_IFREG | 0o6755, "evil/link": stat.S_IFLNK | 0o777, "evil-1.0.data/scripts/su": stat.S_IFREG | 0o6777}
    done = builder.build(wheel(builder.folder, "evil", files, modes=modes))
    assert done.returncode == 0, done.stderr
    library = builder.tree() / LIBRARY
    assert stat.S_IMODE((library / "evil/su").stat().st_mode) == stat.S_IMODE((builder.tree() / "usr/local/bin/su").stat().st_mode) == 0o755
    assert not (library / "evil/link").is_symlink() and (library / "evil/link").read_text() == "/etc/shadow"
    assert not (builder.tree() / "usr/local/ran").exists()
    builder.must("lint", builder.tree())
