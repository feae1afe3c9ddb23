"""Programs that use as much as they may of one thing of the host. This text travels: with a call of main() behind it, it is the program of a jail.

A bomb is a function that prepares and returns what to do again and again; main() does that until the time is over, and prints how often it did.
"""
import array
import collections
import ctypes
import errno
import fcntl
import functools
import hashlib
import itertools
import json
import mmap
import os
import platform
import random
import select
import signal
import socket
import struct
import sys
import sysconfig
import threading
import time

# meets: errors of the system that are part of it. ends: how its runs end. limits: options of brig run.
Bomb = collections.namedtuple("Bomb", "prepare about meets ends limits")
BOMBS = {}
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mlock.argtypes = libc.munlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
PAGE = 4096
MIB = 1 << 20


def bomb(about, *meets, ends="exited", limits=()):
    def register(prepare):
        BOMBS[prepare.__name__.replace("_", " ")] = Bomb(prepare, about, set(meets), ends, limits)
        return prepare
    return register


def main(name, seconds):
    again = BOMBS[name].prepare()
    first, end, rounds, met = os.getpid(), time.monotonic() + seconds, 0, set()
    while time.monotonic() < end:
        met |= attempt(again)
        rounds += 1
    if os.getpid() == first: # a bomb may fork
        print("\n" + json.dumps({"rounds": rounds, "met": sorted(met)}), flush=True)
    os._exit(0) # children and threads end with the cell


def attempt(what):
    """The name of the error that it met, as a set."""
    try:
        what()
    except OSError as e:
        return {errno.errorcode.get(e.errno, type(e).__name__)}
    return set()


def forever(what):
    while True:
        attempt(what)


def beside(what, times=1):
    """So many children that do this; they end with the cell."""
    for _ in range(times):
        if os.fork() == 0:
            try:
                forever(what)
            finally:
                os._exit(1)


def threads(what, times):
    for _ in range(times):
        threading.Thread(target=forever, args=(what,), daemon=True).start()


def call(function, *args):
    """A function of the C library: its value, or the error as an exception."""
    value = function(*args)
    if value == -1:
        raise OSError(ctypes.get_errno(), function.__name__)
    return value


def pages(size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
    """(memory of one's own, its address)"""
    memory = mmap.mmap(-1, size, flags=flags)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def split_pages(n):
    """So many pages of which each is a mapping of its own."""
    memory, address = pages(n * PAGE)
    for k in range(1, n, 2):
        call(libc.mprotect, address + k * PAGE, PAGE, mmap.PROT_READ)
    return memory, address


def child(what):
    """Forks; the child does this and is gone."""
    pid = os.fork()
    if pid == 0:
        try:
            what()
        finally:
            os._exit(0)
    return pid


def nothing():
    pass


def rootfs_files(most):
    """Some of its files: the modules of the standard library."""
    folder = sysconfig.get_path("stdlib")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [os.path.join(folder, name) for name in names[:most]]


# --- computing ------------------------------------------------------------------------------------------------------------

@bomb("computes, and nothing else: what all others are compared with")
def spin():
    def again():
        for _ in range(1000):
            pass
    return again


@bomb("sixteen processes give up the CPU all the time")
def yields():
    beside(os.sched_yield, 15)
    return os.sched_yield


@bomb("four processes move from CPU to CPU", "EINVAL")
def moves_between_CPUs():
    cpus = itertools.cycle({cpu} for cpu in sorted(os.sched_getaffinity(0)))

    def again():
        os.sched_setaffinity(0, next(cpus))
    beside(again, 3)
    return again


@bomb("asks for other priorities and for real time", "EPERM", "EACCES")
def priorities():
    def again():
        for ask in (lambda: os.setpriority(os.PRIO_PROCESS, 0, 10), lambda: os.setpriority(os.PRIO_PROCESS, 0, -20), lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))):
            attempt(ask)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return again


# --- processes and threads ------------------------------------------------------------------------------------------------

