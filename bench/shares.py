"""Where the CPU time of sustained runs goes: by process and by function of the kernel, from perf (Debian: linux-perf)."""
import collections
import pathlib
import re
import shutil
import subprocess
import sys

import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import daemon as daemons  # noqa: E402
from support import host  # noqa: E402

CLIENTS, HERTZ, SHOWN = 4, 1999, 40
IDLE, OTHERS, IN_KERNEL = "(idle)", "(others of this machine)", "(in the kernel)"
HEAD = re.compile(r"^\s*(\S.*?)\s+(-?\d+)\s+[\d.]+:\s")
FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
FRAME = re.compile(r"^\s+[0-9a-f]+ (\S+)(?:\+0x[0-9a-f]+)? \((.*)\)$")
KERNEL_THREADS = ("kworker", "ksoftirqd", "rcu_", "kswapd", "migration", "kcompactd", "kthreadd", "khugepaged", "jbd2", "rcuc", "rcub")
# The outermost of these is the system call; the compiler leaves some of their frames out.
CALL = re.compile(r"^_+(?:x64_|se_|do_)?sys_(\w+)$")
CALLS = {"kernel_clone": "clone", "path_mount": "mount", "do_mount": "mount", "do_seccomp": "seccomp", "exc_page_fault": "page faults", "do_sys_poll": "poll",
         "do_epoll_wait": "epoll_wait", "do_sys_openat2": "openat", "do_execveat_common.isra.0": "execve", "do_sys_open": "openat", "vfs_read": "read",
         "vfs_write": "write", "ksys_read": "read", "ksys_write": "write", "do_wait": "wait", "kernel_wait4": "wait", "do_group_exit": "exit_group",
         "do_exit": "exit_group", "get_signal": "killed", "task_work_run": "closing late", "schedule_tail": "start", "do_pivot_root": "pivot_root",
         "asm_sysvec_apic_timer_interrupt": "interrupts", "asm_sysvec_reschedule_ipi": "interrupts", "handle_softirqs": "interrupts", "ksys_unshare": "unshare",
         "do_prctl": "prctl", "vfs_fsconfig_locked": "fsconfig", "do_mkdirat": "mkdirat", "do_rmdir": "unlinkat", "do_syscall_64": "short ones"}
OUTSIDE = "outside of calls"


def call_of(frames):
    for name, kernel in reversed(frames):
        found = kernel and name != "do_syscall_64" and (CALLS.get(name) or (CALL.match(name) or [None, None])[1])
        if found:
            return found
    return CALLS["do_syscall_64"] if any(name == "do_syscall_64" for name, _ in frames) else OUTSIDE


# Functions that everything passes through say nothing.
COMMON = re.compile(r"^(entry_SYSCALL|do_syscall_64|x64_sys_call|ret_from_fork|asm_|__x64_sys_|__do_sys_|__se_sys_|ksys_|syscall_|kthread$|worker_thread|process_one_work"
                    r"|process_scheduled_works|do_exit$|do_group_exit|vfs_|_raw_|__schedule$|schedule$|default_idle|cpuidle|do_idle|cpu_startup)")


def is_kernel(library):
    return library.startswith("[") and library not in ("[unknown]", "[vdso]")


