"""The AppArmor profiles in force: what has them, what does not, what a refusal looks like.

Ubuntu keeps user namespaces from every program without a profile. Debian does not; here a shell has a profile that does.

    BRIG_VM_SUITE=trixie BRIG_VM_TESTS=tests/systemd/test_apparmor.py ./dev test nightly     # this alone; it is part of the guest debian13
"""
import os
import pathlib
import shutil
import subprocess

import pytest

from support import host, service

PROFILES = "/usr/local/share/brig/apparmor/brig"
POLICY = pathlib.Path("/sys/kernel/security/apparmor/policy/profiles")
SHELL = """abi <abi/4.0>,
profile {name} {{
  file, capability, network, mount, umount, pivot_root, signal, ptrace, unix, dbus, mqueue, change_profile,
  {brig}
}}
"""
ALL_BUT_USERNS, WITHOUT_BRIG = "brig-test-shell", "brig-test-stranger"
LABEL = "import os; print(open('/proc/self/attr/current').read().strip())"


def parser(option, text=None, *files):
    return subprocess.run(["apparmor_parser", "--skip-cache", option, *files], input=text, capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def profiles():
    if not shutil.which("apparmor_parser") or not os.path.exists("/etc/apparmor.d/abi/4.0") or "userns_create" not in host.read("/sys/kernel/security/apparmor/features/namespaces/mask"):
        pytest.skip("needs a kernel and an AppArmor that decide about user namespaces: " + __doc__.split("\n\n")[2].strip())
    texts = [(SHELL.format(name=ALL_BUT_USERNS, brig="/usr/local/bin/brig px -> brig,")), SHELL.format(name=WITHOUT_BRIG, brig="")]
    for done in [parser("-r", None, PROFILES), *(parser("-r", text) for text in texts)]:
        assert done.returncode == 0, done.stderr
    service.systemctl("stop", service.UNIT)
    yield
    for text in texts:
        parser("-R", text)
    parser("-R", None, PROFILES)
    service.systemctl("stop", service.UNIT)


def confined(profile, *argv, env=()):
    return subprocess.run(["aa-exec", "-p", profile, "--", "env", *env, *map(str, argv)], capture_output=True, text=True, timeout=host.HANG, **service.as_user(service.MEMBER))


def test_only_brig_has_a_profile_by_its_path():
    attached = {path.parent.name.split(".")[0]: path.read_text().strip() for path in POLICY.glob("brig*/attach")}
    assert [name for name, to in attached.items() if to != name] == ["brig"] and attached["brigd"] == "brigd", attached # without a path it is the name


def test_the_service_and_its_runs_work_with_the_profile_that_its_unit_names(anew):
    assert service.run(service.MEMBER, LABEL)["stdout"] == "brigd (unconfined)\n"
    assert host.read(f"/proc/{service.show('MainPID')}/attr/current").strip() == "brigd (unconfined)"


def test_brig_makes_user_namespaces_where_the_shell_it_is_typed_at_cannot():
    assert confined(ALL_BUT_USERNS, "unshare", "--user", "true").returncode == 1
    done = confined(ALL_BUT_USERNS, service.BRIG, "run", "--private", "-c", LABEL)
    assert (done.returncode, done.stdout) == (0, "brig (unconfined)\n"), done.stderr


def test_a_program_in_the_jail_makes_none_with_brigs_profile():
    done = confined(ALL_BUT_USERNS, service.BRIG, "run", "--private", "-c", "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.unshare(0x10000000), ctypes.get_errno())")
    assert (done.returncode, done.stdout) == (0, "-1 1\n"), done


@pytest.mark.parametrize("argv", [["/usr/local/sbin/brigd", "--foreground", "--socket", "/tmp/own.sock"], [service.BRIG, "run", "--private", "-c", "pass"]], ids=["brigd", "brig"])
def test_without_a_profile_the_refusal_is_one_clear_error(argv):
    done = confined(WITHOUT_BRIG, *argv)
    assert done.returncode != 0 and done.stdout == "" and "unshare(CLONE_NEWUSER): EACCES (layer: LSM" in done.stderr and "journalctl" in done.stderr, done


def test_a_users_own_service_is_started_through_brig(anew):
    done = confined(ALL_BUT_USERNS, "bash", "-c", f"exec -a brigd {service.BRIG} --version", env=["LD_DEBUG=libs"])
    assert done.stdout.startswith("brigd ") and "libexec" not in done.stderr, done