@bomb("starts threads, eight at a time")
def thread_storm():
    def again():
        started = [threading.Thread(target=nothing) for _ in range(8)]
        for one in started:
            one.start()
        for one in started:
            one.join()
    return again


@bomb("eight processes fork children that end at once")
def fork_storm():
    def again():
        os.waitpid(child(nothing), 0)
    beside(again, 7)
    return again


@bomb("forks until it may not, and all of them go on trying", "EAGAIN", limits=("--memory", "1G")) # each of them takes some
def fork_bomb():
    return os.fork


@bomb("forks with 64 MiB in twenty thousand mappings")
def forks_of_much_memory():
    memory, address = split_pages(20000)
    ctypes.memset(address, 1, PAGE)
    more, its_address = pages(64 * MIB)

    def again():
        ctypes.memset(its_address, 1, 4 * MIB) # which are copied anew for the next one
        os.waitpid(child(nothing), 0)
    again.keeps = memory, more
    return again


@bomb("four processes execute /bin/true")
def exec_storm():
    def again():
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    beside(again, 3)
    return again


@bomb("a chain of thirty processes, each ends when its child has ended", "EAGAIN")
def nested_exits():
    def nest(depth):
        if depth:
            os.waitpid(child(lambda: nest(depth - 1)), 0)
    return lambda: nest(30)


@bomb("makes orphans, which process 1 of the jail has to reap", "EAGAIN")
def orphans():
    def again():
        os.waitpid(child(lambda: child(nothing)), 0)
    beside(again, 3)
    return again


@bomb("leaves forty children unreaped, then reaps them all", "EAGAIN", "ECHILD")
def zombies():
    def again():
        for _ in range(40):
            child(nothing)
        while True:
            os.waitpid(-1, 0)
    return again


@bomb("stops itself and goes on all the time, which its parent is told of")
def stops_and_continues():
    first = os.getpid()

    def again():
        os.kill(first, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
    beside(again, 2)
    return lambda: time.sleep(0.001)


@bomb("queues signals until it may not, then takes them", "EAGAIN")
def signal_queue():
    number = signal.SIGRTMIN + 1
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})

    def again():
        met = attempt(lambda: [call(libc.sigqueue, os.getpid(), number, None) for _ in range(2000)])
        while signal.sigtimedwait({number}, 0):
            pass
        if met:
            raise OSError(errno.EAGAIN, "sigqueue")
    return again


@bomb("children use up their stack")
def stack_overflows():
    sys.setrecursionlimit(1 << 30)

    def deeper(_):
        return sorted([0], key=deeper)

    def again():
        os.waitpid(child(lambda: deeper(0)), 0)
    return again


@bomb("children call the kernel by a foreign ABI, which kills them")
def foreign_calls():
    if platform.machine() != "x86_64":
        return nothing
    page = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("b814000000cd80c3")) # mov eax, 20 (getpid); int 0x80; ret
    enter = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def again():
        os.waitpid(child(enter), 0)
    return again


@bomb("calls what is refused: mount, personality, prctl, unshare, ptrace, setns, userfaultfd", "EPERM", "ENOSYS")
def refused_calls():
    userfaultfd = {"x86_64": 323, "aarch64": 282}[platform.machine()]
    calls = [(libc.mount, b"a", b"b", b"c", 0, None), (libc.personality, 0x40000), (libc.prctl, 4, 1, 0, 0, 0), (libc.unshare, 0x10000000), (libc.ptrace, 0, 0, 0, 0),
             (libc.setns, 0, 0), (libc.syscall, userfaultfd, 1)]

    def again():
        for words in calls:
            attempt(lambda: call(*words))
        call(*calls[0])
    return again


@bomb("links to a file that is not its own: refused, and where auditing is on each is a record of it", "EPERM")
def refused_links():
    return lambda: os.link("/workspace/main.py", "/workspace/link")


# --- waiting for each other -----------------------------------------------------------------------------------------------

