"""What can fail in one run of brig: the calls come from a trace of a real run, their errnos from the table of classes below."""
import collections
import errno
import re
import subprocess

from support import brig, host

# The opener opens what --ro shows, and the holder lends it a user namespace; the owner makes that of the cell.
ROLES = ("brig", "brigd", "launcher", "opener", "holder", "owner", "init", "forker", "program")
OF_SHOWN = ("opener", "holder")
FAIL_AT = host.build_dir() / "tests" / "fail_at"

CLASSES = {
    # what such a call can really answer: which calls
    "EMFILE ENFILE EACCES ENOMEM": "open openat openat2",
    "EMFILE ENFILE ENOBUFS": "socket socketpair eventfd2 signalfd4 memfd_create pipe2 fsopen epoll_create1 pidfd_open",
    "EMFILE ENOLCK EPERM": "fcntl",
    "EAGAIN ENOMEM": "clone fork",
    "ENOSPC EAGAIN ENOMEM EPERM EACCES EBUSY": "clone3",
    "ENOSPC EPERM ENOMEM": "unshare setns",
    "ENOMEM EAGAIN": "mmap mprotect madvise",
    "ENOSPC EDQUOT EIO EINTR": "write pwrite64 ftruncate",
    "EIO EINTR": "read pread64 preadv2 close",
    "ENOSPC EDQUOT EROFS EACCES": "mkdir mkdirat",
    "EPERM EBUSY ENOMEM": "mount umount2 pivot_root open_tree move_mount fsmount",
    "EINVAL ENOMEM EPERM": "fsconfig mount_setattr",
    "EPERM EAGAIN": "setresuid setresgid setgroups",
    "EPERM EACCES": "capset capget prctl get_robust_list sethostname setdomainname setsid getpriority setpriority sched_getscheduler sched_setscheduler ioprio_set personality",
    "EDQUOT EACCES": "keyctl",
    "EBUSY ENOMEM EINVAL": "seccomp",
    "ENOMEM EINTR": "poll ppoll epoll_wait",
    "ENOBUFS EPIPE EINTR ENOMEM": "sendmsg sendto",
    "ENOMEM EINTR ECONNRESET": "recvmsg recvfrom",
    "ENOLCK EWOULDBLOCK EINTR": "flock",
    "ENOTTY EINVAL": "ioctl",
    "EMFILE EBUSY": "dup2 dup3",
    "EINVAL ENOSYS": "close_range",
    "EOPNOTSUPP ENOMEM EMFILE": "landlock_create_ruleset",
    "E2BIG ENOMEM": "landlock_add_rule landlock_restrict_self",
    "EACCES ENOMEM ETXTBSY": "execve execveat",
    "EACCES EIO": "chdir fchdir access faccessat2 readlink newfstatat fstat statx statfs fstatfs lseek",
    "EPERM EINVAL": "setrlimit prlimit64",
    "ENOMEM EPERM": "bind getsockname setsockopt getsockopt epoll_ctl",
    "EADDRINUSE": "listen",
    "EBUSY EACCES": "unlinkat renameat",
    "ECHILD EINTR": "wait4 waitid",
    "ENOSYS EAGAIN": "getrandom",
    "ESRCH EPERM": "pidfd_send_signal",
    "EINVAL": "clock_gettime getgroups",
    "ENOENT EIO": "getdents64",
}
ERRNOS = {call: [getattr(errno, name) for name in names.split()] for names, calls in CLASSES.items() for call in calls.split()}

CANNOT = {
    # call: why it is not made to fail
    **dict.fromkeys("getpid getuid geteuid umask setfsuid setfsgid exit_group set_robust_list set_tid_address".split(), "knows no failure"),
    **dict.fromkeys("rt_sigaction rt_sigprocmask getgroups sysinfo".split(), "fails for arguments only that the kernel does not know"),
    "brk": "answers with the old break, never with an errno; the C library then asks mmap",
    "munmap": "gives back; what fails stays mapped",
    "restart_syscall": "the kernel's own: a wait goes on that was interrupted",
}

