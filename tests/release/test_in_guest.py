"""The Debian packages under a real systemd: installed, upgraded while a run goes on, purged.

    ./dev deb; BRIG_VM_TIERS=long BRIG_VM_TESTS=tests/release/test_in_guest.py ./dev test nightly
"""
import os
import pathlib
import pwd
import subprocess

import pytest

from support import host

pytestmark = pytest.mark.long
DEB = pathlib.Path(__file__).resolve().parents[2] / "build/deb"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
USER = "plain"


def do(*words, **kw):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, env={"PATH": PATH, "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}, **kw)


def must(*words, **kw):
    done = do(*words, **kw)
    assert done.returncode == 0, done
    return done.stdout


def as_user(*words):
    return ["runuser", "-u", USER, "--", "env", "HOME=/tmp", f"PATH={PATH}", *words]


def install():
    return must("dpkg", "-i", *sorted(DEB.glob("*.deb")))


@pytest.fixture(scope="module", autouse=True)
def guest():
    if os.geteuid() != 0 or host.read("/proc/1/comm").strip() != "systemd" or not list(DEB.glob("*.deb")):
        pytest.skip("needs a guest with systemd, and packages: " + __doc__.split("\n\n")[1].strip())
    yield
    do("dpkg", "--purge", "brig-mcp", "brig-rootfs-basic", "brig")


def test_installing_starts_nothing_and_makes_accounts_and_places(guest):
    install()
    assert {"_brig-door", "_brig-keeper"} <= {entry.pw_name for entry in pwd.getpwall()}
    assert do("systemctl", "is-enabled", "brigd.socket").stdout == "disabled\n" and do("systemctl", "is-active", "brigd.socket").stdout == "inactive\n"
    assert must("brig", "run", "-c", "print(6 * 7)") == "42\n"


def test_three_lines_make_a_service_of_it_that_a_member_uses(guest):
    install()
    must("usermod", "-aG", "brig", USER)
    must("systemctl", "enable", "--now", "brigd.socket")
    assert must(*as_user("brig", "run", "-c", "print(6 * 7)")) == "42\n"
    assert "basic" in must(*as_user("brig", "stats"))


def test_an_upgrade_ends_no_run_and_a_restart_brings_the_new_version(guest):
    install()
    must("usermod", "-aG", "brig", USER)
    must("systemctl", "enable", "--now", "brigd.socket")
    run = subprocess.Popen(as_user("brig", "run", "--timeout", "300", "-c", "print('up', flush=True); print(input())"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "up\n"
    before = must("systemctl", "show", "--value", "-p", "MainPID", "brigd.service")
    said = install()
    assert "systemctl restart brigd" in said and must("systemctl", "show", "--value", "-p", "MainPID", "brigd.service") == before
    assert must(*as_user("brig", "run", "-c", "print('beside')")) == "beside\n"
    out, _ = run.communicate("through\n")
    assert (run.returncode, out) == (0, "through\n")
    must("systemctl", "restart", "brigd.service")
    assert must(*as_user("brig", "run", "-c", "print('after')")) == "after\n"
    assert must("systemctl", "show", "--value", "-p", "MainPID", "brigd.service") != before


def test_a_purge_while_the_service_runs_leaves_nothing(guest):
    install()
    must("usermod", "-aG", "brig", USER)
    must("systemctl", "enable", "--now", "brigd.socket")
    must(*as_user("brig", "run", "-c", "pass"))
    must("dpkg", "--purge", "brig-mcp", "brig-rootfs-basic", "brig")
    assert host.poll(lambda: do("pgrep", "-f", "brigd|brig-monitor|brig-supervisor").returncode == 1), do("ps", "-ef").stdout
    for place in "/var/lib/brig", "/var/log/brig", "/run/brig", "/etc/brig", "/usr/share/brig", "/usr/libexec/brig":
        assert not os.path.exists(place), place
    units = must("systemctl", "list-unit-files")
    assert [unit for unit in ("brigd.socket", "brigd.service", "brig-api.service", "brig-mcp.service", "brig-metrics.service", "brig.slice") if unit in units] == []
    assert "_brig-" not in must("getent", "passwd") and "\nbrig:" not in must("getent", "group")
