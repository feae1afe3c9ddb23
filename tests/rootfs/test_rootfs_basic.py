"""The tree of recipes/basic.json: what it must hold, and must not."""
import json
import os
import stat
import subprocess

import pytest

from support import host

MODULES = """math cmath random statistics decimal fractions collections itertools functools heapq bisect operator copy string textwrap re difflib
unicodedata base64 binascii hashlib hmac secrets json csv html.parser xml.etree.ElementTree urllib.parse html configparser datetime uuid calendar
dataclasses enum typing time abc contextlib types email smtplib ftplib urllib.request pathlib os.path tempfile shutil glob zipfile tarfile ssl sqlite3
ctypes ctypes.util lzma bz2 zlib gzip zoneinfo curses readline dbm.gnu dbm.ndbm dbm.sqlite3 venv asyncio multiprocessing
concurrent.futures threading subprocess socket select signal pdb pydoc unittest logging logging.config argparse pickle struct array mmap resource
fcntl pwd grp termios tty pty syslog xml.sax xml.dom.minidom http.server http.cookiejar xmlrpc.client wsgiref.simple_server
importlib.metadata importlib.resources tomllib graphlib""".split()

PROGRAMS = "sh bash ls cat true echo cp mv rm mkdir find grep sed awk tar gzip head tail sort wc cut tr diff env date which python3".split()


def entries(tree):
    for folder, names, files in os.walk(tree):
        for name in names + files:
            path = os.path.join(folder, name)
            yield path, os.lstat(path)


def inside(tree, mount_point, *command, **kwargs):
    """A command with the tree as /, read-only as in a jail, with a /dev/null and a /tmp, without a network."""
    script = """mount --bind "$1" "$2" && mount -o remount,bind,ro "$2" && mount --bind /dev/null "$2/dev/null" &&
                mount -t tmpfs none "$2/tmp" && cd / && to=$2 && shift 2 && exec chroot "$to" "$@" """
    return subprocess.run(["unshare", "-m", "-n", "sh", "-c", script, "sh", tree, mount_point, *command], text=True, capture_output=True,
                          env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}, timeout=host.HANG, **kwargs)


@pytest.fixture
def run(basic, tmp_path, needs_root):
    return lambda *command, **kwargs: inside(basic.tree, tmp_path, *command, **kwargs)


