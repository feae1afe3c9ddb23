"""Section A: system calls and their ABI. Numbers are those of x86-64."""
from inside import *
from outside import equals, most_not, none_of, only, probe, signalled, values


@probe("A1", "int 0x80 is a 32-bit call and kills", where="user", needs="int80",
       jail=signalled("SIGSYS"), free=lambda pid: isinstance(pid, int) and pid > 1)
def int80_getpid():
    import mmap
    code = bytes.fromhex("b814000000cd80c3") # mov eax, 20 (getpid); int 0x80; ret
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


@probe("A2", "a call with the x32 bit kills", where="user", needs="x86",
       jail=signalled("SIGSYS"), free=lambda r: r == "ENOSYS" or isinstance(r, int)) # outside nobody dies of it
def x32_getpid():
    return sc(0x40000000 + 39)


@probe("A3", "TIOCSTI with high bits set does not reach the driver", where="user",
       jail=only("ENOTTY", "EPERM"), free=equals("EBADF"))
def ioctl_high_bits():
    return sc(16, -1, (0x123 << 32) | 0x5412, 1)


@probe("A3", "socket families with high bits set are refused",
       jail=only("EAFNOSUPPORT", "EPERM"), free=lambda r: isinstance(r["netlink"], int))
def socket_high_bits():
    return {"vsock": sc(41, (1 << 32) | 40, 1, 0), "netlink": sc(41, (1 << 32) | 16, 3, 0),
            "raw": sc(41, 2, (1 << 32) | 3, 1)}


@probe("A4", "clone3 is absent", where="user", jail=equals("ENOSYS"), free=equals("EFAULT"))
def clone3():
    return sc(435, 1, 88)


@probe("A4", "threads start without clone3", where="user",
       jail=equals(8), why="a working feature, not an attack")
def threads_start():
    done = []
    threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    return len(done)


@probe("A5", "unshare of every namespace is refused", jail=only("EPERM"), free=most_not("EPERM", "ENOSYS"))
def unshare_each():
    flags = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
             "pid": 0x20000000, "net": 0x40000000, "time": 0x80}
    return {name: in_child(lambda: sc(272, flag)) for name, flag in flags.items()}


@probe("A5", "clone into every namespace is refused", jail=only("EPERM"), free=most_not("EPERM", "ENOSYS"))
def clone_each():
    def clone(flag):
        child = sc(56, flag | 17, 0, 0, 0, 0)
        if child == 0:
            os._exit(0)
        return child
    flags = {"mnt": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000,
             "pid": 0x20000000, "net": 0x40000000}
    return {name: in_child(lambda: clone(flag)) for name, flag in flags.items()}


@probe("A6", "the three io_uring calls are absent", where="root", jail=only("ENOSYS"), free=most_not("ENOSYS", "EPERM"))
def io_uring():
    return {"setup": sc(425, 1, 0), "enter": sc(426, -1, 0, 0, 0, 0, 0), "register": sc(427, -1, 0, 0, 0)}


@probe("A7", "AF_ALG is refused", jail=only("EAFNOSUPPORT", "EPERM"), where="user",
       why="kernels are often built without it; A9 and A8 prove the family rule")
def af_alg():
    return attempt(lambda: socket.socket(38, socket.SOCK_SEQPACKET).close())


@probe("A8", "AF_VSOCK is refused", jail=only("EAFNOSUPPORT", "EPERM"), where="root", free=only("ok"))
def af_vsock():
    return attempt(lambda: socket.socket(40, socket.SOCK_STREAM).close())


@probe("A9", "of the families 0 to 50 only UNIX, INET and INET6 open", where="root",
       jail=equals([1, 2, 10]), free=lambda families: {16, 17} <= set(families))
def families():
    return [f for f in range(51) if any(attempt(lambda: socket.socket(f, t).close()) == "ok" for t in (1, 2, 3, 5))]


@probe("A10", "raw, packet and ping sockets are refused", where="root",
       jail=only("EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT"), free=lambda r: r["raw"] == "ok" and r["packet"] == "ok")
def raw_sockets():
    return {"raw": attempt(lambda: socket.socket(2, 3, 1).close()), "packet": attempt(lambda: socket.socket(17, 3, 0).close()),
            "ping": attempt(lambda: socket.socket(2, 2, 1).close()), "raw6": attempt(lambda: socket.socket(10, 3, 58).close())}


@probe("A11", "MPTCP, SCTP and UDP-Lite are refused", where="root",
       jail=only("EPERM", "EAFNOSUPPORT", "EPROTONOSUPPORT"), free=lambda r: "ok" in r.values())
def protocols():
    return {"mptcp": attempt(lambda: socket.socket(2, 1, 262).close()), "sctp": attempt(lambda: socket.socket(2, 1, 132).close()),
            "udplite": attempt(lambda: socket.socket(2, 2, 136).close())}


@probe("A12", "nine calls into the kernel's depth are refused before they look at their arguments",
       jail=only("EPERM", "ENOSYS"), free=most_not("EPERM", "ENOSYS"))