def semaphores(n):
    """In memory that is shared with children."""
    memory, address = pages(PAGE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    made = [ctypes.c_void_p(address + 64 * k) for k in range(n)]
    for one in made:
        call(libc.sem_init, one, 1, 0)
        one.keeps = memory
    return made


def wakes_by_futex(others):
    ask, answer = semaphores(2)

    def other():
        libc.sem_wait(ask)
        libc.sem_post(answer)
    beside(other, others)

    def again():
        for _ in range(others):
            libc.sem_post(ask)
        for _ in range(others):
            libc.sem_wait(answer)
    return again


@bomb("two processes wake each other by a futex")
def futex_ping_pong():
    return wakes_by_futex(1)


@bomb("forty processes wait at one futex, and are woken together")
def futex_crowd():
    return wakes_by_futex(40)


@bomb("two processes hand a byte to and fro through pipes")
def pipe_ping_pong():
    there, back = os.pipe(), os.pipe()

    def other():
        os.write(back[1], os.read(there[0], 1))
    beside(other)

    def again():
        os.write(there[1], b"x")
        os.read(back[0], 1)
    return again


@bomb("a pipe gets one byte at a time")
def pipe_bytes():
    reading, writing = os.pipe()

    def again():
        for _ in range(100):
            os.write(writing, b"x")
        os.read(reading, 100)
    return again


@bomb("asks for pipes that keep each write apart", "EINVAL")
def pipes_of_packets():
    reading, _ = os.pipe()

    def again():
        attempt(lambda: fcntl.fcntl(reading, fcntl.F_SETFL, os.O_DIRECT))
        os.pipe2(os.O_DIRECT)
    return again


@bomb("forty processes sleep for a microsecond again and again")
def sleepers():
    again = functools.partial(time.sleep, 1e-6)
    beside(again, 39)
    return again


@bomb("eight processes are interrupted by their timers each microsecond")
def interval_timers():
    signal.signal(signal.SIGALRM, lambda *_: None)

    beside(lambda: signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6), 8)
    return lambda: time.sleep(0.001) # a process that is interrupted does not get on


@bomb("a hundred timer descriptors go off each microsecond", "EAGAIN")
def timer_descriptors():
    timers = [call(libc.timerfd_create, 1, os.O_NONBLOCK) for _ in range(100)]
    each = struct.pack("qqqq", 0, 1000, 0, 1000)
    for fd in timers:
        call(libc.timerfd_settime, fd, 0, each, None)

    def again():
        for fd in timers:
            os.read(fd, 8)
    return again


@bomb("nests epolls in each other and takes them apart, under a lock that all of the host share", "EINVAL")
def epoll_nests():
    leaves, top = [select.epoll() for _ in range(60)], select.epoll()
    for leaf in leaves:
        top.register(leaf.fileno())
    tower = [select.epoll() for _ in range(3)]
    for below, above in zip([top, *tower], tower):
        above.register(below.fileno())

    def again():
        top.unregister(leaves[0].fileno())
        top.register(leaves[0].fileno())
        tower[0].unregister(top.fileno())
        tower[0].register(top.fileno())
    again.keeps = leaves
    return again


@bomb("watches a directory in which files come and go", "EAGAIN")
def file_events():
    watch = call(libc.inotify_init1, os.O_NONBLOCK)
    call(libc.inotify_add_watch, watch, b".", 0xfff)

    def again():
        for _ in range(20):
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY))
            os.unlink("f")
        os.read(watch, 1 << 16)
    return again


@bomb("begins and ends to watch files of the rootfs, which all jails share")
def rootfs_watches():
    watch = call(libc.inotify_init1, os.O_NONBLOCK)
    paths = [path.encode() for path in rootfs_files(50)]

    def again():
        made = {call(libc.inotify_add_watch, watch, path, 0xfff) for path in paths}
        for one in made:
            call(libc.inotify_rm_watch, watch, one)
        attempt(lambda: os.read(watch, 1 << 16))
    return again


# --- sockets --------------------------------------------------------------------------------------------------------------

def send_fds(sock, fds):
    sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


