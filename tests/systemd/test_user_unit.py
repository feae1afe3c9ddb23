"""A plain user's own brigd, of the user's own systemd: it serves that user, and nobody else."""
import os
import pathlib
import subprocess

import pytest

from support import host, service

UID = 1000
RUNTIME = f"/run/user/{UID}"


def manager(*args):
    return subprocess.run(["runuser", "-u", service.MEMBER, "--", "env", "-u", "DBUS_SESSION_BUS_ADDRESS", f"XDG_RUNTIME_DIR={RUNTIME}",
                           "systemctl", "--user", *args], capture_output=True, text=True)


@pytest.fixture
def own():
    """Its socket listens."""
    subprocess.run(["loginctl", "enable-linger", service.MEMBER], check=True)
    assert host.poll(lambda: os.path.exists(f"{RUNTIME}/bus"), 30), "the user's systemd did not come up"
    manager("daemon-reload")
    done = manager("enable", "--now", service.SOCKET)
    assert done.returncode == 0, done.stderr
    yield
    manager("disable", "--now", service.SOCKET)
    manager("stop", service.UNIT)


def test_a_run_goes_through_the_users_own_daemon_and_not_the_hosts(anew, own):
    assert manager("is-active", service.UNIT).stdout.strip() == "inactive"
    record = service.run(service.MEMBER, "print(5)")
    assert (record["exit_reason"], record["stdout"]) == ("exited", "5\n"), record
    assert manager("is-active", service.UNIT).stdout.strip() == "active", service.journal(f"_UID={UID}", lines=30)
    assert service.show("ActiveState") == "inactive"


def test_it_has_the_users_subordinate_ids_and_the_limits_that_were_delegated(anew, own):
    isolation = service.run(service.MEMBER, "pass")["isolation"]
    delegated = set(host.read(f"/sys/fs/cgroup/user.slice/user-{UID}.slice/user@{UID}.service/cgroup.controllers").split())
    assert "own-ids" in isolation, isolation
    assert ("memory-limit" in isolation) == ("memory" in delegated), isolation


def test_it_is_reloaded_by_its_user(anew, own):
    service.run(service.MEMBER, "pass")
    done = manager("reload", service.UNIT)
    assert done.returncode == 0, done.stderr
    assert host.poll(lambda: "were read again" in service.journal(f"_UID={UID}", lines=50), 5)


def test_nobody_else_reaches_it(anew, own):
    path = pathlib.Path(f"{RUNTIME}/brig/brig.sock")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_it_ends_with_its_socket_and_leaves_nothing(anew, own):
    service.run(service.MEMBER, "pass")
    manager("stop", service.SOCKET)
    assert manager("is-active", service.UNIT).stdout.strip() == "inactive"
    assert host.poll(lambda: not os.path.exists(f"{RUNTIME}/brig/brig.sock"), 5)
