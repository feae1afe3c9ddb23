"""Other launchers, each with the command line that comes closest to a run of brig's, and what it lacks."""
import json
import os
import pathlib
import shlex
import shutil
import struct
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
BRIG = REPO / "build/bin/brig"
FILTERS = pathlib.Path("/run/brig/filters")
ENV = {"PATH": os.environ.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
       "OPENBLAS_NUM_THREADS": "1"} # as in a run of brig's that has one CPU: 15 ms and a thread less
# crun says "cgroups in hybrid mode not supported" and runc takes the empty one for the only one.
WITHOUT_HYBRID = "! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified"


class Peer:
    """argv may have @N@ in a word: a number that no two runs share. enter: shell commands in its own mount namespace, before any run."""

    def __init__(self, key, name, argv, lacks, *, enter="", opens=(), before=None, after=None):
        self.key, self.name, self.argv, self.lacks = key, name, [str(word) for word in argv], lacks
        self.enter, self.opens, self.before, self.after = enter, list(opens), before, after

    def is_there(self):
        return shutil.which(self.argv[0], path=ENV["PATH"]) is not None

    def shown(self):
        return shlex.join(self.argv) + "".join(f" {fd}<{path}" for fd, path in self.opens)


def find_rootfs(wanted):
    if "/" in wanted:
        return pathlib.Path(wanted).resolve()
    listed = subprocess.run([REPO / "build/bin/brig-rootfs", "list", "--json"], capture_output=True, text=True)
    rows = json.loads(listed.stdout) if listed.returncode == 0 and listed.stdout.strip() else []
    rows = rows.get("rootfs", []) if isinstance(rows, dict) else rows
    for row in rows:
        if row["name"] == wanted:
            return pathlib.Path(row["path"])
    sys.exit(f"no rootfs {wanted} in the store: ./dev rootfs {wanted}")


def compiled_filter(scratch):
    """The very filter that brig loads, from its cache: magic, instructions, key length, the program, the texts it came from."""
    subprocess.run([BRIG, "exec", "--private", "--", "/bin/true"], check=True) # compiled now, if it was not before
    ours, strict = ((REPO / f"profiles/{name}.policy").read_bytes() for name in ("python", "python-strict"))
    cached = [path.read_bytes() for path in sorted(FILTERS.glob("*.bpf"), key=lambda path: path.stat().st_mtime)]
    newest = [data for data in cached if ours in data and strict not in data][-1]
    instructions = struct.unpack_from("I", newest, 8)[0]
    path = scratch / "filter.bpf"
    path.write_bytes(newest[16:16 + 8 * instructions])
    return path


def oci_config(tree, command, user_namespace=True):
    caps = {kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")}
    tmpfs = ["nosuid", "nodev", "noexec", "mode=1777", "size=65536k"]
    maps = {kind: [{"containerID": 0, "hostID": 3000000, "size": 65536}] for kind in ("uidMappings", "gidMappings")}
    return {
        "ociVersion": "1.0.0",
        "process": {"terminal": False, "user": {"uid": 1000, "gid": 1000}, "args": command, "cwd": "/",
                    "env": ["PATH=/usr/bin:/bin", "LANG=C.UTF-8", "OPENBLAS_NUM_THREADS=1"], "capabilities": caps, "noNewPrivileges": True,
                    "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 256, "soft": 256}]},
        "root": {"path": str(tree), "readonly": True},
        "hostname": "brig",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": tmpfs},
        ],
        "linux": {
            **(maps if user_namespace else {}),
            "namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount", "cgroup", "user") if t != "user" or user_namespace],
            "resources": {"memory": {"limit": 256 << 20}, "pids": {"limit": 64}, "cpu": {"quota": 100000, "period": 100000}},
        },
    }


class Place:
    """Where the peers find the rootfs, and each its files. The mounts are each peer's own and go with it."""

    def __init__(self, scratch, rootfs, filter_):
        self.scratch, self.rootfs, self.filter = scratch, pathlib.Path(rootfs), filter_
        self.tree = scratch / f"rootfs-{self.rootfs.parent.name[:12]}"
        self.tree.mkdir(exist_ok=True)

    def bound(self):
        """The tree of the store lies below a folder that only root enters."""
        at = shlex.quote(str(self.tree))
        return f"mount --bind {shlex.quote(str(self.rootfs))} {at}; mount -o remount,bind,ro {at}; {WITHOUT_HYBRID}"

    def bundle(self, name, command, **kw):
        folder = self.scratch / f"{self.tree.name}-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(oci_config(self.tree, command, **kw), indent=1))
        return folder


NO_LIMITS = "limits of memory, processes, CPU, time, output; Landlock; ids of its own; record"


def bare(place, command):
    return Peer("bare", "bare python3 -I -S", command, "everything: no jail")


def chroot(place, command):
    return Peer("chroot", "chroot", ["chroot", place.tree, *command], "everything: no jail", enter=place.bound())