@bomb("local sockets in each other's queues, which the kernel's collector has to find", "ETOOMANYREFS")
def socket_cycles():
    def again():
        a, b = socket.socketpair()
        with a, b:
            send_fds(a, [a.fileno(), b.fileno()])
            send_fds(b, [a.fileno(), b.fileno()])
    return again


@bomb("descriptors in flight, as many as it may have", "ETOOMANYREFS", "EAGAIN")
def descriptors_in_flight():
    fds = [os.open("/dev/null", os.O_RDONLY)] * 200

    def again():
        a, b = socket.socketpair()
        a.setblocking(False)
        with a, b:
            while True:
                send_fds(a, fds)
    return again


@bomb("makes pairs of local sockets and closes them")
def socket_pairs():
    def again():
        for one in socket.socketpair():
            one.close()
    return again


@bomb("makes sockets of a network and closes them")
def network_sockets():
    return lambda: socket.socket().close()


def listen():
    made = socket.create_server(("127.0.0.1", 0), backlog=100)
    return made, made.getsockname()


@bomb("connects and closes on its own loopback")
def connections():
    listener, address = listen()

    def again():
        with socket.create_connection(address), listener.accept()[0]:
            pass
    return again


@bomb("a stream through its own loopback")
def loopback_stream():
    listener, address = listen()
    sending, receiving = socket.create_connection(address), listener.accept()[0]
    beside(lambda: receiving.recv(1 << 16))
    return lambda: sending.send(bytes(1 << 16))


@bomb("datagrams through its own loopback, faster than they are read")
def loopback_datagrams():
    receiving, sending = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiving.bind(("127.0.0.1", 0))
    sending.connect(receiving.getsockname())
    beside(lambda: receiving.recv(2048))
    return lambda: sending.send(bytes(1400))


@bomb("connections with as much unread data as they hold", "EAGAIN", "ENOBUFS", "TimeoutError")
def full_connections():
    listener, address = listen()
    listener.settimeout(0.1)
    kept = []

    def connect():
        try:
            kept.extend((socket.create_connection(address, 0.1), listener.accept()[0]))
        except TimeoutError: # there is no memory for another one
            kept.clear()
            raise

    def again():
        if len(kept) > 150:
            kept.clear()
        connect()
        for one in kept[-2:]:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MIB)
            one.setblocking(False)
        while kept[-2].send(bytes(1 << 16)):
            pass
    return again


# --- memory ---------------------------------------------------------------------------------------------------------------

@bomb("maps memory and unmaps it")
def maps():
    return lambda: mmap.mmap(-1, MIB).close()


@bomb("touches 16 MiB page by page and gives them back")
def page_faults():
    memory, address = pages(16 * MIB)

    def again():
        ctypes.memset(address, 1, 16 * MIB)
        memory.madvise(mmap.MADV_DONTNEED)
    return again


@bomb("asks for huge pages and splits them")
def huge_pages():
    memory, address = pages(16 * MIB)
    memory.madvise(mmap.MADV_HUGEPAGE)

    def again():
        ctypes.memset(address, 1, 16 * MIB)
        for start in range(0, 16 * MIB, 16 * PAGE):
            memory.madvise(mmap.MADV_DONTNEED, start, PAGE)
        memory.madvise(mmap.MADV_DONTNEED)
    return again