HARMLESS = [
    # role, call, its words, errnos: why the program may run all the same
    (".*", "close", "", "", "the kernel closes, whatever it answers"),
    (".*", "read|pread64|preadv2|write|recvmsg|sendmsg|wait4|epoll_wait", "", "EINTR", "is made again"),
    (".*", "recvmsg", "", "ECONNRESET", "is made again: the words that were sent before come after it"),
    ("init|program", "clock_gettime", "", "", "what the set-up used then counts as the program's"),
    ("launcher", "recvmsg", 'iov_base="0u', "ENOMEM", "is made again: the order, which begins with its wall time of 30000 ms, is still there"),
    ("launcher", "sendmsg", "", "EPIPE", "a client that is gone is seen by poll as well"),
    ("brig", "ioctl", "FIONREAD", "", "input that the program did not read is then not given back"),
    ("brigd?", "getrandom", "GRND_NONBLOCK", "", "the C library's heap takes the clock instead"),
    ("brigd?", "openat|read", "/dev/urandom", "", "the JSON library's hash takes the clock instead"),
    ("brigd?", "readlink", "/proc/self/exe", "", "the name that it was started by is taken instead"),
    ("brigd?", "newfstatat", "AT_FDCWD.*S_IFDIR", "", "whose the build tree is matters to plain users: root gets the same store"),
    ("brig", "newfstatat", "brig.mark", "", "brig then looks for a service of the host before it starts its own"),
    ("brig", "prlimit64", "RLIMIT_NOFILE, NULL", "", "the C library looks whether its caller makes sense"),
    ("brigd", "close_range", "4, ", "", "the C library then closes one after the other, and brigd all once more"),
    ("brigd", "openat|newfstatat|read", "mountinfo", "", "which file systems are the kernel's own is asked by the launcher, too"),
    ("brigd", "access", "/brigd", "", "where a brigd is matters to brig"),
    ("brigd", "poll|openat|read", "pidfd|/comm", "", "what the client is called is told to people"),
    ("brigd", "getsockopt", "SOL_SOCKET, (0x4d|SO_PEERPIDFD)", "", "the same"),
    ("brigd", "fcntl", "F_DUPFD_CLOEXEC", "", "a last word is then told while the first descriptor is open, or not at all"),
    ("brigd", "mmap", "MAP_PRIVATE.MAP_ANONYMOUS, -1", "", "the C library's heap grows elsewhere"),
    ("brigd", "setsid", "", "", "it has its session from brig"),
    ("launcher", "close_range", "", "", "the cell closes it; brig then hears of brigd's death when the launcher is gone as well"),
    ("brig|launcher", "capget", "NULL|pid=0},  <unfinished", "", "the capability library asks for the version of the call"),
    ("launcher|forker", "prctl", "PR_SET_NAME", "", "a name for ps"),
    ("forker", "recvmsg|epoll_wait", "", "", "is made again: the request is still there"),
    ("forker", "sendmsg", r'iov_base="\\1', "", "that it waits for an order is news only where there is none yet"),
    ("forker", "epoll_ctl", "EPOLL_CTL_DEL", "", "a cell that is not known any more is passed over"),
    ("launcher|opener", "wait4", "", "ECHILD", "the holder of --ro's namespace is gone already"),
    ("launcher", "setsid", "", "", "Ctrl-C then reaches the launcher too, which takes it for the cancel that it is"),
    ("launcher", "openat", r'"/run/brig", O_RDONLY\|O_NOFOLLOW\|O_CLOEXEC\|O_DIRECTORY', "", "where the groups are is a hint: libcgroup is asked"),
    ("launcher", "openat|newfstatat|read", "/run/brig.*groups", "", "the same hint"),
    ("launcher", "statfs|access", "/cgroup", "", "the same hint is not believed"),
    ("launcher", "flock", "/cell-", "EWOULDBLOCK", "somebody else's: the next slot is taken"),
    ("launcher", "newfstatat", r'/cell-\d+>, ""|/brig>, "cell-', "", "the same: what cannot be known to be ours is somebody else's"),
    ("launcher", "flock", "/lock", "EWOULDBLOCK", "a rootfs that is being removed: its name is read again"),
    ("launcher", "newfstatat", r'/brig>, ""', "", "what a killed launcher left is not looked for, and stays for the next run"),
    ("launcher", "fcntl", "F_OFD_SETLK.*l_start=[1-9]|/brig>, F_", "", "the same"), # on a busy host it may also be the own slot
    ("launcher", "openat|getdents64", r'/brig>, ("\.",|0x)', "", "the same"),
    ("brigd", "epoll_wait", "", "", "of the connections of one user: they are asked again"),
    ("launcher", "openat|write", "/proc/sys/net/ipv4", "EACCES EPERM EROFS ENOENT", "a container whose /proc/sys cannot be written: control groups bound sockets"),
    ("launcher", "landlock_create_ruleset", "VERSION", "", "a kernel without Landlock: the record says so, and strict refuses"),
    ("launcher", "openat|write", r'/brig>, "memory.kmem|/brig/memory.kmem', "", "each cell has a bound for its sockets"),
    ("launcher", "openat|write", r'"memory.oom_control", O_WRONLY|/memory.oom_control>', "", "the kernel ends the run then, and tells it in its log"),
    ("launcher", "statfs", "max_user_namespaces", "", "the record then says missing:no-nested-ns"),
    ("opener", "mount_setattr", "IDMAP", "EINVAL EPERM", "a file system without id maps: the record says missing:inert-ro"),
    ("launcher", "prlimit64", "RLIMIT_CORE", "", "this host has no handler for crashes that must not be called"),
    ("program", "seccomp", "NEW_LISTENER", "EBUSY EINVAL", "the filter is on without a listener, or with one of an older kind: refused is null, or not"),
    ("brigd", "madvise", "DONTFORK", "", "the process that makes the CA has executed its program, and holds no copy, before the file is sealed"),
    ("brigd|launcher", "openat", r'"/run/brig", O_RDONLY\|O_CLOEXEC\|O_PATH', "", "a filter that is not kept is compiled again"),
    ("brigd|launcher", "openat|newfstatat|read", "/run/brig.*(filters|bpf)", "", "a filter that is not kept is compiled again"),
    ("launcher", "poll", "", "EINTR", "is made again"),
    ("launcher", "setsockopt", "TCP_CONGESTION", "", "the host's own way to pace connections does, too"),
    ("launcher", "epoll_create1|epoll_ctl", "", "", "whether the program uses its network cannot be waited for: brig-proxy gets the sockets at once"),
]

