"""What can fail in a run: the list comes from a trace of a real one, the errnos from the table of classes below."""
import collections
import errno
import re
import subprocess

from support import brig, host

ROLES = ("brig", "launcher", "init", "program") # in the order of their birth

CLASSES = {
    # errnos that such a call can really give: what they do
    "EMFILE ENFILE EACCES ENOMEM": "open openat openat2",
    "EMFILE ENFILE ENOBUFS": "socket socketpair eventfd2 signalfd4 memfd_create pipe2 fsopen epoll_create1 pidfd_open",
    "EAGAIN ENOMEM": "clone fork",
    "ENOSPC EAGAIN ENOMEM EPERM EACCES EBUSY": "clone3",
    "ENOSPC EPERM ENOMEM": "unshare setns",
    "ENOMEM": "mmap",
    "ENOSPC EDQUOT EIO EINTR": "write pwrite64",
    "EIO EINTR": "read pread64",
    "EIO EINTR ": "close",
    "ENOSPC EDQUOT EROFS EACCES": "mkdir mkdirat",
    "EPERM EBUSY ENOMEM": "mount umount2 pivot_root open_tree move_mount fsmount",
    "EINVAL ENOMEM EPERM": "fsconfig mount_setattr",
    "EPERM EAGAIN": "setresuid setresgid setgroups",
    "EPERM ": "capset capget prctl sethostname setdomainname setsid fchown fchmod setpriority sched_setscheduler ioprio_set personality",
    "EDQUOT EACCES": "keyctl",
    "ENOMEM EINTR": "poll ppoll",
    "ENOBUFS EPIPE EINTR ENOMEM": "sendmsg sendto",
    "ENOMEM EINTR ECONNRESET": "recvmsg recvfrom",
    "ENOLCK EAGAIN EINTR": "flock",
    "EAGAIN EMFILE": "fcntl",
    "EMFILE EBUSY": "dup2 dup3",
    "EINVAL ENOSYS": "close_range",
    "ENOSYS ENOMEM": "seccomp",
    "EOPNOTSUPP ENOMEM EMFILE": "landlock_create_ruleset",
    "E2BIG ENOMEM": "landlock_add_rule landlock_restrict_self",
    "EACCES ENOMEM ETXTBSY ": "execve execveat",
    "EACCES EIO": "chdir fchdir access faccessat faccessat2 readlink newfstatat statfs fstatfs",
    "EPERM EINVAL": "setrlimit prlimit64",
    "ENOMEM EPERM": "bind getsockname setsockopt",
    "EBUSY EACCES": "unlinkat rmdir renameat",
    "ECHILD EINTR": "wait4 waitid",
    "ENOSYS EAGAIN": "getrandom",
    "ESRCH EPERM": "pidfd_send_signal kill",
    "EINTR ": "nanosleep clock_nanosleep",
}
ERRNOS = {call: [getattr(errno, name) for name in names.split()] for names, calls in CLASSES.items() for call in calls.split()}

CANNOT = {
    # call: why it is not made to fail
    **dict.fromkeys("getpid geteuid umask setfsuid exit_group rt_sigreturn restart_syscall set_robust_list set_tid_address".split(), "knows no failure"),
    **dict.fromkeys("rt_sigaction rt_sigprocmask".split(), "fails for arguments only that the kernel does not know"),
    "brk": "tells the old break instead of an errno, and the C library then asks mmap",
    "munmap": "gives back; what fails stays mapped",
    "sched_getscheduler": "",
}

Call = collections.namedtuple("Call", "role name nth words needed") # needed: no program may run without it


def traced(program, *options):
    """The calls of one run, in order."""
    log = program.with_suffix(".strace")
    argv = ["strace", "-f", "-qq", "-s", "200", "-o", log, brig.binary(), "run", "--json", "--timeout", "5", *options, program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, env=brig.environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    return list(calls_of(log.read_text(errors="replace").splitlines()))


def calls_of(lines):
    pids, counts = [], collections.Counter()
    started, over = set(), set() # roles that reached their main(), and the end of what they do before the program starts
    for line in lines:
        found = re.match(r"(\d+) +(\w+)\((.*)", line)
        if not found:
            continue
        pid, name, words = found.groups()
        if pid not in pids:
            pids.append(pid)
        role = ROLES[pids.index(pid)]
        if role == "brig" and name == "execve":
            continue
        counts[role, name] += 1
        if role == "brig" and name == "fcntl":
            started.add(role) # what the dynamic loader does is not ours
        if (role != "brig" or role in started) and (role, "gone") not in over:
            yield Call(role, name, counts[role, name], words, role not in over)
        if role == "brig" and name == "prctl" and "NO_NEW_PRIVS" in words or role == "launcher" and name == "sendto" or \
           role == "init" and name == "write" and words.startswith("4,"):
            over.add(role)
        if role == "program" and name == "execve":
            over.add((role, "gone"))
