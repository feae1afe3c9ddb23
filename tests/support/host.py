"""What this machine has, and what lies about on it: asked from outside of any jail."""
import ctypes
import faulthandler
import fcntl
import functools
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import time

from support import runs

REPO = pathlib.Path(__file__).resolve().parent.parent.parent
PYTHON = "/usr/bin/python3"
WORKER = int(os.environ.get("BRIG_TEST_WORKER", "0")) # its number among all of this host: tests/worker
SLOWER = float(os.environ.get("BRIG_TEST_SLOWER", "1")) # by so much whoever waits waits longer: a machine without hardware of its own
HANG = 60 * SLOWER # seconds: the one limit of every wait for what must come. It tells that something hangs, and nothing about speed


def build_dir():
    return pathlib.Path(os.environ.get("BRIG_BUILD", REPO / "build")).resolve()


SANITIZERS_KEEP = 64 << 20 if build_dir().name == "asan" else 0 # bytes that a process may have more than it needs


def debian():
    """The release of this machine's Debian, by its code name: what was built here runs there. Elsewhere the older of those that brig knows."""
    known = dict(line.split("=", 1) for line in read("/etc/os-release").splitlines() if "=" in line).get("VERSION_CODENAME", "")
    return known if known in ("bookworm", "trixie") else "bookworm"


def own_id(n):
    """The n-th user or group id of this worker, of 16: no account of Debian has such ids."""
    return 28400 + 16 * WORKER + n


def id_range():
    """The first of the host ids that root's jails have, and how many."""
    line = next((line for line in read("/etc/subuid").splitlines() if line.startswith("brig:")), "brig:1879048192:65536")
    return tuple(map(int, line.split(":")[1:]))


def store_dir():
    return pathlib.Path(os.environ.get("BRIG_STORE", build_dir() / "store"))


def runtime_dir():
    if os.geteuid() == 0:
        return pathlib.Path("/run/brig")
    return pathlib.Path(os.environ.get("XDG_RUNTIME_DIR", f"/tmp/brig-{os.geteuid()}"), "brig")


def poll(ask, seconds=None, every=0.01):
    """Asks until the answer is true, or in vain until HANG; returns the last answer. seconds: where the answer may well stay false."""
    end = time.monotonic() + (HANG if seconds is None else seconds * SLOWER)
    while True:
        began = time.monotonic()
        answer = ask()
        asked = time.monotonic()
        if answer or asked > end:
            return answer
        time.sleep(max(every, asked - began) if every else 0) # half of the time is for what is waited for, where to ask takes long


def rests(pid, seconds=0.3):
    """It sleeps, and for so long nothing has woken it: one that waits busily, or looks again and again, does not. Load does not wake it either."""
    before = sleeps(pid)
    if before is None:
        return False
    time.sleep(seconds)
    return sleeps(pid) == before


def sleeps(pid):
    """How often it has gone to sleep, when it sleeps now; else None."""
    fields = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    return int(fields["voluntary_ctxt_switches"]) if fields.get("State", "").startswith("S") else None


# --- what is missing ------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def lacks(need):
    """None when the machine has it, else the reason to print for a skip."""
    kind, _, name = need.partition(":")
    if kind == "root":
        return None if os.geteuid() == 0 else "needs root: rootful jails are made by uid 0"
    if kind == "cgroup":
        return None if name in controllers() else f"needs the cgroup controller {name}: see /proc/cgroups"
    if kind == "rootfs":
        return None if has_rootfs(name) else f"needs the rootfs {name} in {store_dir()}: ./dev rootfs {name}"
    if kind == "tool":
        return None if any(os.access(f"{d}/{name}", os.X_OK) for d in os.environ["PATH"].split(":")) else f"needs the program {name}"
    if kind == "file":
        return None if os.path.exists(name) else f"needs {name}: the kernel lacks the feature"
    if kind == "overlay":
        return None if "overlay" in read("/proc/filesystems") else "needs overlay file systems, for a scratch copy of the host"
    if kind == "x86":
        return None if os.uname().machine == "x86_64" else "needs x86-64: no other processor has these calls"
    if kind == "int80":
        return None if answers_int80() else "needs 32-bit system calls: this kernel, or what it runs on, has none (CONFIG_IA32_EMULATION; PVM)"
    if kind == "no":
        return None if lacks(name) else f"needs a machine without {name}"
    raise ValueError(need)