def roles_of(options):
    """With a network, a process of its own makes the CA."""
    return {role for role in ROLES if "--ro" in options or role not in OF_SHOWN} | ({"ca"} if "--net" in options else set())


# place: whose child it is, as fail_at wants it. needed: the program must not run without it
Call = collections.namedtuple("Call", "role name nth words needed place")


def traced(program, *options):
    """The calls of one run, in order."""
    log = program.with_suffix(".strace")
    done = subprocess.run(["strace", "-f", "-y", "-qq", "-s", "200", "-o", log, *command(program, *options)], capture_output=True, text=True,
                          timeout=host.HANG, env=brig.environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done
    lines = whole(log.read_text(errors="replace").splitlines())
    return [call for call in calls_of(lines) if call.name not in CANNOT]


def command(program, *options):
    return [brig.binary(), "run", "--json", "--timeout", "30", *options, program]


def whole(lines):
    """Calls that strace cut in two, because another process came between, in one piece where they began."""
    open_calls, out = {}, []
    for line in lines:
        pid, _, rest = line.partition(" ")
        resumed = re.match(r" *<\.\.\. \w+ resumed>(.*)", rest)
        if resumed and pid in open_calls:
            out[open_calls.pop(pid)] += resumed[1]
            continue
        if line.endswith(" <unfinished ...>"):
            open_calls[pid] = len(out)
            line = line.removesuffix(" <unfinished ...>")
        out.append(line)
    return out


Birth = collections.namedtuple("Birth", "parent flags place")


def births(lines):
    """{pid: Birth} of all processes but the first."""
    made, children = {}, collections.Counter()
    places = {lines[0].split()[0]: "1"}
    for line in lines:
        found = re.match(r"(\d+) +(?:clone3?|v?fork)\((.*) = (\d+)$", line)
        if found:
            parent, flags, child = found.groups()
            children[parent] += 1
            places[child] = f"{places[parent]}.{children[parent]}"
            made[child] = Birth(parent, flags, places[child])
    return made


DOES = [ # role, what only it does
    ("brigd", r'execve\(".*/brigd"'), ("ca", r"execveat\(.*--make-ca"), ("launcher", r'prctl\(PR_SET_NAME, "brig-launcher"'), ("init", r"execveat\(.*brig-init"),
    ("forker", r'prctl\(PR_SET_NAME, "brig-forker"'), ("program", r'execve\("/usr/bin/python3"'), ("opener", r"open_tree\(\d+<.*/shown>"),
]


def roles_in(lines, made):
    """{pid: role}, by what each process does; a process that makes only a user namespace to be lent does nothing of its own, and is known by who made it."""
    roles = {lines[0].split()[0]: "brig"}
    for line in lines:
        pid, _, call = line.partition(" ")
        if pid not in roles:
            roles |= {pid: role for role, what in DOES if re.match(what, call.strip())}
    lent = {pid: {"launcher": "owner", "opener": "holder"}.get(roles.get(birth.parent)) for pid, birth in made.items() if "CLONE_NEWUSER" in birth.flags}
    return roles | {pid: role for pid, role in lent.items() if pid not in roles}


def calls_of(lines):
    """From brig's main(), and without that between brigd's exec and its main(): the dynamic loader is not ours.

    Up to the program's exec: what it calls then is not ours either.
    """
    made, counts = births(lines), collections.Counter()
    roles = roles_in(lines, made)
    loading, needless, gone = {"brig"}, set(), set()
    for line in lines:
        found = re.match(r"(\d+) +(\w+)\((.*)", line)
        if not found:
            continue
        pid, name, words = found.groups()
        role = roles[pid]
        if role in gone or role == "brig" and name == "execve":
            continue
        counts[role, name] += 1
        if name == "fcntl": # the first of main()
            loading.discard(role)
        if role not in loading:
            yield Call(role, name, counts[role, name], words, role not in needless, made[pid].place if pid in made else "1")
        if role == "brigd" and name == "execve":
            loading.add(role)
        if ends_set_up(role, name, words):
            needless.add(role)
        if role == "program" and name == "execve":
            gone.add(role)


def ends_set_up(role, name, words):
    """After this call the role only watches."""
    return (role == "brig" and name == "sendmsg" or role == "brigd" and name == "clone" or role == "launcher" and name == "sendto"
            or role == "holder" and name == "read" or role == "forker" and name == "clone3" or role == "init" and name == "write" and words.startswith("4"))


def why_harmless(call, error):
    for role, name, words, errnos, why in HARMLESS:
        if re.fullmatch(role, call.role) and re.fullmatch(name, call.name) and re.search(words, call.words) and \
           (not errnos or errno.errorcode[error] in errnos.replace("EWOULDBLOCK", "EAGAIN").split()):
            return why
    return None


class Attempt:
    """One run in which one call fails."""

    def __init__(self, call, error, program, *options):
        self.call, self.error = call, error
        report = program.with_suffix(".report")
        argv = [FAIL_AT, report, call.place, call.name, call.nth, error, *command(program, *options)]
        done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=host.HANG, env=brig.environment(), stdin=subprocess.DEVNULL)
        self.lines = report.read_text().splitlines()
        self.status, self.stderr = done.returncode, done.stderr
        self.record = brig.parse(done.stdout) or {}
        self.reason, self.stdout = self.record.get("exit_reason"), self.record.get("stdout")
        self.failed = "failed" in self.lines
        self.ran = any(re.match(r"exec \S+ .*/python3", line) for line in self.lines)

    def __str__(self):
        c = self.call
        return (f"{c.role}: {c.name} {c.nth} ({c.words[:90]}) = {errno.errorcode[self.error]}: status {self.status}, {self.reason}, "
                f"stdout {self.stdout!r}, {' '.join(self.lines)}, stderr {self.stderr.strip()[:300]!r}")

    def is_whole(self):
        return self.status == 0 and self.reason == "exited" and self.stdout == "ran\n"

    def names_its_step(self):
        """A step of the set-up, a file, a layer, or what else is told to those who read it."""
        return re.search(r"^brig: (set-up step [a-z-]+:|.*/|memory file |\S+ cannot be applied here|no random bytes|descriptors 0 to 2|the peer's [a-z]+:)", self.stderr)

    def complaint(self):
        """None, or what is wrong with how it ended."""
        if any(line.startswith("left") for line in self.lines):
            return "a process is left"
        if not self.failed: # another run was in the way, and this one took another slot
            return None if self.is_whole() else "nothing failed, and yet"
        if not self.call.needed:
            return self.complaint_of_watch()
        if self.ran:
            return None if why_harmless(self.call, self.error) and self.is_whole() else "the program ran"
        if (self.call.role, self.call.name) == ("program", "execve"):
            return None if self.status == 126 and "in the rootfs" in self.stderr else "not what a shell says"
        if self.status != 125 or self.stdout is not None or self.record and self.reason not in ("setup_failed", "denied"):
            return "neither refused nor run"
        return None if self.names_its_step() else "the step has no name"

    def complaint_of_watch(self):
        record = self.record
        if not record:
            return None if self.status and "record cannot be written" in self.stderr else "no record and no word"
        if any(record[figure] == 0 for figure in ("wall_ms", "memory_peak_bytes", "pids_peak", "cpu_ms")):
            return "a figure that is not known is 0"
        if self.reason == "exited":
            unread = record["exit_code"] == 0 and self.status and record["truncated"] and "output cannot be read" in self.stderr
            unsent = record["exit_code"] == 120 and why_harmless(self.call, self.error) # Python: what it printed nothing could read
            return None if self.is_whole() or unread or unsent else "the record is not true"
        if self.status not in (125, 141, 143) or not re.search(r"brig: .*: .*[a-z]", self.stderr):
            return "an end without a reason"
        return "the program ran, they say it did not" if self.ran and self.reason in ("setup_failed", "denied") else None

