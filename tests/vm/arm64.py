#!/usr/bin/python3
"""What runs in a guest with another processor, in software: parts as in guests.py, built by ./dev build arm64.

No program of arm64 runs on the host, and nothing is registered there for it: packages are only unpacked. The guest itself makes its rootfs from
the packages of the recipe basic, with brig-rootfs import.
"""
import hashlib
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__": # ./dev build arm64
    sys.path[:0] = [str(HERE), str(HERE.parent)]

import guests
import image
import machine
from support import host

KIND = machine.ARM64
BUILD = host.REPO / "build" / "arm64"
SUITE = "bookworm"
SIZE = "1G"
GUEST = """linux-image-cloud-arm64 libc-bin base-files base-passwd bash coreutils dash findutils grep sed gzip tar mount util-linux mawk diffutils
           python3 python3-pytest python3-jsonschema uidmap iproute2 procps libcap2-bin strace kmod passwd hostname login openssl
           libmicrohttpd12 libarchive13 libcurl4""".split()

# Done to the packages' tree: $1, whose maintainer scripts did not run.
FURNISH = r"""
set -eu
cd "$1"
mkdir brig
cp usr/share/base-passwd/passwd.master etc/passwd
cp usr/share/base-passwd/group.master etc/group
echo 'root::19000:0:99999:7:::' >etc/shadow
for user in plain:1000 bare:1001; do
    echo "${user%:*}:x:${user#*:}:${user#*:}::/home/${user%:*}:/bin/bash" >>etc/passwd
    echo "${user%:*}:x:${user#*:}:" >>etc/group
    mkdir "home/${user%:*}"
    chown "${user#*:}:${user#*:}" "home/${user%:*}"
done
for file in etc/subuid etc/subgid; do echo plain:100000:65536 >$file; done
ln -sf mawk usr/bin/awk
tar -C FILES --mode=u=rwX,go=rX -c . | tar -x --no-overwrite-dir
chown -R 0:0 etc usr/lib/brig-guest
: >etc/machine-id
: >etc/fstab
echo guest >etc/hostname
echo '127.0.0.1 localhost guest' >etc/hosts
"""
# Of the rootfs: what the recipe removes, too, and takes long to unpack.
UNUSED = ["boot", "var/lib", "var/cache", "etc/apt", "usr/share/zoneinfo/right", "usr/share/zoneinfo/posix"]

BOOTS = {"arm64": "init=/usr/lib/brig-guest/init brig-tests"} # cgroup v2 and nobody who manages it
# Unit tests read files at the path of the tree that they were built in.
BEFORE = f"mkdir -p {shlex.quote(str(host.REPO.parent))} && ln -s /brig {shlex.quote(str(host.REPO))} && build/bin/brig-rootfs import basic basic.tar >/dev/null 2>&1"
# The core of the fast tier: the filter for each system call, what a jail promises, runs and their limits, a service.
CORE = ["tests/unit", "tests/attack/test_probes.py", "tests/run/test_run_status.py", "tests/run/test_record.py", *guests.FAULTS,
        *[f"tests/attack/test_exhaustion.py::test_{name}" for name in (
            "a_memory_bomb_ends_as_oom_at_its_limit", "a_fork_bomb_is_held_and_the_host_stays_responsive", "a_fork_is_refused_with_eagain_at_the_limit")],
        *[f"tests/attack/test_lifetime.py::test_{name}" for name in ("all_endless_programs_end_at_the_wall_time", "cpu_time_counts_all_processes")],
        *[f"tests/service/test_daemon_lifetime.py::test_{name}" for name in ("a_run_dies_with_its_connection",)],
        "tests/service/test_warm_signals.py", *guests.READY]
PARTS = [guests.part("arm64", "core", CORE, env=guests.FEW, before=["sh", "-c", BEFORE])]


def unpack(tree, packages, *words):
    image.run("mmdebstrap", "--mode=root", "--variant=extract", "--format=directory", "--architectures=arm64", f"--include={','.join(packages)}",
              *[f"--dpkgopt=path-exclude={path}" for path in image.UNUSED], *words, SUITE, tree, *image.sources(SUITE))


def rootfs_packages():
    return [row.split(" #")[0] for row in json.loads((host.REPO / "recipes/basic.json").read_text())["packages"]]


def key(*text):
    return hashlib.sha256(repr(text).encode()).hexdigest()[:16]


def kept():
    """The folder with vmlinuz, disk and basic.tar; made when it is not there."""
    files = [(path.name, path.read_bytes()) for path in sorted(image.FILES.rglob("*")) if path.is_file()]
    folder = host.build_dir() / "vm" / f"arm64-{key(GUEST, FURNISH, UNUSED, SIZE, rootfs_packages(), files)}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        for old in folder.parent.glob("arm64-*"):
            shutil.rmtree(old)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as new:
            make(pathlib.Path(new))
            (pathlib.Path(new) / "done").rename(folder)
    return folder


def make(new):
    (new / "done").mkdir()
    (new / "furnish").write_text(FURNISH.replace("FILES", shlex.quote(str(image.FILES))))
    unpack(new / "guest", GUEST)
    image.run("sh", new / "furnish", new / "guest")
    shutil.move(next((new / "guest/boot").glob("vmlinuz-*")), new / "done/vmlinuz")
    shutil.rmtree(new / "guest/boot")
    image.make_disk(new / "guest", new / "done/disk", SIZE)
    unpack(new / "rootfs", rootfs_packages(), "--setup-hook=/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh \"$1\"")
    for name in UNUSED:
        shutil.rmtree(new / "rootfs" / name)
    (new / "rootfs/etc/fstab").unlink(missing_ok=True)
    for path in (new / "rootfs/dev").iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (new / "rootfs/usr/bin/awk").symlink_to("mawk")
    image.run("tar", "-C", new / "rootfs", "--numeric-owner", "-cf", new / "done/basic.tar", ".")


def base(boot):
    return kept() / "vmlinuz", kept() / "disk"


def tree_disk(disk, order):
    image.tree_disk(disk, order, [], BUILD, [kept() / "basic.tar"])


def make_sysroot(packages):
    """Libraries and headers for the cross compiler, in build/arm64/sysroot."""
    sysroot, made = BUILD / "sysroot", BUILD / "sysroot" / "made"
    libraries = [name for name in packages if name.startswith("lib") and name.endswith("-dev")]
    if host.read(made) == key(libraries):
        return
    shutil.rmtree(sysroot, ignore_errors=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    unpack(sysroot, libraries)
    made.write_text(key(libraries))


if __name__ == "__main__":
    try:
        make_sysroot(sys.argv[1:])
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"./dev build arm64: the libraries of arm64 cannot be unpacked: {error}")
