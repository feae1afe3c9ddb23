"""brig inside of containers: with the options of docs/guide/containers-and-ci.md it runs, without them doctor names what is missing."""
import json
import pathlib
import subprocess

import pytest

from support import host, service

ROOT = pathlib.Path("/run/ct")
DOCKER = "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE".split()
BUILDS = """clone unshare setns mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr keyctl""".split()
NEVER = "bpf perf_event_open add_key request_key".split()
STEP_DOWN = "mkdir /sys/fs/cgroup/init && xargs -rn1 < /sys/fs/cgroup/cgroup.procs > /sys/fs/cgroup/init/cgroup.procs; "
RUN = ["brig", "run", "--json", "/root/a.py"]
LIMITS = {"missing:memory-limit", "missing:pids-limit", "missing:cpu-limit", "missing:cpu-time-limit"}
OWN_IDS = {"missing:own-ids"}
NESTED = {"missing:no-nested-ns"} # nspawn shows a read-only /proc/sys


@pytest.fixture(scope="module", autouse=True)
def root(installed):
    """The guest's own tree, with a layer over it that nothing of a container gets through."""
    if host.lacks("tool:crun") or host.lacks("tool:systemd-nspawn"):
        pytest.skip(host.lacks("tool:crun") or host.lacks("tool:systemd-nspawn"))
    over = pathlib.Path("/run/over")
    for folder in (over, ROOT):
        folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", over], check=True)
    for name in ("upper", "work"):
        (over / name).mkdir()
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={over}/upper,workdir={over}/work", ROOT], check=True)
    subprocess.run(["mount", "--bind", "/var/lib/brig/rootfs", ROOT / "var/lib/brig/rootfs"], check=True)
    (ROOT / "root/a.py").write_text("print(1 + 1)")
    (ROOT / "root").chmod(0o755)
    yield
    for place in (ROOT / "var/lib/brig/rootfs", ROOT, over):
        subprocess.run(["umount", place], check=True)


def finished(argv, cwd="/"):
    return subprocess.run([str(word) for word in argv], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG * 10)


def nspawn(argv, *options):
    return finished(["systemd-nspawn", "-q", "-D", ROOT, "--register=no", "--pipe", *options, *argv])


def crun(folder, argv, uid=0, caps=DOCKER, unmask=False, groups=False, refuse=()):
    """As Docker and Podman start containers; unmask: their systempaths=unconfined, unmask=ALL; groups: /sys/fs/cgroup can be written to."""
    subprocess.run(["crun", "spec"], cwd=folder, check=True)
    config = json.loads((folder / "config.json").read_text())
    held = [f"CAP_{cap}" for cap in caps]
    config["process"].update(terminal=False, args=argv, user={"uid": uid, "gid": uid}, noNewPrivileges=False,
                             capabilities={kind: held for kind in ("bounding", "effective", "permitted")},
                             rlimits=[{"type": "RLIMIT_NOFILE", "hard": 65536, "soft": 1024}], env=[f"PATH={service.PATH}", "HOME=/tmp"])
    config["root"] = {"path": str(ROOT), "readonly": False}
    if unmask:
        config["linux"].update(maskedPaths=[], readonlyPaths=[])
    for mount in config["mounts"] if groups else []:
        if mount["destination"] == "/sys/fs/cgroup":
            mount["options"].remove("ro")
    if not any(one["type"] == "cgroup" for one in config["linux"]["namespaces"]):
        config["linux"]["namespaces"].append({"type": "cgroup"})
    if refuse:
        config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
                                      "syscalls": [{"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, **args} for name, args in rules(refuse)]}
    (folder / "config.json").write_text(json.dumps(config))
    return finished(["crun", "run", f"brig-{folder.name}"], folder)


def rules(refuse):
    """Docker's filter lets a clone without namespaces pass, and has no word on clone3 but that it does not exist."""
    namespaces = {"args": [{"index": 0, "value": 0x7E020000, "valueTwo": 0x10000000, "op": "SCMP_CMP_MASKED_EQ"}]}
    for name in refuse:
        yield name, namespaces if name == "clone" else {}
    if "clone" in refuse:
        yield "clone3", {"errnoRet": 38}


def ran(done, missing):
    record = json.loads(done.stdout[done.stdout.index("{"):])
    assert (record["exit_reason"], record["stdout"]) == ("exited", "2\n"), done
    assert {word for word in record["isolation"] if word.startswith("missing:")} - {"missing:inert-ro", "missing:landlock"} == missing, record["isolation"]


def refused(done, row):
    """Doctor finds the row that a run fails for, and its verdict begins with it."""
    found = json.loads(done.stdout[done.stdout.index("{"):])
    assert not found["can_run"] and found["verdict"].endswith(f"first: {row}."), found["verdict"]
    assert next(one for one in found["rows"] if one["name"] == row)["fix"], found


DOCTOR = ["brig", "doctor", "--json"]


def test_docker_s_own_filter_is_told(tmp_path):
    refused(crun(tmp_path, DOCTOR, unmask=True, refuse=BUILDS + NEVER), "user-namespace")


def test_masked_paths_are_told(tmp_path):
    refused(crun(tmp_path, DOCTOR, uid=1000, caps=()), "proc")


def test_nspawn_s_own_filter_is_told():
    refused(nspawn(DOCTOR), "keyring")


@pytest.mark.parametrize("words, missing", [
    ({"uid": 1000, "caps": ()}, LIMITS | OWN_IDS), ({}, LIMITS | OWN_IDS), ({"groups": True}, OWN_IDS), ({"groups": True, "refuse": NEVER}, OWN_IDS),
    ({"groups": True, "caps": [*DOCKER, "SYS_ADMIN", "NET_ADMIN"]}, set()),
], ids=["a user", "root", "root with control groups", "with a filter that allows what builds jails", "root with two capabilities more"])
def test_a_program_runs_in_an_oci_container(tmp_path, words, missing):
    ran(crun(tmp_path, RUN, unmask=True, **words), missing)


@pytest.mark.parametrize("options, missing", [((), NESTED | OWN_IDS), (("--private-network",), NESTED)], ids=["with the host's network", "with a network of its own"])
def test_a_program_of_root_runs_in_nspawn(options, missing):
    """The shell that brig is started from must leave the top group, as doctor says."""
    ran(nspawn(["sh", "-c", STEP_DOWN + " ".join(RUN)], "--system-call-filter=@keyring", *options), missing)


def test_a_program_of_a_user_runs_in_nspawn():
    ran(nspawn(["runuser", "-u", service.MEMBER, "--", *RUN], "--system-call-filter=@keyring"), NESTED | LIMITS)
