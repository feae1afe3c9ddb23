"""Sections E and F, as far as one program can see them: what it may take, and what is refused."""
from inside import *
from outside import equals, only, probe, values
from probes_files import SMALL


@probe("E3", "no SysV segment, queue, semaphore or POSIX queue can be made", jail=only("EPERM", "ENOSYS"),
       free=lambda r: all(isinstance(v, int) for v in values(r)))
def sysv_objects():
    create = 0o1600 # IPC_CREAT and mode
    return {"shm": sc(29, 0x1234, 4096, create), "msg": sc(68, 0x1234, create), "sem": sc(64, 0x1234, 1, create)}


@probe("F3", "no queue or segment of another jail can be attached", jail=only("EPERM", "ENOSYS"), free=lambda r: r["posix queue"] != "EPERM" and r["find"] == "ENOENT")
def foreign_queues():
    return {"posix queue": sc(240, b"brig-probe", 0o102, 0o600, 0), "attach": sc(30, 0, 0, 0), "find": sc(29, 0x4321, 1, 0)}


@probe("E5", "threads end at the limit of processes", jail=lambda r: r["end"] == "RuntimeError" and r["threads"] < 64, free=equals({"end": "ok", "threads": 200}))
def thread_bomb():
    stop, threads = threading.Event(), []
    threading.stack_size(131072) # the least of arm64
    try:
        for n in range(200):
            threads.append(threading.Thread(target=stop.wait, daemon=True))
            threads[-1].start()
        end = "ok"
    except RuntimeError:
        end = "RuntimeError"
        threads.pop()
    stop.set()
    return {"end": end, "threads": len(threads)}


@probe("E6", "descriptors of every kind end at their limit", jail=lambda r: all(n <= 256 and e == "EMFILE" for n, e in values(r)),
       free=lambda r: all(n > 256 for n, e in values(r)))
def descriptor_bombs():
    def count(make):
        kept, end = [], "ok"
        try:
            while len(kept) < 600:
                kept.append(make())
        except OSError as e:
            end = name_of(e.errno)
        for fd in kept:
            os.close(fd)
        return [len(kept), end]

    def checked(call, *args):
        fd = call(*args)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "refused")
        return fd
    return {"file": count(lambda: os.open("/dev/null", os.O_RDONLY)), "socket": count(lambda: socket.socket().detach()),
            "epoll": count(lambda: checked(libc.epoll_create1, 0)), "eventfd": count(lambda: checked(libc.eventfd, 0, 0)),
            "timerfd": count(lambda: checked(libc.timerfd_create, 1, 0)), "memfd": count(lambda: os.memfd_create("x"))}


@probe("E6", "the limit of descriptors cannot be raised", jail=lambda r: r["raise"] in ("ValueError", "EPERM") and r["hard"] <= 1024, free=lambda r: r["hard"] > 1024)
def raise_descriptors():
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return {"hard": hard, "raise": attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (hard + 1, hard + 1))}


@probe("E11", "many files in the workspace end at its size", options=SMALL, jail=lambda r: r["end"] == "ENOSPC" and r["MiB"] <= 16, free=equals({"end": "ok", "MiB": 32}))
def fill_with_files():
    place, end, count = "/workspace" if os.path.isdir("/workspace") else "/var", "ok", 0
    while end == "ok" and count < 32:
        def write():
            with open(f"{place}/part-{count}", "wb", buffering=0) as f:
                os.posix_fallocate(f.fileno(), 0, 1 << 20)
        end = attempt(write)
        count += end == "ok"
    for n in range(count + 1):
        attempt(os.unlink, f"{place}/part-{n}")
    return {"end": end, "MiB": count}


@probe("E16", "no huge page can be taken, and no memory locked beyond the limit", where="root",
       jail=only("ENOMEM", "EINVAL", "EPERM"),
       free=lambda r: r["map"] == "ok" and r["memfd"] == "ok" and r["lock"] == 0)
def huge_pages():
    import mmap
    plain, huge = mmap.mmap(-1, 1 << 20), 0x40000 | 0x4000 # MAP_HUGETLB; MAP_NORESERVE, for a pool may be empty

    def map_pages(size, flags):
        mmap.mmap(-1, size, flags=flags).close()
    return {"map": attempt(map_pages, 2 << 20, huge | 0x22), "map shared": attempt(map_pages, 2 << 20, huge | 0x21),
            "gigabyte": attempt(map_pages, 1 << 30, huge | 0x22 | 30 << 26), "memfd": attempt(lambda: os.close(os.memfd_create("x", 4))),
            "lock": sc(149, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(plain))), 1 << 20), "lock all": sc(151, 3)}


@probe("E17", "a crash with the limits raised as far as they go dumps no core", jail=lambda r: r["core"] is False and r["files"] == [],
       free=lambda r: r["core"] is True)
def crash_with_core():
    import resource
    import tempfile
    os.chdir(tempfile.mkdtemp())
    limit = next(line for line in open("/proc/self/limits") if line.startswith("Max core")).split()[5]
    hard = resource.RLIM_INFINITY if limit == "unlimited" else int(limit)
    attempt(resource.setrlimit, resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    attempt(resource.setrlimit, resource.RLIMIT_CORE, (hard, hard))
    pid = os.fork()
    if pid == 0:
        os.abort()
    return {"core": os.WCOREDUMP(os.waitpid(pid, 0)[1]), "files": os.listdir(".")}


@probe("F7", "pages of a file can neither be asked about nor thrown out of memory", where="root",
       jail=only("EPERM", "ENOSYS", "ENOTSUP", "EINVAL"),
       free=lambda r: r["mincore"] == 0 and r["evict"] == "ok" and r["ask"] in ("ok", "EAGAIN", "ENOTSUP"))
def page_cache():
    import mmap
    with open(os.path.realpath(sys.executable), "rb") as f:
        page = mmap.mmap(f.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        return {"mincore": sc(27, start, 4096, ctypes.create_string_buffer(8)), "cachestat": sc(451, f.fileno(), bytes(16), ctypes.create_string_buffer(40), 0),
                "ask": attempt(os.preadv, f.fileno(), [bytearray(10)], 0, os.RWF_NOWAIT), "uncached": sc(327, f.fileno(), 0, 0, 0, 0, 0x80),
                "evict": attempt(os.posix_fadvise, f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)}