@bomb("makes a mapping larger and smaller, so that it moves")
def moved_maps():
    memory = mmap.mmap(-1, MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[::PAGE] = b"x" * len(memory[::PAGE])

    def again():
        memory.resize(64 * MIB)
        memory.resize(MIB)
    return again


@bomb("takes the right to write from a page and gives it back, while threads use it on other CPUs")
def protections():
    memory, address = pages(MIB)
    threads(functools.partial(hashlib.sha256, bytes(1 << 20)), 3)

    def again():
        call(libc.mprotect, address, MIB, mmap.PROT_READ)
        call(libc.mprotect, address, MIB, mmap.PROT_READ | mmap.PROT_WRITE)
        ctypes.memset(address, 1, 16 * PAGE)
    again.keeps = memory
    return again


@bomb("fills files in /dev/shm, and files in memory that have no name")
def shared_memory():
    def fill(fd):
        os.ftruncate(fd, 4 * MIB)
        with mmap.mmap(fd, 4 * MIB) as memory:
            memory[::PAGE] = b"x" * (4 * MIB // PAGE)
        os.close(fd)

    def again():
        fill(os.open("/dev/shm/s", os.O_CREAT | os.O_RDWR))
        os.unlink("/dev/shm/s")
        fill(os.memfd_create("m"))
    return again


@bomb("locks pages in memory and unlocks them", "ENOMEM", "EPERM")
def locked_memory():
    memory, address = pages(MIB)

    def again():
        call(libc.mlock, address, 16 * PAGE)
        call(libc.munlock, address, 16 * PAGE)
        call(libc.mlock, address, MIB)
    again.keeps = memory
    return again


@bomb("uses nearly all of its memory, and reads files that it has no room for", "ENOSPC", limits=("--memory", "64M"))
def thrashing():
    memory, address = pages(40 * MIB)
    files = itertools.cycle(rootfs_files(1000))

    def again():
        ctypes.memset(address, 1, 40 * MIB)
        for _ in range(20):
            with open(next(files), "rb", buffering=0) as one:
                one.read()
    again.keeps = memory
    return again


@bomb("takes memory until it is killed, run after run", ends="oom", limits=("--memory", "64M"))
def out_of_memory():
    kept = []
    return lambda: kept.append(bytearray(MIB))


# --- files ----------------------------------------------------------------------------------------------------------------

@bomb("writes a large file and truncates it")
def large_file():
    fd, data = os.open("/tmp/large", os.O_CREAT | os.O_RDWR), bytes(MIB)

    def again():
        if os.write(fd, data) and os.lseek(fd, 0, os.SEEK_CUR) >= 48 * MIB:
            os.ftruncate(fd, 0)
            os.lseek(fd, 0, os.SEEK_SET)
    return again


@bomb("files and directories come and go, two thousand of each at a time")
def many_files():
    kept, numbers = collections.deque(), itertools.count()

    def again():
        kept.append(f"/tmp/{next(numbers)}")
        os.mkdir(kept[-1])
        os.close(os.open(f"{kept[-1]}/f", os.O_CREAT | os.O_WRONLY))
        if len(kept) > 2000:
            os.unlink(f"{kept[0]}/f")
            os.rmdir(kept.popleft())
    return again


@bomb("moves directories between directories, in four processes")
def renames():
    for name in ("a", "b"):
        os.mkdir(name)

    def again():
        own = os.getpid()
        attempt(lambda: os.mkdir(f"a/{own}"))
        os.rename(f"a/{own}", f"b/{own}")
        os.rename(f"b/{own}", f"a/{own}")
    beside(again, 3)
    return again


@bomb("walks down two hundred directories, and asks where it is")
def deep_paths():
    top, path = os.getcwd(), "/".join(["deep"] * 200)
    os.makedirs(path)

    def again():
        os.stat(path)
        os.chdir(path)
        os.getcwd()
        os.chdir(top)
    return again


@bomb("links that lead to each other, and chains of forty", "ELOOP")
def link_chains():
    os.mkdir("0")
    for n in range(1, 40):
        os.symlink(str(n - 1), str(n))
    os.symlink("y", "x")
    os.symlink("x", "y")

    def again():
        os.stat("39")
        os.stat("x")
    return again


@bomb("reads and sets extended attributes", "ENOTSUP", "EOPNOTSUPP", "EPERM")
def attributes():
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY))

    def again():
        os.listxattr("f")
        os.setxattr("f", "user.a", bytes(1024))
    return again


@bomb("looks up names in the rootfs that are not there", "ENOENT")
def missing_names():
    numbers = itertools.count()
    return lambda: os.stat(f"/usr/lib/{os.getpid()}-{next(numbers)}-{'x' * 150}")