def answers_int80():
    """getpid by int 0x80, in a process that may die of it."""
    code = bytes.fromhex("b814000000cd80c3") # mov eax, 20; int 0x80; ret
    if lacks("x86"):
        return False
    pid = os.fork()
    if pid == 0:
        try:
            faulthandler.disable() # pytest's would print a traceback
            page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            page.write(code)
            answer = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
            os._exit(answer != os.getpid())
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def has_rootfs(name):
    return (store_dir() / "names" / name).exists()


def cpus():
    """CPUs that this machine lets us use."""
    return len(os.sched_getaffinity(0))


def copy_rootfs(name, store):
    """A store with that one, and with others that were copied to it: all of them are large."""
    tree = (store_dir() / "names" / name).readlink().name
    for folder in ("names", "tmp", "trees"):
        (store / folder).mkdir(parents=True, exist_ok=True)
        shutil.copymode(store_dir() / folder, store / folder)
    (store / "names" / name).symlink_to(f"../trees/{tree}")
    subprocess.run(["cp", "-a", "--reflink=auto", store_dir() / "trees" / tree, store / "trees"], check=True)


def landlock_abi():
    """0: this kernel has none."""
    return max(0, ctypes.CDLL(None).syscall(444, None, 0, 1)) # landlock_create_ruleset, LANDLOCK_CREATE_RULESET_VERSION


def controllers():
    found = set()
    for line in read("/proc/mounts").splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            found |= set(options.split(","))
        elif kind == "cgroup2":
            found |= set(read(f"{where}/cgroup.controllers").split())
    return found


def kinds_of_groups():
    """Of {"cgroup", "cgroup2"}, what is mounted."""
    return {line.split()[2] for line in read("/proc/mounts").splitlines()} & {"cgroup", "cgroup2"}


def open_way(folder):
    """Lets every user get at what is in it: pytest's own folders are closed to others. Only adds to the modes, as one of the three may be /tmp."""
    for place in (folder, *folder.parents[:2]):
        place.chmod(place.stat().st_mode & 0o7777 | 0o055)


def read(path, default=""):
    """Of /proc, tests read thousands of files: a file object would make twice as many calls."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return b"".join(iter(lambda: os.read(fd, 1 << 16), b"")).decode(errors="replace")
        finally:
            os.close(fd)
    except OSError:
        return default


# --- what lies about --------------------------------------------------------------------------------------

def own_groups():
    """Where our own control groups are, and on v2 the brig's above: those of others are none of our business."""
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in read("/proc/self/cgroup").splitlines())}
    for line in read("/proc/mounts").splitlines():
        _, where, kind, options, *_ = line.split()
        for controllers, path in paths.items():
            if kind == "cgroup2" and not controllers:
                yield where + path
                yield from (f"{where}{above}/brig".replace("//", "/") for above in pathlib.PurePosixPath(path).parents)
            elif kind == "cgroup" and set(controllers.split(",")) <= set(options.split(",")):
                yield where + path


def cgroup_dirs():
    """The groups that hold cells, with their inodes: another run may have one of the same name. Brig's base above them stays."""
    return {(folder, inode_of(folder)) for top in own_groups() for folder, _, _ in os.walk(top) if "/brig/" in folder}


def group_cpu_seconds(pid):
    """CPU time of the control group that the process is in; None when it is gone, or nobody counts."""
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for top in mounts_of(names):
            usage, stat = read(f"{top}{path}/cpuacct.usage"), read(f"{top}{path}/cpu.stat")
            if usage:
                return int(usage) / 1e9
            if stat.startswith("usage_usec"):
                return int(stat.split()[1]) / 1e6
    return None


def groups_of(pid, controller):
    """Folders of the control groups of a process in which that controller may be."""
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if not names or controller in names.split(","):
            yield from (f"{top}{path}" for top in mounts_of(names))


def mounts_of(names):
    """Where the hierarchy of these controllers is mounted; v2 has the name ""."""
    for line in read("/proc/mounts").splitlines():
        _, where, kind, options, *_ = line.split()
        if (kind == "cgroup2" and not names) or (kind == "cgroup" and names and set(names.split(",")) <= set(options.split(","))):
            yield where