def events(data):
    """("fork", child, parent), or (comm, pid, frames from the innermost, each (symbol, is it the kernel's))."""
    argv = ["perf", "script", "-i", data, "--show-task-events", "-F", "comm,pid,time,ip,sym,dso", "--max-stack", "64"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as told:
        head, frames = None, []
        for line in told.stdout:
            if fork := FORK.search(line):
                yield "fork", int(fork[1]), int(fork[2])
            elif frame := FRAME.match(line):
                frames.append((frame[1], is_kernel(frame[2])))
            elif found := HEAD.match(line):
                head, frames = (found[1], int(found[2])), []
            elif not line.strip() and head:
                yield *head, frames
                head = None


class Count:
    """Samples by process, and by function of the kernel. Whose parent is not ours is another's."""

    def __init__(self, data, ours, client):
        self.by_kind, self.own, self.below = collections.Counter(), collections.Counter(), collections.Counter()
        self.of_kind, self.of_call = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        ours = set(ours)
        for first, second, third in events(data):
            if first == "fork":
                if third in ours:
                    ours.add(second)
            else:
                self.add(self.kind(first, second, ours, client), third)

    @staticmethod
    def kind(comm, pid, ours, client):
        if comm.startswith("swapper"):
            return IDLE
        if comm.startswith(KERNEL_THREADS):
            return "kernel threads"
        return comm if pid in ours else "the client" if pid == client else OTHERS

    def add(self, kind, frames):
        self.by_kind[kind] += 1
        if kind in (IDLE, OTHERS):
            return
        if frames and frames[0][1]:
            self.of_kind[kind][IN_KERNEL] += 1
            self.own[frames[0][0]] += 1
        self.of_call[kind][call_of(frames)] += 1
        for name in {name for name, kernel in frames if kernel and not COMMON.match(name)}:
            self.below[name] += 1
            self.of_kind[kind][name] += 1

    def busy(self):
        return sum(self.by_kind.values()) - self.by_kind[IDLE] - self.by_kind[OTHERS]


def cpu_of(daemon):
    """ms by kind of those that stay."""
    found = collections.Counter()
    for pid in [daemon.pid, *daemon.below()]:
        if (kind := daemons.kind_of(pid)) in ("server", "monitor", "supervisor", "zygote"):
            found[kind] += daemons.cpu_seconds(pid) * 1000
    return found


def switches():
    return int(re.search(r"^ctxt (\d+)", host.read("/proc/stat"), re.M)[1])


def tell(client, daemon, seconds, scratch):
    if not shutil.which("perf"):
        sys.exit("no perf; on Debian, type:  apt-get install linux-perf")
    data = scratch / "perf.data"
    client.sustained(1, CLIENTS)
    record = subprocess.Popen(["perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data, "--", "sleep", str(seconds)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ours = [daemon.pid, *daemon.below()]
    before, ctxt = cpu_of(daemon), switches()
    told = client.sustained(seconds, CLIENTS)
    after, ctxt = cpu_of(daemon), switches() - ctxt
    _, words = record.communicate()
    if record.returncode != 0 or not data.exists():
        sys.exit(f"perf record: {words.strip()[:500]}")
    count = Count(data, ours, client.process.pid)
    report(count, told, {kind: after[kind] - before[kind] for kind in after}, ctxt)


def report(count, told, stayed, ctxt):
    runs, busy, total = len(told.runs), count.busy(), sum(count.by_kind.values())
    us = told.seconds * 1e6 * host.cpus() / total / runs # of CPU time that a sample stands for, in a run
    print(f"\n{runs} runs in {told.seconds:.1f} s with {CLIENTS} clients ({runs / told.seconds:.0f}/s, perf running): {busy * us:.0f} us of CPU time a run; "
          f"{ctxt / runs:.0f} context switches a run (the machine's); idle {count.by_kind[IDLE] / total:.0%}, others {count.by_kind[OTHERS] / total:.0%} of the CPUs")
    print(f"\n{'process':<18} {'share':>6} {'us a run':>9} {'kernel':>7}   its system calls, in parts of it; below: functions of the kernel, with what they call")
    for kind, n in count.by_kind.most_common():
        if kind in (IDLE, OTHERS) or n / busy < 0.004:
            continue
        calls = [f"{name} {m / n:.0%}" for name, m in count.of_call[kind].most_common(12) if m / n > 0.015]
        most = [f"{name} {m / n:.0%}" for name, m in count.of_kind[kind].most_common(15) if name != IN_KERNEL]
        print(f"{kind:<18} {n / busy:>6.1%} {n * us:>9.0f} {count.of_kind[kind][IN_KERNEL] / n:>7.0%}   {lib.folded(', '.join(calls), 45, 160)}")
        print(f"{'':<45}{lib.folded(', '.join(most), 45, 160)}")
    print("\nby the scheduler's own books, us a run: " + ", ".join(f"{kind} {ms * 1000 / runs:.0f}" for kind, ms in sorted(stayed.items(), key=lambda kv: -kv[1]) if ms > 0)
          + f", the client {told.cpu * 1e6 / runs:.0f}")
    print(f"\n{'function of the kernel':<36} {'itself':>7}      {'function, with what it calls':<36} {'share':>7}")
    for (left, n), (right, m) in zip(count.own.most_common(SHOWN), count.below.most_common(SHOWN)):
        print(f"{left:<36} {n / busy:>7.1%}      {right:<36} {m / busy:>7.1%}")