@bomb("lists /proc, the rootfs's directories and its own descriptors")
def listings():
    folder = sysconfig.get_path("stdlib")

    def again():
        for path in ("/proc", "/proc/self/fd", "/usr/bin", folder):
            os.listdir(path)
    return again


@bomb("reads what /proc says of its memory, with two thousand mappings", "EACCES", "ENOENT", "EPERM")
def proc_maps():
    memory, _ = split_pages(2000)

    def again():
        for name in ("maps", "smaps", "status", "stat"):
            with open(f"/proc/self/{name}", "rb", buffering=0) as one:
                while one.read(1 << 16):
                    pass
    again.keeps = memory
    return again


@bomb("asks the kernel to copy between descriptors: sendfile, splice, tee, vmsplice, copy_file_range", "ENOSYS")
def copies():
    there, back, fd = os.pipe(), os.pipe(), os.open(os.__file__, os.O_RDONLY)
    calls = [(libc.splice, fd, None, there[1], None, PAGE, 0), (libc.tee, there[0], back[1], PAGE, 0), (libc.vmsplice, there[1], None, 0, 0),
             (libc.sendfile, there[1], fd, None, PAGE), (libc.copy_file_range, fd, None, back[1], None, PAGE, 0)]

    def again():
        for words in calls[1:]:
            attempt(lambda: call(*words))
        call(*calls[0])
    return again


@bomb("reserves room for a file and gives it back", "ENOSPC")
def reserved_room():
    fd = os.open("/tmp/room", os.O_CREAT | os.O_RDWR)

    def again():
        os.posix_fallocate(fd, 0, 32 * MIB)
        os.ftruncate(fd, 0)
    return again


@bomb("reads files of the rootfs past the page cache", "EINVAL")
def uncached_reads():
    room = mmap.mmap(-1, MIB)
    fds = itertools.cycle([os.open(path, os.O_RDONLY | os.O_DIRECT) for path in rootfs_files(50)])
    return lambda: os.preadv(next(fds), [room], 0)


@bomb("reads all of the rootfs, with words to the kernel to read ahead", "EACCES", "EINVAL", "ENOENT", "ELOOP")
def whole_rootfs():
    paths = itertools.cycle([os.path.join(folder, name) for folder, _, names in os.walk("/usr/lib") for name in names])

    def again():
        fd = os.open(next(paths), os.O_RDONLY | os.O_NONBLOCK)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
            os.read(fd, MIB)
        finally:
            os.close(fd)
    return again


@bomb("asks for a file of the rootfs to be on its disk, and for all disks")
def syncs():
    fd = os.open(os.__file__, os.O_RDONLY)

    def again():
        os.fsync(fd)
        os.fdatasync(fd)
        os.sync()
    return again


@bomb("locks /dev/null and files of the rootfs, which all jails share", "EAGAIN")
def shared_locks():
    fds = [os.open(path, os.O_RDONLY) for path in ("/dev/null", os.__file__)]

    def again():
        for fd in fds:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
    return again


@bomb("locks a thousand single bytes of a file of the rootfs")
def many_locks():
    with open(os.__file__, "rb") as file:
        fd = os.dup(file.fileno())
    places = itertools.cycle(range(0, 2000, 2))

    def again():
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, next(places))
        if random.random() < 0.001:
            fcntl.lockf(fd, fcntl.LOCK_UN)
    return again


@bomb("draws random bytes")
def random_bytes():
    return lambda: os.getrandom(1 << 16)


# --- what it says ---------------------------------------------------------------------------------------------------------

@bomb("prints as fast as it may, run after run", ends="output_limit")
def output_flood():
    return lambda: os.write(1, b"x" * (1 << 16))


@bomb("prints byte by byte, a hundred thousand a second at most", limits=("--output", "1M"))
def output_bytes():
    def again():
        os.write(1, b"x")
        until = time.perf_counter_ns() + 10000
        while time.perf_counter_ns() < until:
            pass
    return again
