"""The floor of a run: what this machine takes for a fault, a fork and an exec, and for a bare fork of the same Python that runs the program and ends.

A bare fork has no jail: no namespace, group, filter or limit, no clock that ends it, no record. It is made by os.fork() of the rootfs's own Python,
in a chroot, after the imports of a warm run and gc.freeze(), and ends as a run does: exit functions, a collection, a flush, _exit.
"""
import mmap
import os
import subprocess
import time

MIB = 1 << 20

# Executed in the rootfs. A line of its input is a program's path (outside, as a descriptor number), seconds, and how many forks are alive at once.
FORKER = r'''
import atexit, gc, os, sys, time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
gc.collect(); gc.freeze()

def child(source):
    exec(compile(source, "/workspace/main.py", "exec"), {"__name__": "__main__"})
    atexit._run_exitfuncs(); gc.collect(); sys.stdout.flush()
    os._exit(0)

def cpu():
    return sum(u.ru_utime + u.ru_stime for u in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))

answer = os.fdopen(os.dup(1), "w")
os.dup2(os.open("/null", os.O_WRONLY), 1)
for line in sys.stdin:
    seconds, parallel, source = eval(line)
    before, began, live, runs = cpu(), time.monotonic(), 0, 0
    while True:
        while live < parallel and time.monotonic() - began < seconds:
            if os.fork() == 0:
                child(source)
            live += 1
        if not live:
            break
        os.waitpid(-1, 0)
        live, runs = live - 1, runs + 1
    print(runs, (cpu() - before) * 1000, time.monotonic() - began, file=answer, flush=True)
'''


class Floor:
    """A Python of this rootfs whose forks are the floor. modules: imported before the first fork, as in the profile's zygote."""

    def __init__(self, tree, scratch, modules=()):
        # The tree is read-only: a directory above it, in a mount namespace of its own, has /dev/null.
        imports = "".join(f"import {name}\n" for name in modules)
        enter = 'mount -t overlay floor -o lowerdir="$0",upperdir="$1/up",workdir="$1/work" "$1/top" && mknod -m 666 "$1/top/null" c 1 3 && exec chroot "$1/top" /usr/bin/python3 -I -u -c "$2"'
        place = scratch / "floor"
        for folder in ("tmp", "tmp/up", "tmp/work", "tmp/top"):
            (place / folder).mkdir(parents=True, exist_ok=True)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec",
                   'mount -t tmpfs floor "$1" && mkdir "$1/up" "$1/work" "$1/top" && ' + enter, str(tree), str(place / "tmp"), imports + FORKER]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def sustained(self, source, seconds, parallel):
        """Runs, CPU ms of each, runs a second."""
        self.process.stdin.write(f"{(seconds, parallel, source)!r}\n")
        self.process.stdin.flush()
        runs, cpu, took = map(float, self.process.stdout.readline().split())
        return runs, cpu / runs, runs / took

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def fault_us(mib=64):
    """Of one page: first touches, less the same touches again."""
    with mmap.mmap(-1, mib * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        took = []
        for _ in range(2):
            began = time.perf_counter()
            for at in range(0, mib * MIB, mmap.PAGESIZE):
                memory[at] = 1
            took.append(time.perf_counter() - began)
    return (took[0] - took[1]) * 1e6 / (mib * MIB / mmap.PAGESIZE)


def fork_us(times=200):
    """Of a fork of this process that ends at once, until it is reaped."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        took.append(time.perf_counter() - began)
    return sorted(took)[times // 2] * 1e6


def exec_us(times=200):
    """Of /bin/true, from its spawn until it is reaped."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
        took.append(time.perf_counter() - began)
    return sorted(took)[times // 2] * 1e6