def deep_calls():
    numbers = {"bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "kcmp": 312, "process_vm_readv": 310,
               "process_vm_writev": 311, "pidfd_getfd": 438, "name_to_handle_at": 303, "open_by_handle_at": 304}
    return {name: sc(nr, -1, -1, -1, -1, -1) for name, nr in numbers.items()}


@probe("A13", "PTRACE_TRACEME is refused and a signal does not stop the program", where="user",
       jail=equals("EPERM"), free=equals({"stopped": True})) # outside the runner becomes the tracer
def ptrace_me():
    answer = sc(101, 0, 0, 0, 0)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    os.kill(os.getpid(), signal.SIGUSR1)
    return answer


@probe("A14", "thirteen mount calls are refused", jail=only("EPERM", "ENOSYS"), free=most_not("EPERM", "ENOSYS"))
def mount_calls():
    numbers = {"mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "open_tree": 428, "move_mount": 429,
               "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "open_tree_attr": 467}
    return {name: sc(nr, -1, -1, -1, -1, -1) for name, nr in numbers.items()}


@probe("A15", "no key can be read or added", where="root", jail=only("EPERM", "ENOSYS"),
       free=lambda r: isinstance(r["session"], int) and isinstance(r["add"], int))
def keyring():
    session = sc(250, 0, -3, 0)
    key = sc(248, b"user", b"brig-probe", b"y", 1, -2) # the process keyring: gone with the process
    return {"session": session, "add": key, "request": sc(249, b"user", b"brig-probe", 0, 0) if key == "EPERM" else key}


@probe("A16", "the five calls that move pages are absent", where="user", jail=only("ENOSYS"), free=only("EBADF"))
def splices():
    return {"splice": sc(275, -1, 0, -1, 0, 1, 0), "tee": sc(276, -1, -1, 1, 0), "vmsplice": sc(278, -1, 0, 0, 0),
            "sendfile": sc(40, -1, -1, 0, 1), "copy_file_range": sc(326, -1, 0, -1, 0, 1, 0)}


@probe("A16", "a file of one megabyte is copied right without them", where="user",
       jail=equals(True), why="a working feature, not an attack")
def copy_file():
    import shutil
    data = os.urandom(1 << 20)
    with open("/tmp/copy-from", "wb") as f:
        f.write(data)
    shutil.copyfile("/tmp/copy-from", "/tmp/copy-to")
    with open("/tmp/copy-to", "rb") as f:
        same = f.read() == data
    os.unlink("/tmp/copy-from")
    os.unlink("/tmp/copy-to")
    return same


@probe("A17", "TIOCSTI, TIOCLINUX and TIOCSETD are no requests of ours", where="user",
       jail=only("ENOTTY", "EPERM"), free=only("EBADF"))
def terminal_requests():
    return {"sti": sc(16, -1, 0x5412, b"x"), "linux": sc(16, -1, 0x541C, b"x"), "setd": sc(16, -1, 0x5423, b"x")}


@probe("A18", "READ_IMPLIES_EXEC cannot be set", where="user", jail=only("EPERM", "ENOSYS"), free=lambda r: isinstance(r, int))
def personality():
    return sc(135, 0x0400000)


@probe("A19", "a filter with a listener cannot be installed", where="root", jail=only("EPERM", "ENOSYS"), free=equals("EFAULT"))
def seccomp_listener():
    return {"strict": sc(317, 1, 8, 1), "prctl": sc(157, 22, 2, 1)}["strict"]


@probe("A21", "calls 335 to 340 and 440 to 600 that no policy names are absent or refused",
       jail=lambda r: set(r) <= {"335", "336", "441", "449", "452"} # epoll_pwait2, futex_waitv, fchmodat2: named and harmless
       and r.get("335") in (None, {"signal": "SIGILL"}) and r.get("336") in (None, "ENXIO"), # uretprobe, uprobe: no filter of any process sees them (brig-security(7))
       free=lambda r: len(r) > 10)
def new_calls():
    out = {n: in_child(lambda: sc(n, -1, -1, -1, -1, -1, -1), 10) for n in (*range(335, 341), *range(440, 601))}
    return {str(n): r for n, r in out.items() if r not in ("ENOSYS", "EPERM")}


@probe("A22", "eight threads have the filter and no_new_privs", where="user",
       jail=equals([["1", "2"]]), free=lambda r: r != [["1", "2"]])
def filter_on_threads():
    seen, gate = [], threading.Barrier(9)

    def look():
        text = open(f"/proc/self/task/{threading.get_native_id()}/status").read()
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        seen.append((fields["NoNewPrivs"], fields["Seccomp"]))
        gate.wait()
    [threading.Thread(target=look).start() for _ in range(8)]
    gate.wait()
    return sorted(set(seen))


@probe("A23", "iopl, ioperm and modify_ldt are refused", needs="x86", jail=only("EPERM", "ENOSYS"), free=lambda r: any(v not in ("EPERM", "ENOSYS") for v in values(r)))
def old_hardware():
    return {"iopl": sc(172, 3), "ioperm": sc(173, 0x80, 1, 1), "modify_ldt": sc(154, 0, 0, 0)}
