"""What lies there after an installation: units, accounts, places; and what a unit that takes away too much is told."""
import os
import pathlib
import stat
import subprocess

import pytest

from support import host, service


@pytest.mark.requirement("A97")
def test_systemd_finds_no_fault_with_the_installed_units():
    units = [path for path in pathlib.Path("/usr/local/lib/systemd/system").iterdir()]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_systemd_counts_little_exposure(tell):
    done = subprocess.run(["systemd-analyze", "security", "--no-pager", service.UNIT], capture_output=True, text=True)
    last = done.stdout.strip().splitlines()[-1]
    tell(f"systemd-analyze security: {last.encode('ascii', 'ignore').decode().strip()}")
    assert float(last.split(": ")[1].split()[0]) < 4.5, done.stdout


@pytest.mark.parametrize("path,kind,mode,owner,group", [
    ("/run/brig", stat.S_ISDIR, 0o755, "root", "root"),
    ("/run/brig/slots", stat.S_ISREG, 0o660, "root", "_brig-keeper"),
    ("/run/brig/failure", stat.S_ISREG, 0o664, "_brig-door", "_brig-keeper"),
    ("/run/brig/brig.sock", stat.S_ISSOCK, 0o660, "root", "brig"),
    ("/var/log/brig", stat.S_ISDIR, 0o2750, "_brig-door", "adm"),
])
def test_places_belong_to_whom_they_should(anew, path, kind, mode, owner, group):
    entry = pathlib.Path(path)
    assert kind(entry.lstat().st_mode)
    assert (stat.S_IMODE(entry.lstat().st_mode), entry.owner(), entry.group()) == (mode, owner, group)


def test_the_audit_is_there_for_the_group_of_its_folder_to_read(config):
    config('{"audit": {"file": "/var/log/brig/test.log"}}')
    log = pathlib.Path("/var/log/brig/test.log")
    try:
        service.run(service.MEMBER, "pass")
        assert (stat.S_IMODE(log.stat().st_mode), log.owner(), log.group()) == (0o640, "_brig-door", "adm")
    finally:
        log.unlink(missing_ok=True)


def test_a_lock_file_that_root_made_first_becomes_the_services_too(anew):
    os.chown("/run/brig/slots", 0, 0)
    os.chmod("/run/brig/slots", 0o600)
    subprocess.run(["systemd-tmpfiles", "--create", "/usr/local/lib/tmpfiles.d/brig.conf"], check=True)
    entry = pathlib.Path("/run/brig/slots")
    assert (stat.S_IMODE(entry.stat().st_mode), entry.owner(), entry.group()) == (0o660, "root", "_brig-keeper")


@pytest.mark.parametrize("account", ["_brig-door", "_brig-keeper"])
def test_nobody_logs_in_to_the_accounts(account):
    entry = host.read("/etc/passwd").split(f"\n{account}:")[1].splitlines()[0].split(":")
    assert entry[-1] == "/usr/sbin/nologin" and not os.path.exists(entry[-2])


def test_the_socket_goes_when_it_is_not_to_listen_any_more(anew):
    service.systemctl("stop", service.SOCKET, check=True)
    assert not os.path.exists("/run/brig/brig.sock")


def test_in_the_unit_as_it_is_everything_is_there(running):
    said = service.journal("-u", service.UNIT, "-o", "cat", "-b")
    assert said.rstrip().count("The default profile can run here.") >= 1, said


# --- traps: settings that look like hardening and take from jails what they are made of ---

@pytest.fixture(scope="module")
def stopped(installed):
    """Only the socket is there, before and after."""
    service.begin_anew()
    yield
    service.reload(trap="")
    service.begin_anew()


@pytest.fixture
def trap(stopped):
    """trap(settings): what the journal has when a unit with these is started."""
    def start(settings):
        service.reload(trap=settings + "\nRestart=no")
        begin = service.journal("-o", "export", lines=1).partition("__CURSOR=")[2].splitlines()[0]
        done = service.systemctl("start", service.UNIT)
        assert done.returncode != 0, f"it started with {settings}"
        return service.journal("-u", service.UNIT, "-o", "cat", f"--after-cursor={begin}")
    yield start
    service.systemctl("reset-failed", service.UNIT)
    assert host.poll(lambda: not service.left(), 5), f"left behind: {service.left()}"


@pytest.mark.parametrize("settings,row,fix", [
    ("ProtectHostname=yes", "uts-namespace", "in the unit: ProtectHostname=no"),
    ("RestrictSUIDSGID=yes", "openat2", "in the unit: RestrictSUIDSGID=no"),
    ("RestrictNamespaces=user mnt pid net ipc uts", "clone3", "in the unit: RestrictNamespaces=no"),
    ("ProtectControlGroups=yes", "memory-limit", "ProtectControlGroups=no"),
    ("Delegate=no", "memory-limit", "in the unit: Delegate="),
    ("IPAddressDeny=any", "net-namespace", "in the unit: no IPAddressDeny="),
    ("CapabilityBoundingSet=\nAmbientCapabilities=", "id-range", "CAP_SETUID CAP_SETGID"),
])
def test_a_setting_that_takes_from_jails_what_they_need_keeps_the_service_from_starting_and_is_named(trap, settings, row, fix):
    said = trap(settings)
    assert any(line.startswith(row) and "missing" in line for line in said.splitlines()), said
    assert fix in " ".join(said.split()), said
    assert "cannot run here" in said
