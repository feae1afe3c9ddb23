"""brig doctor against hosts from which one thing after the other is really taken away.

Each case removes a primitive, in a namespace of its own or below a seccomp filter, and wants
exit status 1, the right row, the layer in its cause and the way out in its fix.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from support import brig as tool, users
from support.host import HANG, poll

BUILD = Path(os.environ.get("BRIG_BUILD", Path(__file__).resolve().parents[2] / "build"))
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes things away: needs root")

NAMESPACES = {f"{n}-namespace" for n in ("user", "mount", "pid", "net", "ipc", "uts", "cgroup")}
IN_A_NAMESPACE = NAMESPACES | {"id-range", "clone3", "proc", "tmpfs", "fsmount", "open-tree", "mount-setattr",
                               "pivot-root", "device-nodes"}
LIMITS = {"memory-limit", "pids-limit", "cpu-limit", "cpu-time"}
V1_LOSSES = {"io-figures"} # blkio of v1 does not know whose a write-back is
FIGURES = {"swap-limit", "io-figures", "memory-peak", "pids-peak", "clone-into-cgroup", "cgroup-kill"}


class Answer:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def row(self, name):
        return next(r for r in self.json["rows"] if r["name"] == name)

    def names(self, *results):
        return {r["name"] for r in self.json["rows"] if r["result"] in results}


class Host:
    """A copy of brig where everybody can read it, with a profile and a (hollow) rootfs."""

    def __init__(self, root):
        self.root = root
        self.brig = root / "bin" / "brig"
        self.refuse = BUILD / "tests" / "refuse"
        tree = root / "store" / "trees" / ("0" * 64)
        (tree / "tree" / "usr").mkdir(parents=True)
        (tree / "lock").touch()
        (root / "store" / "names").mkdir()
        (root / "store" / "names" / "basic").symlink_to(f"../trees/{tree.name}")
        (root / "profiles").mkdir()
        (root / "bin").mkdir()
        (root / "profiles" / "basic.json").write_text('{"rootfs": "basic", "policy": "python"}')
        (root / "brig.mark").touch() # it finds its programs beside itself
        for name in ("brig", "brig-doctor", "proxy"):
            shutil.copy(BUILD / "bin" / name, root / "bin")
        for path in (root, *root.rglob("*")):  # made, and built, under whatever umask
            path.chmod(0o644 if path.suffix == ".json" else 0o755)

    def env(self, **more):
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "BRIG_STORE": str(self.root / "store"),
                "BRIG_PRESETS": str(self.root / "profiles"), **more}

    def command(self, *args):
        return [str(self.brig), "doctor", *args]

    def doctor(self, *args, below=(), env=None, **how):
        done = subprocess.run([*map(str, below), *self.command(*args)], env=self.env() if env is None else env,
                              capture_output=True, text=True, timeout=HANG, cwd="/", **how)
        return Answer(done)

    def after(self, setup, *args, unshare=("-m",), **how):
        """brig doctor in namespaces of its own, after `setup` (shell) has changed them."""
        script = f"set -e; {setup}; exec \"$@\""
        return self.doctor(*args, below=["unshare", *unshare, "sh", "-c", script, "sh"], **how)


@pytest.fixture(scope="module")
def host():
    if not (BUILD / "bin" / "brig").exists():
        pytest.skip("no build: set BRIG_BUILD")
    root = Path(tempfile.mkdtemp(prefix="brig-test-doctor-"))
    yield Host(root)
    shutil.rmtree(root)


def as_nobody(**more):
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], **more}


def says(row, cause, fix):
    assert cause in row["cause"], row
    assert fix in row["fix"], row
    return True


# --- as it is here ---------------------------------------------------------------------------


@needs_root
def test_as_root_everything_needed_is_there(host):
    answer = host.doctor("--json")
    assert answer.names("missing") == set(), answer.out
    assert answer.status == 0
    assert answer.json["can_run"] is True
    assert answer.json["mode"] == "root"
    assert answer.json["kernel"] == os.uname().release


def test_the_table_is_narrow_and_ends_with_the_verdict(host):
    answer = host.doctor()
    lines = answer.out.splitlines()
    assert lines[0].split()[:3] == ["WHAT", "RESULT", "NEEDED"]
    assert lines[-1].startswith("The default profile can")
    assert max(map(len, lines)) <= 100
    assert answer.err == ""


@needs_root
def test_a_plain_user_gets_a_table_and_a_verdict(host):
    answer = host.doctor(**as_nobody())
    assert answer.status in (0, 1)
    assert answer.out.splitlines()[-1].startswith("The default profile can")
    assert max(map(len, answer.out.splitlines())) <= 100


@needs_root
def test_without_groups_a_plain_user_loses_limits_only(host):
    answer = host.doctor("--json", **as_nobody())
    assert answer.json["mode"] == "user"
    assert answer.names("missing") == set() and answer.status == 0, answer.out
    for name in LIMITS:
        row = answer.row(name)
        assert row["result"] == "ok" or (row["result"] == "degraded" and row["cause"] and row["fix"])


@needs_root
def test_an_environment_without_anything_is_enough(host):
    for how in ({}, as_nobody()):
        answer = host.doctor("--json", env={}, **how)
        assert answer.json["rows"], answer.err
        assert answer.row("user-namespace")["result"] == "ok"


@pytest.mark.requirement("A80")
def test_every_row_that_is_not_ok_says_why_and_what_to_do(host):
    for row in host.doctor("--json").json["rows"]:
        assert set(row) == {"name", "needed", "result", "cause", "fix", "detail", "purpose"}
        assert row["needed"] in ("default", "service", "optional", "info")
        assert (row["result"] == "ok") == (row["cause"] == "") == (row["fix"] == ""), row


@pytest.mark.parametrize("args", [["--yaml"], ["--json", "--json=1"], ["basic"]])
def test_other_arguments_are_usage_errors_that_name_the_word(host, args):
    answer = host.doctor(*args)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"brig doctor: {args[-1].partition('=')[0]}") and answer.err.count("\n") == 1


def test_quiet_prints_what_is_not_ok_and_the_verdict(host):
    answer, all_of_it = host.doctor("--quiet"), host.doctor("--json")
    troubles = [row["name"] for row in all_of_it.json["rows"] if row["result"] != "ok" and row["needed"] != "info"]
    assert [line.split()[0] for line in answer.out.splitlines()[:-1] if not line.startswith(" ")] == troubles
    assert answer.out.splitlines()[-1] == all_of_it.json["verdict"]


def test_help_is_no_error(host):
    answer = host.doctor("--help")
    assert (answer.status, answer.err) == (0, "") and answer.out.startswith("usage: brig doctor [--json | --quiet | --apparmor]\n\nTest ")
    assert "--json " in answer.out and "--help " in answer.out


def test_a_full_disk_is_not_a_yes(host):
    with open("/dev/full", "w") as full:
        done = subprocess.run(host.command(), stdout=full, stderr=subprocess.PIPE, env=host.env(), timeout=HANG)
    assert done.returncode == 1
    assert b"write" in done.stderr


@needs_root
def test_bytes_that_are_no_text_do_no_harm(host):
    store = os.fsencode(host.root) + b"/\xff\x1b[31m\n" + "ä".encode() * 300
    for args in ([], ["--json"]):
        done = subprocess.run(host.command(*args), env={**host.env(), "BRIG_STORE": store}, capture_output=True, timeout=HANG)
        assert done.returncode == 1
        assert b"\x1b" not in done.stdout
        done.stdout.decode()
    rows = json.loads(done.stdout)["rows"]
    assert [r["name"] for r in rows if r["result"] == "missing"] == ["rootfs"]


# --- user namespaces --------------------------------------------------------------------------


def run_mapped(host, setup):
    """Root of a user namespace that maps every id, after `setup`."""
    script = f"echo ready; read go; exec sh -c '{setup}; exec \"$@\"' sh \"$@\""
    child = subprocess.Popen(["unshare", "-U", "sh", "-c", script, "sh", *host.command("--json")], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, env=host.env())
    assert child.stdout.readline() == "ready\n"
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{child.pid}/{name}").write_text("0 0 4294967295")
    out, _ = child.communicate("go\n", timeout=HANG)
    return Answer(subprocess.CompletedProcess([], child.returncode, out, ""))


@needs_root
def test_in_a_user_namespace_with_all_ids_everything_is_there(host):
    answer = run_mapped(host, "true")
    assert answer.names("missing") == set(), answer.out
    assert answer.status == 0


@needs_root
def test_user_namespaces_limited_to_none(host):
    answer = run_mapped(host, "echo 0 > /proc/sys/user/max_user_namespaces")
    assert answer.status == 1
    assert answer.names("missing") == {"user-namespace", "id-range"}
    for name in ("user-namespace", "id-range"):
        assert says(answer.row(name), "limits, user.max_user_namespaces", "sysctl -w user.max_user_namespaces=15000") or name
    assert answer.json["verdict"].endswith("first: user-namespace.")


@needs_root
def test_only_one_level_of_user_namespaces(host):
    answer = run_mapped(host, "echo 1 > /proc/sys/user/max_user_namespaces")
    assert answer.status == 1
    assert "user-namespace" in answer.names("missing")
    assert says(answer.row("user-namespace"), "limits", "sysctl -w user.max_user_namespaces")


@needs_root
@pytest.mark.parametrize("kind,row", [("net", "net-namespace"), ("uts", "uts-namespace"), ("ipc", "ipc-namespace"),
                                      ("pid", "pid-namespace"), ("mnt", "mount-namespace"), ("cgroup", "cgroup-namespace")])
def test_other_namespaces_limited_to_none(host, kind, row):
    answer = run_mapped(host, f"echo 0 > /proc/sys/user/max_{kind}_namespaces")
    assert answer.status == 1
    assert row in answer.names("missing")
    assert NAMESPACES & answer.names("missing") <= {row, "user-namespace"}
    assert says(answer.row(row), f"limits, user.max_{kind}_namespaces", f"sysctl -w user.max_{kind}_namespaces=15000")


@needs_root
def test_few_namespaces_are_told(host):
    answer = run_mapped(host, "echo 7 > /proc/sys/user/max_net_namespaces")
    assert answer.status == 0
    row = answer.row("namespace-limits")
    assert row["result"] == "degraded"
    assert says(row, "room for 7 jails", "sysctl -w user.max_net_namespaces=15000")


READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys"


@needs_root
def test_a_read_only_proc_sys_is_told_and_its_fix_is_true(host):
    row = host.after(READ_ONLY, "--json").row("namespace-limits")
    assert row["result"] == "degraded" and says(row, "/proc/sys/user is read-only", "mount -o remount,bind,rw /proc/sys"), row
    mended = host.after(f"{READ_ONLY} && {row['fix'].split(',')[0]},{','.join(row['fix'].split(',')[1:3])}", "--json")
    assert mended.row("namespace-limits")["result"] == "ok", mended.out


@needs_root
@pytest.mark.parametrize("profile", ["basic", "strict"])
def test_with_a_read_only_proc_sys_the_filter_alone_keeps_namespaces_away(jail, profile):
    """In a container that has a complete procfs somewhere: basic runs and says so, strict, which requires every layer, does not."""
    where = ["unshare", "--mount", "sh", "-c", f"mount -t proc proc /mnt && {READ_ONLY} && exec \"$@\"", "sh"]
    done = subprocess.run([*where, BUILD / "bin/brig", "run", "--private", "--json", "--profile", profile, "-"], capture_output=True, text=True,
                          input="import os, ctypes\nprint(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())", env=tool.environment({}))
    record = json.loads(done.stdout)
    if profile == "strict":
        assert (done.returncode, record["exit_reason"]) == (125, "setup_failed") and "no-nested-ns cannot be applied here" in done.stderr, done
    else:
        assert (done.returncode, record["stdout"]) == (0, "-1 1\n") and "missing:no-nested-ns" in record["isolation"], done


@needs_root
def test_little_memory_for_the_sockets_of_the_host_is_told(host, tmp_path):
    if not os.path.exists("/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes"):
        pytest.skip("needs a control group of memory, version 1: version 2 does not count sockets apart")
    (tmp_path / "tcp_mem").write_text("10 20 30\n")
    below = ["unshare", "-m", "sh", "-c", "mount --bind \"$1\" /proc/sys/net/ipv4/tcp_mem && shift && exec \"$@\"", "sh", tmp_path / "tcp_mem"]
    row = host.doctor("--json", below=below).row("socket-memory")
    assert row["result"] == "degraded" and says(row, "slows down from 80K", "sysctl -w net.ipv4.tcp_mem=") , row


@needs_root
def test_what_a_network_lacks_is_told_and_keeps_no_program_from_running(host, tmp_path):
    def row(resolvers):
        (tmp_path / "resolv.conf").write_text(resolvers)
        below = ["unshare", "-m", "sh", "-c", "mount --bind \"$1\" /etc/resolv.conf && shift && exec \"$@\"", "sh", tmp_path / "resolv.conf"]
        return tool_row([str(BUILD / "bin" / "brig"), "doctor", "--json"], below)

    def tool_row(argv, below):
        done = Answer(subprocess.run([*map(str, below), *argv], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=HANG))
        return done.row("network")
    assert row("nameserver 192.0.2.1\n# nameserver 192.0.2.2\n")["detail"] == "brig-proxy is there, and /etc/resolv.conf names 1 resolver"
    lacking = row("options rotate\n")
    assert lacking["result"] == "degraded" and says(lacking, "names no resolver", "nameserver ADDRESS"), lacking
    proxy = host.root / "bin" / "proxy"
    proxy.rename(host.root / "away")
    lacking = host.doctor("--json").row("network")
    (host.root / "away").rename(proxy)
    assert lacking["needed"] == "info" and says(lacking, "proxy: No such file or directory", "install brig anew"), lacking


@needs_root
def test_a_single_id_is_no_range(host):
    answer = host.doctor("--json", below=["unshare", "-Ur"])
    assert answer.status == 1
    assert "id-range" in answer.names("missing")
    assert says(answer.row("id-range"), "single id", "more ids are mapped")
    assert answer.row("user-namespace")["result"] == "ok"


@needs_root
def test_root_without_capabilities(host):
    answer = host.doctor("--json", below=["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid"])
    assert answer.status == 1
    assert answer.names("missing") == {"id-range"}
    assert says(answer.row("id-range"), "layer: capabilities", "CAP_SETUID CAP_SETGID")


OF_DOCKER = "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"


@needs_root
@pytest.mark.parametrize("caps", ["-sys_admin", "-net_admin", OF_DOCKER], ids=["all but it", "all but CAP_NET_ADMIN", "those that Docker gives"])
def test_root_without_cap_sys_admin_runs_programs_as_plain_users_do(host, jail, caps):
    """As in most containers. Every layer that needs no more is there, and the record says which are not."""
    below = ["setpriv", f"--bounding-set={caps}", "--inh-caps=-all"]
    answer = host.doctor("--json", below=below)
    assert answer.status == 0 and answer.json["can_run"] and "service" not in answer.row("program")["detail"], answer.out
    done = subprocess.run([*below, BUILD / "bin/brig", "run", "--private", "--json", "-"], capture_output=True, text=True, env=tool.environment({}),
                          input="import os\nprint(os.getuid(), [line for line in open('/proc/self/status') if line.startswith('CapEff')])")
    record = json.loads(done.stdout)
    assert (done.returncode, record["stdout"]) == (0, "1000 ['CapEff:\\t0000000000000000\\n']\n"), done
    assert {"user-ns", "no-caps", "seccomp", "net-ns"} <= set(record["isolation"]), record["isolation"]


@needs_root
def test_root_without_any_capability_is_advised_to_be_another_user(host):
    answer = host.doctor("--json", below=["setpriv", "--bounding-set=-all", "--inh-caps=-all"])
    assert answer.status == 1
    assert says(answer.row("user-namespace"), "root without CAP_SETFCAP", "as another user")


@needs_root
def test_a_container_without_a_mark_is_one_by_its_own_view_of_groups(host):
    assert host.doctor("--json", below=["unshare", "--cgroup"]).row("kernel")["detail"].endswith(", a container")
    assert not host.doctor("--json").row("kernel")["detail"].endswith("a container")


@needs_root
def test_a_chroot_is_named(host):
    base = host.root / "chroot"
    base.mkdir()
    root = base / "r"  # a directory below a mount point: "/" itself is none then
    answer = host.after(f"mount -t tmpfs tmpfs {base}; mkdir -p {root}/b; "
                        f"for d in proc lib lib64 usr; do mkdir {root}/$d; mount --rbind /$d {root}/$d; done; "
                        f"cp {host.brig} {host.brig}-doctor {root}/b; chmod 755 {base} {root} {root}/b; shift; "
                        f"exec chroot --userspec={NOBODY}:{NOBODY} --groups= {root} /b/brig \"$@\"", "--json")
    assert answer.status == 1
    assert says(answer.row("user-namespace"), "EPERM (brig was started inside a chroot)", "outside the chroot")


# --- seccomp ----------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("how", [{}, as_nobody()], ids=["root", "nobody"])
def test_a_filter_against_namespaces_is_told_from_everything_else(host, how):
    shutil.copy(host.refuse, host.root / "bin" / "refuse")
    (host.root / "bin" / "refuse").chmod(0o755)
    answer = host.doctor("--json", below=[host.root / "bin" / "refuse", "namespaces"], **how)
    assert answer.status == 1
    assert NAMESPACES <= answer.names("missing")
    assert answer.names("missing") <= IN_A_NAMESPACE | {"capabilities"}
    assert says(answer.row("user-namespace"), "EPERM (layer: a seccomp filter", "Seccomp: 2")
    assert "Seccomp: 2" in answer.row("layers")["detail"]


@needs_root
@pytest.mark.parametrize("call,rows", [
    ("mount_setattr", {"mount-setattr"}),
    ("open_tree", {"open-tree", "mount-setattr"}),
    ("fsopen", {"fsmount"}),
    ("pivot_root", {"pivot-root"}),
    ("openat2", {"openat2"}),
    ("close_range", {"close-range"}),
    ("memfd_create", {"memfd-exec"}),
    ("execveat", {"memfd-exec"}),
    ("pidfd_send_signal", {"pidfd"}),
    ("clone3", {"clone3", "pidfd"}),
    ("nosys:clone3", {"clone3"}),
    ("nosys:openat2", {"openat2"}),
    ("sethostname", {"user-namespace", "uts-namespace"}),
    ("keyctl", {"keyring"}),
    ("mkdirat", LIMITS),
])
def test_one_refused_call_is_one_row(host, call, rows):
    answer = host.doctor("--json", below=[host.refuse, call])
    assert answer.status == 1
    assert answer.names("missing") == rows
    for name in rows:
        assert "seccomp filter" in answer.row(name)["cause"], answer.row(name)


@needs_root
@pytest.mark.parametrize("call,rows", [("landlock_create_ruleset", {"landlock"}), ("setns", {"setns-pidfd", "fork-into-pid-ns"})])
def test_some_calls_may_be_missing(host, call, rows):
    answer = host.doctor("--json", below=[host.refuse, call])
    assert answer.status == 0
    assert answer.names("degraded") - V1_LOSSES == rows
    for row in rows:
        assert "seccomp filter" in answer.row(row)["cause"]


@needs_root
def test_a_filter_that_kills_is_survived_and_named(host):
    answer = host.doctor("--json", below=[host.refuse, "kill:unshare"])
    assert answer.status == 1
    assert NAMESPACES <= answer.names("missing")
    assert says(answer.row("user-namespace"), "killed by SIGSYS (layer: a seccomp filter", "Seccomp: 2")


# --- /proc ------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("mask", ["/proc/sys", "/proc/fs", "/proc/version"])
def test_a_masked_proc_is_named_as_such(host, mask):
    kind = "--bind /dev/null" if mask == "/proc/version" else "-t tmpfs tmpfs"
    answer = host.after(f"mount {kind} {mask}", "--json")
    assert answer.status == 0 and answer.names("missing") == set() # root's jails are not in a user namespace; those of a service are
    assert answer.row("proc")["result"] == "degraded" and says(answer.row("proc"), f"1 masked: {mask}", "mount -t proc proc /run/proc")
    assert "brigd does not" in answer.row("proc")["cause"]


@needs_root
@pytest.mark.parametrize("mask", ["/proc/sys", "/proc/fs", "/proc/version"])
def test_root_runs_where_proc_is_masked_and_sees_nothing_of_what_it_hides(jail, mask):
    kind = "--bind /dev/null" if mask == "/proc/version" else "-t tmpfs tmpfs"
    where = ["unshare", "--mount", "sh", "-c", f"mount {kind} {mask} && exec \"$@\"", "sh"]
    done = subprocess.run([*where, BUILD / "bin/brig", "run", "--private", "-c", f"import os; print(os.path.exists({mask!r}), os.path.exists('/proc/self'))"],
                          capture_output=True, text=True, env=tool.environment({}))
    assert (done.returncode, done.stdout) == (0, "False True\n"), done


@needs_root
def test_a_mask_that_is_locked_by_a_user_namespace(host):
    inner = "unshare -Urm sh -c 'exec \"$@\"' sh \"$@\""
    answer = host.after(f"mount -t tmpfs tmpfs /proc/sys; exec {inner}", "--json")
    assert answer.status == 1
    assert "proc" in answer.names("missing")
    assert says(answer.row("proc"), "masked: /proc/sys", "one complete procfs is enough")


@needs_root
def test_the_fix_for_a_masked_proc_is_true(host):
    answer = host.after("mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /proc/fs; mkdir -p /run/proc && mount -t proc proc /run/proc", "--json")
    assert answer.names("missing") == set(), answer.out
    assert answer.status == 0


@needs_root
@pytest.mark.parametrize("how", [{}, as_nobody()], ids=["root", "nobody"])
def test_without_proc_it_says_so(host, how):
    drop = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups" if how else ""
    answer = host.after(f"mount -t tmpfs tmpfs /proc; exec {drop} \"$@\"", "--json")
    assert answer.status == 1
    assert answer.json["verdict"].endswith("first: user-namespace.")
    assert says(answer.row("user-namespace"), "/proc is absent or hidden", "mount -t proc proc /proc")
    assert answer.row("close-range")["result"] == "ok"


@needs_root
def test_a_proc_of_another_pid_namespace(host):
    answer = host.doctor("--json", below=["unshare", "-pf"])
    assert answer.status == 1
    assert answer.names("missing") == {"id-range"}
    assert says(answer.row("id-range"), "another pid namespace", "mount -t proc proc /proc")


# --- cgroups ----------------------------------------------------------------------------------


@needs_root
def test_a_hidden_cgroup_tree(host):
    answer = host.after("mount -t tmpfs tmpfs /sys/fs/cgroup", "--json")
    assert answer.status == 1
    assert answer.names("missing") == LIMITS
    assert answer.names("degraded") == FIGURES
    assert says(answer.row("memory-limit"), "layer: mounts, the cgroup tree is hidden", "umount /sys/fs/cgroup")


@needs_root
def test_no_cgroup_tree(host):
    answer = host.after("umount -R /sys/fs/cgroup; if mountpoint -q /sys/fs/cgroup; then umount -R /sys/fs/cgroup; fi", "--json")
    assert answer.status == 1
    assert answer.names("missing") == LIMITS
    assert says(answer.row("pids-limit"), "no cgroup file system with pids is mounted", "mount -t cgroup")


@needs_root
@pytest.mark.skipif(not os.path.ismount("/sys/fs/cgroup/memory"), reason="no cgroup v1 here")
def test_one_controller_gone(host):
    answer = host.after("umount /sys/fs/cgroup/memory", "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"memory-limit"}
    assert answer.names("degraded") - V1_LOSSES == {"swap-limit", "memory-peak"}


@needs_root
@pytest.mark.skipif(not os.path.ismount("/sys/fs/cgroup/pids"), reason="no cgroup v1 here")
def test_a_read_only_controller(host):
    answer = host.after("mount -o remount,bind,ro /sys/fs/cgroup/pids", "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"pids-limit"}
    assert says(answer.row("pids-limit"), "EROFS", "remount,rw")


@needs_root
@pytest.mark.skipif(not os.path.ismount("/sys/fs/cgroup/blkio"), reason="no cgroup v1 here")
def test_figures_that_v1_cannot_give_are_called_a_loss(host):
    answer = host.doctor("--json")
    assert answer.status == 0 and answer.row("io-figures")["result"] == "degraded"
    assert says(answer.row("io-figures"), "whose a write-back is", "unified_cgroup_hierarchy")


# --- the rest ---------------------------------------------------------------------------------


@needs_root
def test_memfds_that_cannot_be_executed(host):
    if not os.path.exists("/proc/sys/vm/memfd_noexec"):
        pytest.skip("Linux 6.3 has vm.memfd_noexec")
    answer = host.after("echo 2 > /proc/sys/vm/memfd_noexec", "--json", unshare=("-pf", "--mount-proc"))
    assert answer.status == 1
    assert answer.names("missing") == {"memfd-exec"}
    assert says(answer.row("memfd-exec"), "vm.memfd_noexec is 2", "sysctl -w vm.memfd_noexec=1")


@needs_root
def test_the_fix_for_memfds_is_true(host):
    if not os.path.exists("/proc/sys/vm/memfd_noexec"):
        pytest.skip("Linux 6.3 has vm.memfd_noexec")
    answer = host.after("echo 1 > /proc/sys/vm/memfd_noexec", "--json", unshare=("-pf", "--mount-proc"))
    assert answer.names("missing") == set()


@needs_root
@pytest.mark.parametrize("setup,what", [
    ("mount --bind {file} /dev/null", "/dev/null is a regular file, not the character device 1:3"),
    ("mount --bind /dev/zero /dev/null", "/dev/null is another device, not the character device 1:3"),
    ("mount --bind /dev/null /dev/urandom", "/dev/urandom is another device, not the character device 1:9"),
], ids=["file", "zero", "urandom"])
def test_a_replaced_device(host, setup, what):
    plain = host.root / "plain-file"
    plain.touch()
    answer = host.after(setup.format(file=plain), "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"device-nodes"}
    assert says(answer.row("device-nodes"), what, "mknod -m 666 /dev/")


@needs_root
@pytest.mark.parametrize("change,row,cause,fix", [
    ({"BRIG_STORE": "/nowhere"}, "rootfs", "is not in the store /nowhere", "brig-rootfs build basic"),
    ({"BRIG_PRESETS": "/nowhere"}, "profile", "/nowhere/basic.json: No such file", "/etc/brig/profiles"),
])
def test_missing_places(host, change, row, cause, fix):
    answer = host.doctor("--json", env=host.env(**change))
    assert answer.status == 1
    assert answer.names("missing") == {row}
    assert says(answer.row(row), cause, fix)


@needs_root
@pytest.mark.parametrize("setup,cause,fix", [
    ("mount -t tmpfs -o ro tmpfs /run", "mkdir /run/brig: EROFS", "mount -t tmpfs -o mode=0755 tmpfs /run"),
    ("mount -t tmpfs tmpfs /run; mkdir -m 777 /run/brig", "/run/brig is not a directory of uid 0 alone", "chmod 0700"),
    ("mount -t tmpfs tmpfs /run; touch /run/brig", "/run/brig is not a directory of uid 0 alone", "remove it"),
    ("mount -t tmpfs tmpfs /run; ln -s /tmp /run/brig", "/run/brig is not a directory of uid 0 alone", "remove it"),
], ids=["read-only", "everybody's", "a file", "a link"])
def test_a_bad_runtime_directory(host, setup, cause, fix):
    answer = host.after(setup, "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"runtime-dir"}
    assert says(answer.row("runtime-dir"), cause, fix)


@needs_root
def test_a_plain_user_whose_runtime_directory_cannot_be_written(host):
    own = f"/run/user/{NOBODY}"
    answer = host.after(f"mount -t tmpfs tmpfs /run; mkdir -p {own}; mount -t tmpfs -o ro,uid={NOBODY} tmpfs {own}; "
                        f"exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups \"$@\"", "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"runtime-dir"}
    assert says(answer.row("runtime-dir"), f"mkdir {own}/brig: EROFS", "/run/user/UID")


@needs_root
def test_a_broken_profile_is_named_with_its_fault(host):
    broken = host.root / "broken"
    broken.mkdir()
    (broken / "basic.json").write_text('{"rootfs": "basic", "policy": "python", "limts": {}}')
    answer = host.doctor("--json", env=host.env(BRIG_PRESETS=str(broken)))
    assert answer.status == 1
    assert answer.names("missing") == {"profile"}
    assert says(answer.row("profile"), "limts", "brig profile check basic")


@needs_root
def test_ids_that_somebody_else_has(host):
    subuid = host.root / "subuid"
    subuid.write_text("eve:1879048000:1000\n")
    answer = host.after(f"mount --bind {subuid} /etc/subuid", "--json")
    assert answer.status == 1
    assert answer.names("missing") == {"id-pool"}
    assert says(answer.row("id-pool"), "handed out in /etc/subuid", "usermod --add-subuids")


MAPPER = "/usr/bin/newuidmap"


@pytest.mark.sample(3)
@needs_root
@pytest.mark.parametrize("lines,setup,flags,cause,fix", [
    ("eve:100000:65536\n", "", "", "has no line for nobody", "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 nobody"),
    ("nobody:100000:65536\n", f"mount --bind /dev/null {MAPPER}", "", "are not there", "apt install uidmap"),
    ("65534:100000:65536\n", f"mount --bind /dev/null {MAPPER}", "", "are not there", "apt install uidmap"),
    ("nobody:100000:65536\neve:165535:10\n", "", "", "/etc/subuid gives ids of 100000..165535 to eve as well", "usermod --add-subuids 165545-"),
    ("nobody:100000:65536\n", "mount -o bind /usr/bin /usr/bin; mount -o remount,bind,nosuid /usr/bin", "", "newuidmap and newgidmap refused", "without nosuid"),
    ("nobody:100000:65536\n", "", "--no-new-privs", "no_new_privs is set", "NoNewPrivileges=no"),
    ("nobody:100000:65536\n", "", "", "", ""),
], ids=["no line", "no newuidmap", "by number", "shared with another", "no power", "no new privs", "all there"])
def test_a_range_of_ids_for_a_plain_user(host, lines, setup, flags, cause, fix):
    if not os.path.exists(MAPPER):
        pytest.skip("newuidmap is not installed")
    subids = host.root / "subids"
    subids.write_text(lines)
    answer = host.after(f"mount --bind {subids} /etc/subuid; mount --bind {subids} /etc/subgid; {setup or ':'}; "
                        f"exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {flags} \"$@\"", "--json")
    assert answer.names("missing") == set(), answer.err
    row = answer.row("id-range")
    assert row["result"] == ("degraded" if cause else "ok"), row
    assert says(row, cause, fix)


# --- is it true? ------------------------------------------------------------------------------

STORE = Path(os.environ.get("BRIG_STORE", BUILD / "store"))
CALLS = ("namespaces mount_setattr open_tree fsopen fsconfig fsmount move_mount mount umount2 pivot_root openat2 close_range "
         "memfd_create execveat clone3 nosys:clone3 keyctl nosys:keyctl sethostname capset mkdirat landlock_create_ruleset "
         "nosys:landlock_create_ruleset setns kill:setns kill:unshare").split()


@pytest.mark.sample(8)
@needs_root
@pytest.mark.skipif(not (STORE / "names" / "basic" / "tree").exists(), reason="no rootfs basic in the store")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.requirement("A80", "B3")
def test_doctor_says_yes_exactly_where_a_program_runs(host, tmp_path, call):
    program = tmp_path / "hello.py"
    program.write_text("print('hello')")
    env = {"PATH": os.environ["PATH"], "BRIG_STORE": str(STORE)}
    empty = tmp_path / "empty"
    empty.touch()
    # the kept list of hierarchies may come from a launcher that saw fewer; the locks beside it must be the host's
    fresh = f"if test -e /run/brig/groups; then mount --bind {empty} /run/brig/groups; fi; exec \"$@\""
    below = ["unshare", "-m", "sh", "-c", fresh, "sh", str(host.refuse), call, str(BUILD / "bin" / "brig")]
    said = subprocess.run([*below, "doctor"], env=env, capture_output=True, timeout=HANG)
    ran = subprocess.run([*below, "run", str(program)], env=env, capture_output=True, text=True, timeout=HANG)
    assert (said.returncode == 0) == (ran.stdout == "hello\n"), (said.stdout, ran.stderr)


@pytest.mark.sample(6)
@pytest.mark.parametrize("user, call", [(users.BARE, call) for call in ["", *CALLS]] + [(users.PLAIN, call) for call in ["", *CALLS[:3]]],
                         ids=lambda value: getattr(value, "name", value or "nothing"))
def test_doctor_says_yes_to_a_plain_user_exactly_where_a_program_runs(world, user, call):
    below = [world.root / "build" / "tests" / "refuse", call] if call else []
    program = world.program("print('hello')")
    said = subprocess.run(world.as_user(user, *below, world.binary, "doctor"), capture_output=True, timeout=HANG)
    ran = subprocess.run(world.as_user(user, *below, world.binary, "run", program), capture_output=True, text=True, timeout=HANG)
    assert (said.returncode == 0) == (ran.stdout == "hello\n"), (said.stdout.decode(), ran.stderr)
    assert ran.returncode in (0, 125) or call.startswith("kill:"), ran.stderr
    assert ran.returncode == 0 or ran.stderr.startswith("brig: "), ran.stderr


# --- manners ----------------------------------------------------------------------------------


def groups_named(part):
    """os.walk: groups of others come and go meanwhile."""
    return [os.path.join(above, name) for above, names, _ in os.walk("/sys/fs/cgroup") for name in names if part in name]


def our_mounts():
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "brig-doctor" in line or " - tmpfs brig" in line]


def session_members(sid):
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == sid and fields[0] != "Z":  # a zombie is PID 1's to bury
            members.append(stat.parent.name)
    return members


@needs_root
@pytest.mark.parametrize("below", [[], ["refuse", "namespaces"], ["refuse", "kill:unshare"]], ids=["fine", "refused", "killed"])
def test_nothing_is_left_behind(host, below):
    mounts = our_mounts()
    below = [str(host.refuse), *below[1:]] if below else []
    child = subprocess.Popen([*below, *host.command("--json")], stdout=subprocess.DEVNULL, start_new_session=True,
                             env=host.env())
    child.wait(timeout=HANG)
    assert groups_named(f"brig-doctor-{child.pid}-") == []
    assert our_mounts() == mounts
    assert session_members(child.pid) == []
    assert not list(Path("/tmp").glob("brig-doctor*"))


@needs_root
def test_the_runtime_directory_is_not_made(host):
    brig = " ".join(host.command())
    answer = host.after(f"mount -t tmpfs tmpfs /run; {brig} > /dev/null; ls -A /run; exit 0")
    assert (answer.out, answer.err) == ("", "")


@needs_root
def test_several_doctors_do_not_disturb_each_other(host):
    crowd = [subprocess.Popen(host.command("--json"), stdout=subprocess.PIPE, text=True, env=host.env()) for _ in range(8)]
    for one in crowd:
        out, _ = one.communicate(timeout=HANG)
        assert one.returncode == 0, [r for r in json.loads(out)["rows"] if r["result"] != "ok"]
    assert [g for one in crowd for g in groups_named(f"brig-doctor-{one.pid}-")] == []


def moments(host, n):
    """So many, from beginning to end of what it takes on this machine."""
    began = time.monotonic()
    subprocess.run(host.command(), stdout=subprocess.DEVNULL, env=host.env(), check=False)
    return [(time.monotonic() - began) * i / (n + 1) for i in range(1, n + 1)]


@pytest.mark.sample(1)
@needs_root
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_the_middle_nothing_stays(host, how):
    for delay in moments(host, 6):
        child = subprocess.Popen(host.command(), stdout=subprocess.DEVNULL, start_new_session=True, env=host.env())
        time.sleep(delay)
        child.send_signal(how)
        child.wait(timeout=HANG)
        assert session_members(child.pid) == []
        assert groups_named(f"brig-doctor-{child.pid}-") == []


@pytest.mark.nightly
@needs_root
def test_killed_in_the_middle_no_process_stays(host):
    for delay in moments(host, 15):
        child = subprocess.Popen(host.command(), stdout=subprocess.DEVNULL, start_new_session=True, env=host.env())
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert poll(lambda: session_members(child.pid) == []), session_members(child.pid)
        for group in groups_named(f"brig-doctor-{child.pid}-"):  # nobody is left to remove it: the next best is to say so
            os.rmdir(group)


def test_the_manual_lists_every_row(host):
    manual = Path(__file__).resolve().parents[2] / "man" / "doctor.mdoc.in"
    lines = [line.removeprefix("\\&") for line in manual.read_text().splitlines()]
    for row in host.doctor("--json").json["rows"]:
        assert lines[lines.index(f".It {row['name']}") + 1] == row["purpose"]


# --- all of it at once -----------------------------------------------------------------------------------------

def test_where_everything_is_there_a_program_is_run(jail):
    done = tool.run("--json", verb="doctor", json_record=False)
    row = next(row for row in json.loads(done.stdout)["rows"] if row["name"] == "program")
    assert (row["result"], row["needed"], row["detail"]) == ("ok", "default", "brig run has run a program"), row


@needs_root
@pytest.mark.parametrize("harm, says", [("mount -o remount,bind,ro /proc/sys", None), ("chmod 0 $PROFILES/basic.json", None), ("rm -f $RUNNING", "brig run ends with")],
                         ids=["a read-only /proc/sys", "a profile that nobody reads", "no brigd"])
def test_what_keeps_a_program_from_running_keeps_doctor_from_saying_that_it_can(jail, tmp_path, harm, says):
    """Whatever it is: doctor says what a run says."""
    build = tmp_path / "build"
    shutil.copytree(BUILD / "bin", build / "bin")
    for name in ("store", "guest"):
        (build / name).symlink_to(BUILD / name)
    shutil.copytree(BUILD / "profiles", build / "profiles")
    (build / "brig.mark").touch()
    line = harm.replace("$PROFILES", str(build / "profiles")).replace("$RUNNING", str(build / "bin/brigd"))
    script = f"mount --bind /proc/sys /proc/sys && {line} && exec \"$@\"" if "/proc/sys" in harm else f"{line} && exec \"$@\""
    where = ["unshare", "--mount", "sh", "-c", script, "sh", build / "bin/brig"]
    ran = subprocess.run([*where, "run", "-"], input="print(1)", capture_output=True, text=True, env=tool.environment({"BRIG_SOCKET": ""}))
    answer = Answer(subprocess.run([*where, "doctor", "--json"], capture_output=True, text=True, env=tool.environment({"BRIG_SOCKET": ""})))
    assert (ran.returncode == 0) == answer.json["can_run"] == (answer.status == 0), f"{ran}\n{answer.out}"
    assert says is None or says in answer.row("program")["cause"], answer.row("program")