def abandoned_groups():
    """Groups of cells that no launcher holds locked, with their inodes."""
    found = set()
    for folder, inode in cgroup_dirs():
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            found.add((folder, inode))
        except OSError:
            pass
        finally:
            os.close(fd)
    return found


def kernel_groups(controller):
    """How many the kernel has, those included that are removed and not yet free."""
    for line in read("/proc/cgroups").splitlines():
        if line.split()[0] == controller:
            return int(line.split()[2])
    return None


def dying_groups():
    """Of v2: removed and not yet free."""
    for line in read("/proc/mounts").splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return next((int(row.split()[1]) for row in read(f"{where}/cgroup.stat").splitlines() if row.startswith("nr_dying_descendants")), None)
    return None


def inode_of(path):
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def files_below(path):
    return {os.path.join(d, name) for d, dirs, names in os.walk(path) for name in dirs + names}


class Growth:
    """Files that were added below a folder since it was first looked at. A store has a hundred thousand: only its folders are asked, for their times."""

    def __init__(self, top):
        self.first = {folder: (changed_at(folder), {*folders, *names}) for folder, folders, names in os.walk(top)}

    def added(self):
        found = set()
        for folder, (changed, names) in self.first.items():
            now = changed_at(folder)
            if now != changed or now > time.time_ns() - 10**9: # that clock goes by ticks
                for path in (os.path.join(folder, name) for name in set(listed(folder)) - names):
                    found |= {path, *files_below(path)}
        return found


def changed_at(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError: # it is gone
        return 0


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


@functools.lru_cache(maxsize=None)
def growth(top):
    return Growth(top)


def brig_files(folder):
    """What is named after us or belongs to a cell's user."""
    for entry in os.scandir(folder):
        try:
            if entry.name.startswith(("brig-test-", "brig-bench-")): # the tests' own folders
                continue
            if entry.name.startswith("brig") or entry.stat(follow_symlinks=False).st_uid >= 65536:
                yield entry.path
        except OSError:
            pass


def slab(name):
    """Objects in use of one kernel cache, or None: counts namespaces and mounts that no process shows.

    What lies free in the lists of the CPUs counts as used, hundreds of objects: the kernel is told to give them back first.
    """
    try:
        with open(f"/sys/kernel/slab/{name}/shrink", "w") as shrink:
            shrink.write("1")
    except OSError: # no right to, or no such file
        return None
    for line in read("/proc/slabinfo").splitlines():
        if line.split()[0] == name:
            return int(line.split()[1])
    return None


def pids():
    """Of every process, without the kernel's own, of which there are more than of all others."""
    kernel = {2, *children(2)} if read("/proc/2/comm") == "kthreadd\n" else set()
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} - kernel


def processes(among=None):
    """(pid, comm, host uids) of every process, but for the dead that only wait for the machine's init, which may take its time."""
    for pid in pids() if among is None else among:
        status = read(f"/proc/{pid}/status")
        if not status:
            continue
        fields = dict(line.split(":\t", 1) for line in status.split("\n", 10)[:10]) # Uid is the ninth
        if fields["State"].startswith("Z") and fields["PPid"] == "1":
            continue
        yield pid, fields["Name"], tuple(map(int, fields["Uid"].split()))


