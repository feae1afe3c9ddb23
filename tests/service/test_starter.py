"""What root's brigd finds where it is started: places, sockets and folders that others have prepared."""
import os
import pathlib
import stat
import subprocess

import pytest

from rules import MANY
from support import brig, device_locks, host
from support import daemon as daemons

BRIG_GROUP = host.own_id(8)


@pytest.fixture
def with_group(tmp_path):
    """The service's accounts, and the group brig as packaging makes it."""
    for name in ("passwd", "group"):
        more = "".join(f"{account}:x:{id_}:{f'{id_}::/:/usr/sbin/nologin' if name == 'passwd' else ''}\n" for account, id_ in daemons.ACCOUNTS.items())
        (tmp_path / name).write_text(host.read(f"/etc/{name}") + more + (f"brig:x:{BRIG_GROUP}:\n" if name == "group" else ""))
    return ("unshare", "--mount", "--propagation", "private", "sh", "-ec", daemons.WITH_ACCOUNTS, "sh", str(tmp_path))


def start(*options, cwd="/"):
    """A start that fails: status and the last line of what it says."""
    done = subprocess.run([daemons.binary(), "--foreground", *map(str, options)], env=brig.environment(), capture_output=True, text=True, cwd=cwd,
                          stdin=subprocess.DEVNULL, timeout=host.HANG)
    return done.returncode, done.stderr.strip().splitlines()[-1]


def test_the_socket_is_the_groups_from_its_first_moment(start_daemon, with_group):
    """It is bound with the mode that it keeps: a chmod() would follow a link that somebody put in its place."""
    daemon = start_daemon(MANY, through=with_group)
    status = os.stat(daemon.path)
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o660, 0, BRIG_GROUP)


def test_without_the_group_the_socket_is_roots(start_daemon):
    status = os.stat(start_daemon(MANY).path)
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o600, 0, 0)


@pytest.mark.parametrize("kind", ["file", "link", "fifo", "folder"])
def test_what_is_no_socket_is_left_alone(built, tmp_path, kind):
    secret, path = tmp_path / "secret", tmp_path / "brig.sock"
    secret.write_text("secret")
    {"file": lambda: path.write_text("mine"), "link": lambda: path.symlink_to(secret), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    before = os.lstat(path)
    assert start("--socket", path) == (1, f"brigd: {path}: is not a socket; it was not changed")
    assert os.lstat(path) == before and secret.read_text() == "secret"


def test_a_relative_socket_is_refused(built, tmp_path):
    """The folder that it means is whatever folder root happens to stand in."""
    status, said = start("--socket", "./brig.sock", cwd=tmp_path)
    assert status == 1 and said.endswith("./brig.sock: not the absolute path of a file in a directory")
    assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_profiles_that_are_no_files_hold_nobody_up(start_daemon, tmp_path):
    """A fifo, a device, a file of a gigabyte."""
    folder = tmp_path / "profiles"
    folder.mkdir()
    for path in (host.REPO / "profiles").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    os.mkfifo(folder / "fifo.json")
    (folder / "zero.json").symlink_to("/dev/zero")
    with open(folder / "huge.json", "wb") as huge:
        huge.truncate(1 << 30)
    daemon = start_daemon(MANY, env={"BRIG_PRESETS": str(folder)})
    assert daemon.run("print('served')").stdout == "served\n"
    view = pathlib.Path(f"/proc/{daemon.one('monitor')}/root/run/brig/view/profiles-3{folder}")
    stand_ins = {"fifo.json", "huge.json", "zero.json"} # which are refused as the files would be
    assert {path.name for path in view.iterdir()} == {path.name for path in (host.REPO / "profiles").iterdir()} | stand_ins
    assert not any(os.stat(view / name).st_blocks for name in stand_ins)


def test_a_lock_on_a_device_is_not_met_by_programs_of_the_host(start_daemon):
    """The service has device nodes of its own. (An installed one gets them of systemd: PrivateDevices=.)"""
    with start_daemon(MANY).connect() as talk:
        run = talk.start(device_locks.TAKE + "import time; print('has them', flush=True); time.sleep(600)")
        assert run.line() == "has them"
        assert device_locks.met_on_host() == []