def python(run, code):
    done = run("/usr/bin/python3", "-I", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_program_is_setuid_and_nothing_is_a_device(basic):
    for path, st in entries(basic.tree):
        assert stat.S_ISREG(st.st_mode) or stat.S_ISDIR(st.st_mode) or stat.S_ISLNK(st.st_mode), path
        assert not st.st_mode & (stat.S_ISUID | stat.S_ISGID) or stat.S_ISLNK(st.st_mode), path


def test_modes_are_0755_and_0644_and_the_owner_is_root_whatever_the_umask_was(basic):
    for path, st in entries(basic.tree):
        if stat.S_ISLNK(st.st_mode):
            continue
        assert stat.S_IMODE(st.st_mode) in ((0o755,) if stat.S_ISDIR(st.st_mode) else (0o644, 0o755)), path
        assert st.st_uid in (0, os.geteuid()), path


def test_the_tree_has_at_most_64_megabytes(basic):
    size = sum(st.st_size for _, st in entries(basic.tree) if stat.S_ISREG(st.st_mode))
    assert size == basic.row["size"]
    assert size <= 64_000_000
    assert sum(st.st_blocks * 512 for _, st in entries(basic.tree)) <= 67 << 20 # in whole blocks


def test_no_package_manager_perl_documentation_or_translation_is_left(basic):
    for path in "usr/bin/apt usr/bin/dpkg usr/bin/perl usr/share/doc usr/share/man usr/share/locale var/lib/dpkg etc/apt".split():
        assert not (basic.tree / path).exists(), path


def test_lint_finds_nothing(basic):
    basic.must("lint", basic.tree)


@pytest.mark.requirement("A79", "A101")
def test_verify_finds_the_tree_sound(basic):
    assert basic.must("verify", "basic").stdout == f"{basic.row['digest']} is sound\n"


def test_the_places_a_jail_mounts_over_exist(basic):
    for path in "proc sys tmp workspace dev dev/pts dev/shm run var/tmp".split():
        assert (basic.tree / path).is_dir(), path
    for path in "dev/null dev/zero dev/full dev/random dev/urandom".split():
        assert stat.S_ISREG(os.lstat(basic.tree / path).st_mode) and os.path.getsize(basic.tree / path) == 0, path
    for name, target in {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}.items():
        assert os.readlink(basic.tree / "dev" / name) == target
    assert os.readlink(basic.tree / "dev/ptmx") == "pts/ptmx" and not list((basic.tree / "dev/pts").iterdir()), "filled in sessions with terminals alone"
    assert not os.path.lexists(basic.tree / "dev/tty")


def test_the_user_is_1000_and_lives_in_workspace(basic):
    assert "user:x:1000:1000:user:/workspace:/bin/sh" in (basic.tree / "etc/passwd").read_text().splitlines()
    assert "hosts: files dns" in (basic.tree / "etc/nsswitch.conf").read_text().splitlines()
    assert (basic.tree / "etc/hostname").read_text() == "brig\n"


@pytest.mark.requirement("A27", "A116")
def test_the_manifest_names_every_package_with_its_version_and_no_time_or_host(basic):
    text = (basic.tree.parent / "manifest.json").read_text()
    manifest = json.loads(text)
    packages = {row["name"]: row["version"] for row in manifest["packages"]}
    assert packages["python3.13"].startswith("3.13.")
    assert len(packages) > 40 and all(packages.values())
    assert "mtime" not in text and "://" not in text
    paths = [row["path"].encode() for row in manifest["files"]]
    assert paths == sorted(paths) and len(set(paths)) == len(paths)
    assert manifest["bytes"] == basic.row["size"]


def test_no_file_of_the_build_machine_came_along(basic):
    assert not os.path.lexists(basic.tree / "etc/apt")


@pytest.mark.requirement("A12", "A64", "A65", "A66", "A67", "A68", "A69")
def test_every_module_of_the_standard_library_imports(run):
    failed = python(run, f"""
import importlib, warnings
warnings.simplefilter("ignore")
for name in {MODULES!r}:
    try:
        importlib.import_module(name)
    except BaseException as e:
        print(name, repr(e))
""")
    assert failed == ""


def test_ssl_trusts_the_bundle_of_certificates(run):
    assert int(python(run, "import ssl; print(len(ssl.create_default_context().get_ca_certs()))")) > 100


def test_time_zones_locale_and_services_are_known(run):
    assert python(run, """
import locale, socket, zoneinfo, time, ctypes.util
locale.setlocale(locale.LC_ALL, "C.UTF-8")
print(zoneinfo.ZoneInfo("Europe/Berlin"), len(zoneinfo.available_timezones()) > 400, socket.getservbyname("https"), time.tzname[0], ctypes.util.find_library("c"))
""") == "Europe/Berlin True 443 UTC libc.so.6\n"


def test_dist_packages_are_on_the_path(run):
    assert "/usr/lib/python3/dist-packages" in python(run, "import sys; print(sys.path)")


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_examples_call_is_there(run, program):
    assert run("/bin/sh", "-c", f"command -v {program}").returncode == 0


def test_ls_and_cat_work_as_a_subprocess(run):
    assert "workspace" in python(run, "import subprocess; print(subprocess.run(['ls', '/'], capture_output=True, text=True, check=True).stdout)")
    assert run("/bin/true").returncode == 0


def test_pycs_have_an_unchecked_hash_and_the_path_that_the_jail_sees(run):
    assert python(run, """
import json.decoder, importlib.util
with open(json.decoder.__cached__, 'rb') as f:
    head = f.read(16)
with open(json.decoder.__file__, 'rb') as f:
    source = f.read()
print(int.from_bytes(head[4:8], 'little'), head[8:] == importlib.util.source_hash(source), json.decoder.JSONDecoder.decode.__code__.co_filename)
""") == "1 True /usr/lib/python3.13/json/decoder.py\n"


def test_a_second_build_says_at_once_that_it_is_built(basic):
    done = basic.must("build", "basic")
    assert done.stderr == "basic is already built from this recipe; --force builds it again\n"


@pytest.mark.nightly
@pytest.mark.requirement("A101")
def test_the_same_recipe_gives_the_same_digest_again(basic, rootfs):
    """From nothing, in another store, at another path, with a stricter umask."""
    rootfs.must("build", "basic", preexec_fn=lambda: os.umask(0o077))
    assert rootfs.rows()["basic"]["digest"] == basic.row["digest"]
