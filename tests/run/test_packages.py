"""Packages that a run asks for: from a directory of wheels, kept as a layer, and what hostile wheels come to."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import time
import zipfile

import pytest

from support import daemon as daemons
from support import host, internet, terminal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rootfs"))
from wheels import wheel  # noqa: E402

pytestmark = pytest.mark.usefixtures("jail")
BIN = host.build_dir() / "bin"
GREETING = {"greeting/__init__.py": "def main():\n    print('hello from a wheel')\n"}


def tag_of_rootfs():
    """Of basic's Python, as "cpython-313"."""
    versions = [path.name.removeprefix("python3.") for path in (host.store_dir() / "names/basic/tree/usr/lib").glob("python3.*")]
    return f"cpython-3{versions[0]}" if versions else "none"


TAG = tag_of_rootfs()
PLACE = f"/opt/packages/{TAG}"


class Shop:
    """A store of its own with the rootfs basic, a directory of wheels, and brig with both."""

    def __init__(self, top):
        self.top, self.store, self.wheels = top, top / "store", top / "wheels"
        self.wheels.mkdir()
        internet.copy_rootfs("basic", self.store)
        self.env = {**{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}, "BRIG_STORE": str(self.store)}

    def brig(self, *words, env=None, **popen):
        return subprocess.run([BIN / words[0] if words[0] != "run" else BIN / "brig", *map(str, words[words[0] != "run":])], capture_output=True, text=True, errors="replace",
                              timeout=3 * host.HANG, env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, check=False, **popen)

    def run(self, *words, code="pass", env=None):
        return self.brig("run", "--private", "--find-links", self.wheels, *words, "-c", code, env=env)

    def layers(self):
        folder = self.store / "layers"
        return sorted(folder.iterdir()) if folder.exists() else []

    def nothing_is_left(self):
        return not self.layers() and not [path for path in (self.store / "tmp").iterdir()] and len(list((self.store / "trees").iterdir())) == 1


@pytest.fixture
def shop():
    lack = host.lacks("rootfs:basic")
    if lack:
        pytest.skip(lack)
    with tempfile.TemporaryDirectory(prefix="brig-test-") as top: # not pytest's, which no service can enter
        os.chmod(top, 0o755)
        yield Shop(pathlib.Path(top))


@pytest.fixture
def service(shop):
    """with service(profile=settings): a brigd with these profiles beside basic."""
    def start(**profiles):
        folder = shop.top / "profiles"
        folder.mkdir()
        for name, settings in profiles.items():
            (folder / f"{name}.json").write_text(json.dumps({"extends": "basic", **settings}))
        shop.env["BRIG_PROFILES"] = str(folder)
        return daemons.Daemon(env={"BRIG_STORE": str(shop.store), "BRIG_PROFILES": str(folder)})
    return start


# --- what users do ---

def test_a_run_imports_what_its_requirements_file_names_and_the_next_one_resolves_nothing(shop):
    wheel(shop.wheels, "greeting", GREETING)
    (shop.top / "requirements.txt").write_text("# ours\ngreeting >= 0.5 # or later\n")
    words = ["--requirements", shop.top / "requirements.txt"]
    first = shop.run(*words, code="import greeting; greeting.main(); print(greeting.__file__, greeting.__cached__)")
    compiled = f"{PLACE}/greeting/__pycache__/__init__.{TAG}.pyc"
    assert (first.returncode, first.stdout) == (0, f"hello from a wheel\n{PLACE}/greeting/__init__.py {compiled}\n"), first.stderr
    assert "resolving packages in a jail" in first.stderr
    [layer] = shop.layers()
    assert (layer / "tree/requirements.txt").read_text().startswith("greeting==1.0 --hash=sha256:")
    again = shop.run(*words, code="import greeting; greeting.main()")
    assert (again.returncode, again.stdout, again.stderr) == (0, "hello from a wheel\n", "") and shop.layers() == [layer]
    other = shop.run(*words, code="import absent")
    assert other.stderr.endswith("brig: no package of this run has absent; one more --with PACKAGE, or a line more in the requirements, adds it\n"), other


@pytest.mark.nightly
def test_other_packages_are_another_layer_and_the_same_ones_in_other_words_are_the_same_files(shop):
    wheel(shop.wheels, "greeting", GREETING)
    for word in ("greeting", "greeting==1.0", "greeting"):
        assert shop.run("--with", word).returncode == 0
    assert len(shop.layers()) == 2 and len({path.resolve() for path in shop.layers()}) == 1
    wheel(shop.wheels, "greeting", GREETING, version="2.0") # the directory is another one now
    done = shop.run("--with", "greeting", code="from importlib.metadata import version; print(version('greeting'))")
    assert done.stdout == "2.0\n", done.stderr