def bwrap_words(place):
    return ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", place.tree, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]


def bwrap(place, command):
    return Peer("bwrap", "bwrap", [*bwrap_words(place), "--", *command], f"syscall filter; {NO_LIMITS}", enter=place.bound())


def bwrap_seccomp(place, command):
    return Peer("bwrap_seccomp", "bwrap + seccomp", [*bwrap_words(place), "--seccomp", "10", "--", *command], NO_LIMITS, enter=place.bound(),
                opens=[(10, place.filter)])


def firejail(place, command):
    """It writes into what it takes for a root, and must be told in its configuration that it may."""
    own = place.scratch / f"{place.tree.name}-firejail"
    own.mkdir(exist_ok=True)
    at, tree, lower = (shlex.quote(str(path)) for path in (own, place.tree, place.rootfs))
    enter = (f"mount -t tmpfs none {at}; mkdir {at}/upper {at}/work; "
             f"mount -t overlay none -o lowerdir={lower},upperdir={at}/upper,workdir={at}/work {tree}; "
             f"(cat /etc/firejail/firejail.config; echo 'chroot yes') >{at}/config; mount --bind {at}/config /etc/firejail/firejail.config; {WITHOUT_HYBRID}")
    argv = ["firejail", "--quiet", "--noprofile", f"--chroot={place.tree}", "--net=none", "--caps.drop=all", "--nonewprivs", "--seccomp", "--nogroups",
            "--", *command]
    return Peer("firejail", "firejail", argv, "user namespace, read-only root, allow-list of calls (it has a deny-list); " + NO_LIMITS, enter=enter)


OCI_LACKS = "syscall filter; Landlock; limits of time and output; PID 1 of its own; record"


def oci(name, place, command):
    argv = [name, "--root", place.scratch / f"{name}-state", "run", "--bundle", place.bundle(name, command), "brig-bench-@N@"]
    if name == "crun":
        argv[1:1] = ["--cgroup-manager", "cgroupfs"]
    return Peer(name, name, argv, OCI_LACKS, enter=place.bound())


def crun(place, command):
    return oci("crun", place, command)


def runc(place, command):
    return oci("runc", place, command)


def runsc(place, command):
    bundle = place.bundle("runsc", command, user_namespace=False)
    argv = ["runsc", "--root", place.scratch / "runsc-state", "--network=none", "run", "--bundle", bundle, "brig-bench-@N@"]
    return Peer("runsc", "runsc (gVisor)", argv, "Landlock; limits of time and output; record; it has a kernel of its own between program and host",
                enter=place.bound())


def nsjail(place, command):
    argv = ["nsjail", "--quiet", "--mode", "o", "--chroot", place.tree, "--user", "1000", "--group", "1000", "--tmpfsmount", "/tmp",
            "--rlimit_as", "inf", "--rlimit_nofile", "256", "--nice_level", "0", "--env", "OPENBLAS_NUM_THREADS=1", "--time_limit", "30", "--", *command]
    return Peer("nsjail", "nsjail", argv, "syscall filter; limits of memory, processes, CPU, output; Landlock; record", enter=place.bound())


def isolate(place, command):
    """Its box is made once: `isolate --init` is not part of what is measured."""
    folders = [f"--dir=/{name}={place.tree}/{name}" for name in ("bin", "lib", "lib64", "usr", "etc")]
    argv = ["isolate", "--box-id=99", "--silent", *folders, "--dir=/tmp:tmp", "--processes=64", "--wall-time=30", "--env=OPENBLAS_NUM_THREADS=1", "--run", "--",
            *command]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ENV}
    return Peer("isolate", "isolate, box made before", argv, "user namespace; limits of memory, CPU, output; Landlock; PID 1 of its own; record; its filter is its own",
                enter=place.bound(), before=lambda: subprocess.run(["isolate", "--box-id=99", "--init"], **quiet),
                after=lambda: subprocess.run(["isolate", "--box-id=99", "--cleanup"], **quiet))


IMAGE = "brig-bench"


def docker_import(place):
    """An image of the same tree; it goes again."""
    tar = subprocess.Popen(["tar", "-C", place.rootfs, "-c", "."], stdout=subprocess.PIPE)
    subprocess.run(["docker", "import", "-", IMAGE], stdin=tar.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
    tar.stdout.close()
    tar.wait()


def docker(place, command):
    argv = ["docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--memory", "256m", "--pids-limit", "64", "--cpus", "1",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "1000:1000", IMAGE, *command]
    remove = lambda: subprocess.run(["docker", "rmi", "-f", IMAGE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
    return Peer("docker", "docker", argv, "user namespace; Landlock; limits of time and output; record; its filter is its own",
                before=lambda: docker_import(place), after=remove)


ALL = (bare, bwrap, bwrap_seccomp, firejail, crun, runc, nsjail, isolate, runsc, docker)
PACKAGED = {"bwrap", "bwrap_seccomp", "firejail", "crun", "runc"} # ./dev installs them; the others count when they are there
