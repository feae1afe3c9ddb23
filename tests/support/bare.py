"""A host that has nothing: a root directory with /proc, /sys and /dev, and no program, library or shell of its own."""
import json
import subprocess
import sys

NODES = "null", "zero", "full", "random", "urandom"


def run(root, argv, timeout, *, uid=0, env=None, stdin=""):
    """Executes a program of this root, as root or as this user: its exit status and output. Nothing is left behind but what it wrote."""
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=slave", "--net"]
    job = json.dumps({"root": str(root), "argv": [str(word) for word in argv], "uid": uid, "env": env or {}})
    return subprocess.run([*words, sys.executable, __file__, job], input=stdin, capture_output=True, text=True, timeout=timeout)


def enter(root, argv, uid, env):
    """In namespaces of its own. Not chroot: the kernel refuses user namespaces in one. All of Python that is needed is loaded before."""
    import ctypes
    import os
    import pathlib

    libc = ctypes.CDLL(None, use_errno=True)

    def must(result):
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def mount(source, target, kind, flags=0, data=None):
        must(libc.mount(source.encode(), str(target).encode(), kind.encode() if kind else None, flags, data.encode() if data else None))

    bind, recursive, pivot_root, detach = 4096, 16384, {"x86_64": 155, "aarch64": 41}[os.uname().machine], 2
    root = pathlib.Path(root)
    for name in ("proc", "sys", "dev", "old"):
        (root / name).mkdir(exist_ok=True)
    mount(str(root), root, None, bind | recursive)
    mount("/sys", root / "sys", None, bind | recursive)
    mount("none", root / "proc", "proc")
    mount("none", root / "dev", "tmpfs", 0, "mode=755")
    for name in NODES:
        (root / "dev" / name).touch()
        mount(f"/dev/{name}", root / "dev" / name, None, bind)
    (root / "dev/fd").symlink_to("/proc/self/fd")
    (root / "dev/shm").mkdir()
    mount("none", root / "dev/shm", "tmpfs", 0, "mode=1777")
    os.chdir(root)
    must(libc.syscall(pivot_root, b".", b"old"))
    os.chdir("/")
    must(libc.umount2(b"/old", detach))
    os.rmdir("/old")
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.execve(argv[0], argv, env)


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    enter(job["root"], job["argv"], job["uid"], job["env"])
