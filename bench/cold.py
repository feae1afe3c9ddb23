#!/usr/bin/python3
"""What one cold run costs, from exec of the client to reaped, against other launchers on the same rootfs.

usage: bench/cold.py [--rounds N] [--json FILE] [--rootfs NAME|DIRECTORY] [--without NAME]...
"""
import argparse
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import lib
import peers

REPO = pathlib.Path(__file__).resolve().parent.parent
BRIG = REPO / "build/bin/brig"
PYTHON = ["/usr/bin/python3", "-I", "-c", "print(1)"]
TRUE = ["/bin/true"]
SHOWN = {"print(1)": (PYTHON, "1\n"), "/bin/true": (TRUE, "")}


# --- the place: a private mount namespace without the empty cgroup2, the rootfs bound where peers can reach it -----

def make_private(scratch, rootfs):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) < 0:  # CLONE_NEWNS
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    hybrid = pathlib.Path("/sys/fs/cgroup/unified")
    if hybrid.is_mount():
        subprocess.run(["umount", hybrid], check=True)  # "cgroups in hybrid mode not supported", says crun
    tree = scratch / "rootfs"
    tree.mkdir()
    subprocess.run(["mount", "--bind", rootfs, tree], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", tree], check=True)
    return tree


def clean_up(scratch):
    tree = scratch / "rootfs"
    if tree.exists():
        subprocess.run(["umount", "--lazy", tree], check=False)
        tree.rmdir()  # refuses when the rootfs is still there; the rest must not be removed then
    shutil.rmtree(scratch)


# --- the peers ------------------------------------------------------------------------------------------------------

def chroot(tree, command):
    return lib.Candidate("chroot (no jail)", ["chroot", tree, *command], "everything: the floor, what the program itself costs")


def bwrap(tree, command):
    argv = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", tree, "/", "--proc", "/proc", "--dev", "/dev",
            "--tmpfs", "/tmp", "--", *command]
    return lib.Candidate("bwrap", argv, "every limit (memory, pids, CPU, time, output, tmpfs size), syscall filter, Landlock, "
                         "own uid range, record; keeps the caller's uid, environment and terminal")


def bwrap_closest(tree, command, bpf):
    argv = ["bwrap", "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
            "--uid", "1000", "--gid", "1000", "--hostname", "brig", "--cap-drop", "ALL", "--clearenv",
            "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8", "--ro-bind", tree, "/", "--proc", "/proc",
            "--dev", "/dev", "--size", str(64 << 20), "--tmpfs", "/tmp", "--seccomp", "10", "--", *command]
    return lib.Candidate("bwrap, closest", argv, "every limit but the size of /tmp, Landlock, own uid range, inode limits, record; "
                         "the filter is brig's own, compiled", files=[(10, bpf)])


def crun(tree, command, scratch, title):
    bundle = scratch / f"bundle-{'true' if command == TRUE else 'python'}"
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(peers.oci_config(tree, command), indent=1))
    argv = ["crun", "--root", scratch / "crun", "--cgroup-manager", "cgroupfs", "run", "--bundle", bundle, "ID"]
    return lib.Candidate("crun", argv, "syscall filter (none in its default bundle), Landlock, CPU-time and wall limit, output limit, "
                         "PID 1 of its own, record", prepare=lambda a, i: [*a[:-1], f"bench-{title}-{os.getpid()}-{i}"])


def brig(command, scratch):
    if command == TRUE:
        return lib.Candidate("brig", [BRIG, "exec", "--", *TRUE])
    (scratch / "print.py").write_text("print(1)\n")
    return lib.Candidate("brig", [BRIG, "run", scratch / "print.py"])


PEERS = {"brig", "bwrap", "bwrap, closest", "crun", "chroot (no jail)"}


# --- one table --------------------------------------------------------------------------------------------------------

def measure(title, tree, scratch, bpf, options):
    command, expect = SHOWN[title]
    wanted = [brig(command, scratch), bwrap(tree, command), bwrap_closest(tree, command, bpf),
              crun(tree, command, scratch, "true" if command == TRUE else "python"), chroot(tree, command)]
    wanted = [c for c in wanted if c.name not in options.without and shutil.which(c.argv[0])]
    candidates = [c for c in wanted if lib.works(c, expect, scratch)]
    if not candidates:
        sys.exit(f"{title}: nobody is left to be measured")
    lib.interleave(candidates, options.rounds)
    print(f"\n{title}, whole client process, {options.rounds} interleaved rounds\n")
    lib.table(candidates, ["bwrap", "bwrap, closest", "crun"])
    return candidates


def judge(groups):
    print("\nwhat brig wants to reach (medians)")
    for title, base, most in (("print(1)", "bwrap", 1.25), ("print(1)", "crun", 0.60), ("/bin/true", "bwrap", 1.50)):
        found = {c.name: c for c in groups[title]}
        if "brig" in found and base in found:
            lib.goal(f"{title}: brig / {base}", lib.median(found["brig"]) / lib.median(found[base]), most)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].strip())
    parser.add_argument("--rounds", type=lib.count, default=100)
    parser.add_argument("--json")
    parser.add_argument("--rootfs", default="basic")
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    if unknown := set(options.without) - PEERS:
        parser.error(f"--without: no peer {', '.join(sorted(unknown))}; there are: {', '.join(sorted(PEERS))}")
    rootfs = peers.find_rootfs(options.rootfs)
    lib.look_whether_busy()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="brig-bench-"))
    scratch.chmod(0o755)  # crun's user namespace has to reach the bundle
    try:
        tree = make_private(scratch, rootfs)
        bpf = peers.compiled_filter(scratch)
        groups = {title: measure(title, tree, scratch, bpf, options) for title in SHOWN}
        judge(groups)
        print("\nthe command lines, and what the others lack (brig: every layer and every limit on)\n")
        lib.tell(groups["print(1)"])
        print("crun's bundle: user, pid, network, ipc, uts, mount and cgroup namespaces; memory, pids and CPU limit; "
              "no capability;\nno_new_privs; read-only root; the empty cgroup2 mount of hybrid hosts is hidden from everybody here.")
        if options.json:
            lib.save(options.json, groups)
    finally:
        clean_up(scratch)


main()
