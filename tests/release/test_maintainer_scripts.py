"""What the scripts of the package do where something is in their way; nothing of it happens to this machine."""
import pathlib
import shutil
import subprocess

import pytest

from support import host

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "packaging/debian"


@pytest.fixture
def script(tmp_path):
    """script(NAME, WORD..., before=()): what it printed and the commands that it called. They are the only ones it finds, and only note that."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    for command, body in {"rm": "", "getent": "", "ln": "", "apparmor_parser": "", "groupdel": "", "userdel": "echo in use >&2; exit 8"}.items():
        (folder / command).write_text(f"#!/bin/sh\necho {command} $* >>{log}\n{body}\n")
        (folder / command).chmod(0o755)

    def run(name, *words, before=()):
        done = subprocess.run([*before, "/usr/bin/env", f"PATH={folder}", "/bin/sh", SCRIPTS / name, *words], capture_output=True, text=True, timeout=host.HANG)
        assert done.returncode == 0, done
        return done.stdout, log.read_text().splitlines()
    return run


def test_a_purge_goes_on_when_an_account_is_in_use_and_says_which_one_stays(script):
    said, called = script("brig.postrm", "purge")
    assert [line for line in called if "del " in line] == ["userdel _brig-door", "userdel _brig-keeper", "groupdel brig"]
    assert "_brig-door stays" in said and "_brig-keeper stays" in said


OTHER_PLACES = "mount -t tmpfs t /etc; mkdir /etc/apparmor.d; test -z \"$1\" || : >/etc/apparmor.d/brig; mount -t tmpfs t /proc/sys/kernel; : >/proc/sys/kernel/apparmor_restrict_unprivileged_userns; shift; exec \"$@\""


@pytest.mark.parametrize("there", ["", "there"], ids=["at the first", "later"])
def test_every_version_of_the_package_loads_its_own_apparmor_profile(needs_root, script, there):
    _, called = script("brig.postinst", "configure", *(["0.1.0"] if there else []), before=["unshare", "--mount", "sh", "-ec", OTHER_PLACES, "sh", there])
    assert called == ([] if there else ["ln -s /usr/share/brig/apparmor/brig /etc/apparmor.d/brig"]) + ["apparmor_parser -r /etc/apparmor.d/brig"]


@pytest.mark.parametrize("url, fields", [("git@forge.example:o/brig.git", ["Homepage: https://forge.example/o/brig", "Vcs-Browser: https://forge.example/o/brig", "Vcs-Git: https://forge.example/o/brig.git"]),
                                         ("https://me:token@forge.example/brig", []), ("/srv/brig.git", [])])
def test_a_package_names_who_built_it_and_where_its_source_is(tmp_path, url, fields):
    for name in "control", "changelog":
        shutil.copy(SCRIPTS / name, tmp_path)
    subprocess.run([SCRIPTS / "origin", tmp_path], env={"PATH": "/usr/bin", "DEBFULLNAME": "A & B", "DEBEMAIL": "a@b.example", "BRIG_VCS": url}, check=True, timeout=host.HANG)
    control, changelog = ((tmp_path / name).read_text().splitlines() for name in ("control", "changelog"))
    assert "Maintainer: A & B <a@b.example>" in control and [line for line in control if line.startswith(("Homepage", "Vcs"))] == fields
    assert any(line.startswith(" -- A & B <a@b.example>  Tue, 2") for line in changelog)