@pytest.mark.gate
def test_a_programs_block_names_its_packages_and_is_read_only_when_asked_for(shop):
    wheel(shop.wheels, "greeting", GREETING)
    (shop.top / "main.py").write_text('# /// script\n# requires-python = ">=3.9"\n# dependencies = [\n#   "greeting<2",\n# ]\n# ///\nimport greeting\ngreeting.main()\n')
    words = ["run", "--private", "--find-links", shop.wheels]
    assert shop.brig(*words, shop.top / "main.py").returncode == 1 and not shop.layers()
    done = shop.brig(*words, "--script", shop.top / "main.py")
    assert (done.returncode, done.stdout) == (0, "hello from a wheel\n"), done.stderr
    printed = shop.brig("brig", "packages", "--find-links", shop.wheels, "--script", shop.top / "main.py")
    assert printed.returncode == 0 and printed.stderr == "" and pathlib.Path(printed.stdout.strip()).resolve() == (shop.layers()[0] / "tree").resolve(), printed


BLOCKS = {
    "no TOML": ('# dependencies = ["greeting"\n', "is no TOML"),
    "not a list": ('# dependencies = "greeting"\n', "dependencies is a list of texts"),
    "another Python": ('# requires-python = ">=4"\n', "requires Python >=4"),
    "an address": ('# dependencies = ["greeting @ https://example.com/greeting.whl"]\n', "dependencies[0]: greeting @ 'https://example.com/greeting.whl': addresses are refused"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", BLOCKS)
def test_a_block_that_cannot_be_used_is_refused_with_the_reason_and_nothing_runs(shop, case):
    (shop.top / "main.py").write_text(f"# /// script\n{BLOCKS[case][0]}# ///\nprint('ran')\n")
    done = shop.brig("run", "--private", "--find-links", shop.wheels, "--script", shop.top / "main.py")
    assert done.returncode == 125 and BLOCKS[case][1] in done.stderr and done.stdout == "" and shop.nothing_is_left(), done


LINES = {
    "an option": ("--index-url https://example.com/simple", "requirements, line 2: '--index-url https://example.com/simple': options are not taken from a file"),
    "an editable": ("-e .", "requirements, line 2: '-e .': options are not taken"),
    "a path": ("./greeting-1.0-py3-none-any.whl", "requirements, line 2: './greeting-1.0-py3-none-any.whl': expected NAME"),
    "an address": ("greeting @ git+https://example.com/greeting", "requirements, line 2: greeting @ 'git+https://example.com/greeting': addresses are refused"),
    "no such package": ("absent==1.0", "no wheel of absent==1.0 at the directory of wheels fits Python 3."),
    "an option behind a hash": (f"greeting==1.0 --hash=sha256:{64 * '0'} --no-binary=:all:", "what follows the version can only be --hash"),
    "a file of the jail": ("greeting.tar.gz", "is the name of a file"),
    "a wrong hash": (f"greeting==1.0 --hash=sha256:{64 * '0'}", "THESE PACKAGES DO NOT MATCH THE HASHES"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", LINES)
def test_a_line_that_names_no_wheel_is_refused_with_its_number_and_nothing_runs(shop, case):
    wheel(shop.wheels, "greeting", GREETING)
    (shop.top / "requirements.txt").write_text(f"\n{LINES[case][0]}\n")
    done = shop.run("--requirements", shop.top / "requirements.txt", code="print('ran')")
    assert done.returncode == 125 and LINES[case][1] in done.stderr and done.stdout == "" and shop.nothing_is_left(), done


def test_after_a_module_that_is_not_there_one_line_names_the_way(shop):
    lines = shop.brig("run", "--private", "-c", "import greeting").stderr.splitlines()
    assert lines[-2:] == ["ModuleNotFoundError: No module named 'greeting'", "brig: greeting is not in the rootfs, and a program installs nothing: brig run --with greeting finds a package of that name; "
                          "--requirements FILE, those of a project"]
    for code in ("import os.absent", "try:\n    import absent\nexcept ImportError as e:\n    print(f'ModuleNotFoundError: {e}, and more', file=__import__('sys').stderr); exit(1)", "raise ModuleNotFoundError(\"No module named 'a b'\")"):
        assert "brig:" not in shop.brig("run", "--private", "-c", code).stderr


# --- hostile wheels ---

def raw_wheel(folder, entries, name="evil"):
    """A wheel of (name, bytes or None for a link to /etc/shadow); its RECORD lists what it likes."""
    info = f"{name}-1.0.dist-info"
    about = [(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode()), (f"{info}/WHEEL", b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
             (f"{info}/RECORD", b"../../../../etc/passwd,,\n")]
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in [*entries, *[row for row in about if row[0] not in {path for path, _ in entries}]]:
            head = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            head.external_attr = (0o120777 if data is None else 0o104755) << 16
            head.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(head, b"/etc/shadow" if data is None else data)


REFUSED_WHEELS = {
    "a path that climbs": ([("../../../../../../tmp/climbed", b"x")], "evil"),
    "an absolute path": ([("/workspace/out/layer.tar", b"x"), ("/tmp/climbed", b"x")], "evil"),
    "metadata of another package": ([("evil-1.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: good\nVersion: 1.0\n")], "its metadata is of another package, 'good'"),
    "no metadata": ([("evil-1.0.dist-info/METADATA", b"")], "pip: "),
    "a name that a terminal would obey": ([("evil/\x1b[31m.py", b"x = 1\n")], "is not printable"),
}


@pytest.mark.nightly
@pytest.mark.parametrize("case", REFUSED_WHEELS)
def test_a_hostile_wheel_is_refused_and_leaves_nothing_on_the_host(shop, case):
    wheel(shop.wheels, "greeting", GREETING)
    assert shop.run("--with", "greeting").returncode == 0 # the control: this directory and these words work
    raw_wheel(shop.wheels, REFUSED_WHEELS[case][0])
    before = len(list((shop.store / "trees").iterdir()))
    done = shop.run("--with", "evil", code="print('ran')")
    assert done.returncode == 125 and REFUSED_WHEELS[case][1] in done.stderr and done.stdout == "", done
    assert not terminal.obeyed(done.stderr) and not os.path.lexists("/tmp/climbed")
    assert len(shop.layers()) == 1 and len(list((shop.store / "trees").iterdir())) == before and not list((shop.store / "tmp").iterdir())


@pytest.mark.gate
def test_code_of_a_wheel_runs_only_in_the_program_that_imports_it(shop):
    """Entry points, .pth files, set-id bits, links, and a sitecustomize: all of it is in the layer, and none of it does anything by itself."""
    mark = b"import os; open('/workspace/ran', 'w').close()\n"
    raw_wheel(shop.wheels, [("evil.pth", mark), ("sitecustomize.py", mark), ("usercustomize.py", mark), ("link", None), ("os.py", mark), ("evil.py", b"def x(): pass\n"),
                            ("evil-1.0.dist-info/entry_points.txt", b"[console_scripts]\nevil = evil:x\npython3 = evil:x\n"), ("evil-1.0.data/scripts/pip", b"#!python\n" + mark),
                            ("evil-1.0.data/data/etc/profile", b"x")])
    done = shop.run("--with", "evil", code=f"import os, evil, sys; print(os.path.exists('ran'), os.__file__.startswith('/usr/lib/'), os.path.islink('{PLACE}/link'), sys.executable)")
    assert (done.returncode, done.stdout) == (0, "False True False /usr/bin/python3\n"), done
    [tree] = [layer / "tree" for layer in shop.layers()]
    for path in tree.rglob("*"):
        mode = path.lstat()
        assert stat.S_ISREG(mode.st_mode) or stat.S_ISDIR(mode.st_mode), path
        assert not mode.st_mode & 0o7022 and mode.st_uid == os.geteuid(), path
    plain = shop.brig("brig", "exec", "--private", "--find-links", shop.wheels, "--with", "evil", "--", "python3", "-c", "import os, evil; print(os.path.exists('/workspace/ran'))")
    assert plain.stdout == "False\n", plain # without -I, site looks for usercustomize as well
    control = shop.run("--with", "evil", code=f"import os, runpy; runpy.run_path('{PLACE}/sitecustomize.py'); print(os.path.exists('ran'))")
    assert control.stdout == "True\n", control


@pytest.mark.nightly
def test_a_bomb_ends_at_the_limits_of_the_jail_with_words_that_name_them(shop):
    raw_wheel(shop.wheels, [("evil/zeros", bytes(1 << 30))])
    (shop.top / "small.json").write_text('{"extends": "basic", "limits": {"workspace_bytes": "32M"}, "ceilings": {"workspace_bytes": "64M"}}')
    done = shop.run("-p", "small", "--with", "evil", code="print('ran')", env={"BRIG_PROFILES": str(shop.top)})
    assert done.returncode == 125 and "workspace_bytes" in done.stderr and done.stdout == "" and shop.nothing_is_left(), done


@pytest.mark.nightly
def test_the_layer_is_read_only_and_a_program_cannot_change_what_the_next_run_sees(shop):
    wheel(shop.wheels, "greeting", GREETING)
    code = f"""
import errno, os
for act in (lambda: open('{PLACE}/greeting/__init__.py', 'a'), lambda: open('{PLACE}/new', 'w'), lambda: os.unlink('/opt/packages/requirements.txt'),
            lambda: os.chmod('{PLACE}/greeting', 0o777), lambda: os.rename('{PLACE}/greeting', '{PLACE}/other')):
    try:
        act()
        print("could")
    except OSError as e:
        print(errno.errorcode[e.errno])
"""
    assert set(shop.run("--with", "greeting", code=code).stdout.split()) <= {"EROFS", "EACCES", "EPERM"}
    assert shop.run("--with", "greeting", code="import greeting; greeting.main()").stdout == "hello from a wheel\n"


# --- the store ---

@pytest.mark.gate
def test_gc_keeps_a_layer_for_thirty_days_after_its_last_run(shop):
    wheel(shop.wheels, "greeting", GREETING)
    assert shop.run("--with", "greeting").returncode == 0
    [layer] = shop.layers()
    day = 24 * 3600
    os.utime(layer, (time.time() - 29 * day,) * 2, follow_symlinks=False)
    assert shop.brig("brig-rootfs", "gc").returncode == 0 and shop.layers() == [layer] and (layer / "tree").exists()
    assert shop.run("--with", "greeting").stderr == ""
    assert time.time() - layer.lstat().st_mtime < day # the run has set it
    os.utime(layer, (time.time() - 31 * day,) * 2, follow_symlinks=False)
    assert "would remove" in shop.brig("brig-rootfs", "gc", "--dry-run").stdout and shop.layers() == [layer]
    assert "removed" in shop.brig("brig-rootfs", "gc").stdout and shop.nothing_is_left()


@pytest.mark.nightly
def test_upgrade_asks_again(shop):
    wheel(shop.wheels, "greeting", GREETING)
    words = ["brig", "packages", "--find-links", shop.wheels, "greeting"]
    first = shop.brig(*words).stdout
    [layer] = shop.layers()
    made = layer.lstat().st_ino
    assert shop.brig(*words).stdout == first and layer.lstat().st_ino == made
    assert shop.brig(*words[:2], "--upgrade", *words[2:]).returncode == 0 and layer.lstat().st_ino != made


# --- a service ---

@pytest.mark.gate
def test_a_service_takes_packages_from_nowhere_unless_its_profile_names_a_place(shop, service):
    wheel(shop.wheels, "greeting", GREETING)
    with service(open={"packages": {"find_links": str(shop.wheels)}}) as running:
        env = {"BRIG_SOCKET": str(running.path)}
        refused = shop.brig("run", "--find-links", shop.wheels, "--with", "greeting", "-c", "print('ran')", env=env)
        assert refused.returncode == 125 and refused.stdout == "", refused
        assert "profile basic takes packages from nowhere; who administers this service can allow it: write" in refused.stderr and "/etc/brig/profiles/NAME.json" in refused.stderr
        assert not shop.layers()
        done = shop.brig("run", "-p", "open", "--with", "greeting", "-c", "import greeting; greeting.main()", env=env)
        assert (done.returncode, done.stdout) == (0, "hello from a wheel\n"), done.stderr
        # a layer that the user has is refused as well, where the profile takes none
        asked = shop.brig("run", "--private", "--find-links", shop.wheels, "--with", "greeting", "-c", "pass")
        assert asked.returncode == 0
        again = shop.brig("run", "--find-links", shop.wheels, "--with", "greeting", "-c", "print('ran')", env=env)
        assert again.returncode == 125 and "takes packages from nowhere" in again.stderr, again


def test_an_empty_table_turns_packages_off_in_private_runs_too(shop):
    (shop.top / "none.json").write_text('{"extends": "basic", "packages": {}}')
    done = shop.run("-p", "none", "--with", "greeting", env={"BRIG_PROFILES": str(shop.top)})
    assert done.returncode == 125 and "profile none takes packages from nowhere; you can allow it" in done.stderr and shop.nothing_is_left(), done