def families():
    """{pid: its children, oldest first}. The kernel's own lists of children leave some out while others end."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        stat = read(f"/proc/{name}/stat").rpartition(")")[2].split()
        if stat:
            found.setdefault(int(stat[1]), []).append((int(stat[19]), int(name))) # its parent, when it started
    return {parent: [pid for _, pid in sorted(those)] for parent, those in found.items()}


def parent(pid):
    return int(read(f"/proc/{pid}/stat").rpartition(")")[2].split()[1])


def children(pid):
    return families().get(pid, [])


def below(pid):
    """Every process under it, parents first."""
    known, found, last = families(), [], [pid]
    while last:
        last = [child for parent in last for child in known.get(parent, [])]
        found += last
    return found


def jail_below(pid):
    """Below a running brig, by what they are: "brigd", "launcher", "init", "program"; those that are there."""
    known, found = families(), {}

    def look(parent, inside):
        for child in known.get(parent, []):
            comm, number = read(f"/proc/{child}/comm").rstrip("\n"), number_inside(child)
            if number in (1, 2):
                found["init" if number == 1 else "program"] = child
            elif not inside and comm in ("brigd", "brig-launcher"):
                found[comm.removeprefix("brig-")] = child
            if number is None:
                look(child, comm == "brig-launcher") # whose forks have its name
    look(pid, False)
    return found


def number_inside(pid):
    """The pid that a process has in its innermost namespace; None: it has only one, or is gone."""
    numbers = read(f"/proc/{pid}/status").partition("\nNSpid:\t")[2].partition("\n")[0].split()
    return int(numbers[-1]) if numbers[1:] else None


def cell_processes():
    """Processes with a host uid that belongs to nobody on this host: only cells have such."""
    known = {int(line.split(":")[2]) for line in read("/etc/passwd").splitlines() if line.count(":") > 2}
    return {(pid, comm, uids[0]) for pid, comm, uids in processes() if uids[0] not in known and uids[0] >= 65536}


def with_token(token):
    """Processes that have the token among their arguments: [(pid, uid)]."""
    named = [pid for pid in pids() if token in read(f"/proc/{pid}/cmdline")]
    return [(pid, uids[0]) for pid, _, uids in processes(named)]


def meminfo(name):
    """Bytes of one line of the host's /proc/meminfo."""
    for line in read("/proc/meminfo").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {name} in /proc/meminfo")


def mem_available():
    return meminfo("MemAvailable")


def open_files():
    return int(read("/proc/sys/fs/file-nr").split()[0])


def is_of_slot(folder, groups):
    """Of the session's service, and empty: it rests for the next cell. How many may is said by tests/service/test_slots.py."""
    return bool(groups and groups in folder and not read(f"{folder}/cgroup.procs"))


def counted(things, is_service):
    """Of the session's service, how many: its cells come and go, whoever asks for a run."""
    theirs = {thing for thing in things if is_service(thing)}
    return set(things) - theirs | of_the_service(len(theirs))


@functools.lru_cache(maxsize=None)
def of_the_service(many):
    return frozenset(("of the session's service", n) for n in range(many))


class Snapshot:
    """What a run must not change; compare with `left_since`."""

    def __init__(self):
        served = runs.settled()
        self.things = self.take()
        if not served: # it may begin after this
            for kind in ("cgroup", "process"):
                self.things[kind] |= of_the_service(10000)
        self.open_files = open_files()

    @staticmethod
    def take():
        pids, groups = runs.of_service()
        return {
            "mount": {line.split(" ", 3)[-1] for line in read("/proc/self/mountinfo").splitlines()},
            "cgroup": counted({group for group in cgroup_dirs() if not is_of_slot(group[0], groups)}, lambda group: groups and groups in group[0]),
            "process": counted(cell_processes(), lambda process: process[0] in pids),
            "store": growth(store_dir()).added(),
            "runtime": {path for path in files_below(runtime_dir()) if not path.endswith((".bpf", "/brig/view", "/layers-said"))}, # kept: a filter of each policy, where zygotes look
            "tmp": {path for place in ("/tmp", "/dev/shm") for path in brig_files(place)},
        }

    def left_since(self, seconds=None):
        """Waits until nothing of what is new now is there any more; {kind: what stays}."""
        left = {kind: now - self.things[kind] for kind, now in self.take().items()}

        def all_gone():
            for kind, now in self.take().items():
                left[kind] &= now
            return not any(left.values())
        poll(all_gone, seconds, every=0.05)
        left["process"] = {described(thing) for thing in left["process"]}
        return {kind: sorted(map(str, things)) for kind, things in left.items() if things}


def described(process):
    """A process that is left, with what shows which run it belongs to."""
    pid = process[0]
    if not isinstance(pid, int):
        return process
    parents, parent = [], pid
    while parent > 1 and (line := re.search(r"^PPid:\s*(\d+)$", read(f"/proc/{parent}/status"), re.M)):
        parent = int(line[1])
        parents.append(f"{parent} {read(f'/proc/{parent}/cmdline')[:200]!r}")
    return (*process, read(f"/proc/{pid}/cmdline")[:200], read(f"/proc/{pid}/cgroup"), "below " + ", ".join(parents))
