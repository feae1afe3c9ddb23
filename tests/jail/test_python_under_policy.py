"""Real Python under the shipped policies: what ordinary programs do works, what they must not do does not."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from support import host

SOURCE = Path(__file__).resolve().parents[2]
HELPER = Path(os.environ.get("BRIG_BUILD", SOURCE / "build")) / "tests" / "under_filter"
PYTHON = "/usr/bin/python3"

pytestmark = [
    pytest.mark.skipif(not HELPER.exists(), reason=f"{HELPER} is not built"),
    pytest.mark.skipif(not os.path.exists(PYTHON), reason=f"{PYTHON} is missing"),
]

BOTH = ("python", "python-strict")
BASIC = ("python",)
STRICT = ("python-strict",)

CTYPES = """
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def sc(*a):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_ulong(x & 2**64 - 1) for x in a])
    return errno.errorcode[ctypes.get_errno()] if r < 0 else r
"""

# sentence, policies, program; a program that works ends silently with status 0
WORKS = [
    ("threads", BOTH, """
        import threading, concurrent.futures as f
        with f.ThreadPoolExecutor(4) as p: assert sum(p.map(abs, range(100))) == 4950
        t = threading.Thread(target=print); t.start(); t.join()"""),
    ("subprocess", BOTH, """
        import subprocess
        assert subprocess.run(["/bin/echo", "x"], capture_output=True, text=True).stdout == "x\\n"
        assert subprocess.run("exit 3", shell=True, start_new_session=True, close_fds=True).returncode == 3"""),
    ("os.fork, os.posix_spawn, os.system", BOTH, """
        import os
        pid = os.fork()
        if pid == 0: os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
        pid = os.posix_spawn("/bin/true", ["true"], os.environ); os.waitpid(pid, 0)
        assert os.system("true") == 0"""),
    ("multiprocessing by fork", BOTH, "MULTIPROCESSING fork"),
    ("multiprocessing by spawn", BOTH, "MULTIPROCESSING spawn"),
    ("multiprocessing by forkserver", BOTH, "MULTIPROCESSING forkserver"),
    ("shared memory, queues, managers", BOTH, """
        import multiprocessing as m
        from multiprocessing.shared_memory import SharedMemory
        s = SharedMemory(create=True, size=4096); s.buf[0] = 7; s.close(); s.unlink()
        q = m.Queue(); p = m.Process(target=q.put, args=(5,)); p.start(); assert q.get(timeout=50) == 5; p.join()
        with m.Manager() as g:
            d = g.dict(); d[1] = 2; assert d[1] == 2
        v = m.Value("i", 3); l = m.Lock()
        with l: v.value += 1"""),
    ("asyncio with subprocess, executor and local stream", BOTH, """
        import asyncio, os, tempfile
        async def main():
            p = await asyncio.create_subprocess_exec("/bin/echo", "hi", stdout=-1)
            assert (await p.communicate())[0] == b"hi\\n"
            assert await asyncio.to_thread(lambda: 5) == 5
            path = os.path.join(tempfile.mkdtemp(), "s")
            async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()
            s = await asyncio.start_unix_server(serve, path)
            r, w = await asyncio.open_unix_connection(path)
            w.write(b"x\\n"); assert await r.readline() == b"x\\n"; w.close(); s.close()
        asyncio.run(main())"""),
    ("asyncio over loopback with sendfile", BASIC, """
        import asyncio, tempfile
        async def main():
            f = tempfile.TemporaryFile(); f.write(b"y" * 300000); f.seek(0)
            async def serve(r, w):
                await asyncio.get_running_loop().sendfile(w.transport, f); w.close()
            s = await asyncio.start_server(serve, "127.0.0.1", 0)
            r, w = await asyncio.open_connection(*s.sockets[0].getsockname())
            assert len(await r.read()) == 300000; w.close(); s.close()
        asyncio.run(main())"""),
    ("sqlite in a file, with WAL", BOTH, """
        import sqlite3, tempfile, os
        c = sqlite3.connect(os.path.join(tempfile.mkdtemp(), "db"))
        c.execute("pragma journal_mode=wal"); c.execute("create table t(x)")
        c.executemany("insert into t values(?)", [(i,) for i in range(100)]); c.commit()
        assert c.execute("select sum(x) from t").fetchone() == (4950,)"""),
    ("shutil copies a megabyte, and trees with their times", BOTH, """
        import os, shutil, tempfile
        d = tempfile.mkdtemp(); a, b = os.path.join(d, "a"), os.path.join(d, "b"); data = os.urandom(1 << 20)
        open(a, "wb").write(data); shutil.copyfile(a, b); assert open(b, "rb").read() == data
        shutil.copy2(a, b); shutil.copytree(d, d + "2"); shutil.move(d + "2", d + "3"); shutil.rmtree(d + "3")"""),
    ("socketpair and descriptors over it", BOTH, """
        import os, socket
        a, b = socket.socketpair(); socket.send_fds(a, [b"x"], [0])
        assert socket.recv_fds(b, 1, 1)[0] == b"x"; a.setblocking(False); b.settimeout(1)
        socket.socketpair(type=socket.SOCK_DGRAM)"""),
    ("IPv4 and IPv6 over loopback", BASIC, """
        import socket
        for family, address in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
            try: s = socket.create_server((address, 0), family=family)
            except OSError as e:
                if family == socket.AF_INET6 and e.errno == 99: continue
                raise
            c = socket.create_connection(s.getsockname()[:2]); p, _ = s.accept()
            f = open("/usr/bin/python3", "rb"); p.sendall(b"x"); assert c.recv(1) == b"x"
            import threading
            t = threading.Thread(target=lambda: (p.sendfile(f, count=100000), p.close())); t.start()
            n = 0
            while (x := c.recv(65536)): n += len(x)
            assert n == 100000; t.join()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"x", u.getsockname())
        socket.getaddrinfo("127.0.0.1", 80)"""),
    ("ssl, hashing, secrets, compression", BOTH, """
        import ssl, hashlib, secrets, zlib, bz2, lzma, zipfile, tarfile, uuid, random
        ssl.create_default_context(); hashlib.scrypt(b"x", salt=b"y", n=16, r=8, p=1); secrets.token_bytes(8); uuid.uuid4()"""),
    ("tempfile, glob, mmap, links, times, modes", BOTH, """
        import glob, mmap, os, tempfile, pathlib
        with tempfile.TemporaryDirectory() as d:
            os.chdir(d); p = pathlib.Path("x"); p.write_bytes(b"a" * 8192)
            with open("x", "r+b") as f:
                m = mmap.mmap(f.fileno(), 0); m[0] = 98; m.flush(); m.madvise(mmap.MADV_SEQUENTIAL); m.close()
                os.posix_fallocate(f.fileno(), 0, 16384); os.posix_fadvise(f.fileno(), 0, 0, 0); os.ftruncate(f.fileno(), 10)
                os.fsync(f.fileno()); os.fdatasync(f.fileno()); os.pwritev(f.fileno(), [b"z"], 3); os.preadv(f.fileno(), [bytearray(2)], 0)
            os.link("x", "y"); os.symlink("y", "z"); os.readlink("z"); os.utime("x", (1, 2)); os.chmod("x", 0o600)
            os.rename("x", "w"); os.replace("w", "x"); os.mkdir("d"); os.removedirs("d"); list(os.scandir(".")); os.statvfs(".")
            glob.glob("*"); os.truncate("x", 5); os.access("x", os.R_OK); os.umask(0o22); os.listxattr("x")
            fd = os.open(".", os.O_RDONLY); os.stat("x", dir_fd=fd); os.unlink("x", dir_fd=fd); os.fchdir(fd)"""),
    ("fifos and changing owners", BASIC, """
        import os, tempfile
        os.chdir(tempfile.mkdtemp()); os.mkfifo("f"); os.mknod("r", 0o100600); os.chown("r", os.getuid(), os.getgid())"""),
    ("signals, timers, alarms", BOTH, """
        import os, signal, time, threading
        hits = []
        signal.signal(signal.SIGALRM, lambda *a: hits.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.02); time.sleep(0.1); signal.alarm(0); assert hits
        signal.pthread_kill(threading.get_ident(), signal.SIGALRM); os.kill(os.getpid(), signal.SIGALRM)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}); os.kill(os.getpid(), signal.SIGUSR1)
        assert signal.sigwaitinfo({signal.SIGUSR1}).si_signo == signal.SIGUSR1; signal.sigpending()
        signal.sigtimedwait({signal.SIGUSR1}, 0.01); signal.raise_signal(signal.SIGALRM)"""),
    ("pidfds", BASIC, """
        import os, signal
        fd = os.pidfd_open(os.getpid()); signal.pidfd_send_signal(fd, 0)"""),
    ("epoll, poll, select, eventfd", BOTH, """
        import os, select, selectors
        r, w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK); os.write(w, b"x")
        e = select.epoll(); e.register(r); assert e.poll(1)
        p = select.poll(); p.register(r); assert p.poll(10); assert select.select([r], [], [], 1)[0]
        selectors.DefaultSelector(); f = os.eventfd(1); assert os.eventfd_read(f) == 1"""),
    ("locks", BOTH, """
        import fcntl, tempfile
        f = tempfile.TemporaryFile(); fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.lockf(f, fcntl.LOCK_UN)"""),
    ("flock, memfd_create, inotify, affinity", BASIC, """
        import ctypes, fcntl, os, tempfile
        f = tempfile.TemporaryFile(); fcntl.flock(f, fcntl.LOCK_EX); os.memfd_create("x"); os.nice(1)
        os.sched_setaffinity(0, os.sched_getaffinity(0)); assert ctypes.CDLL(None).inotify_init1(0) >= 0"""),
    ("who, how much, how long", BOTH, """
        import os, resource, time, platform, getpass, locale, sysconfig
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); resource.getrusage(0); os.times(); os.uname(); os.getloadavg()
        os.getresuid(); os.getgroups(); os.getpriority(0, 0); os.sched_yield(); os.sched_getscheduler(0); os.cpu_count()
        os.getrandom(8); os.sysconf("SC_PAGESIZE"); os.getsid(0); os.getpgid(0); time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID)
        platform.platform(); os.get_inheritable(0); os.isatty(0)"""),
    ("faulthandler, tracemalloc, gc, ctypes", BOTH, """
        import faulthandler, tracemalloc, gc, ctypes, sys
        faulthandler.enable(); faulthandler.dump_traceback_later(60); faulthandler.cancel_dump_traceback_later()
        tracemalloc.start(); gc.collect()
        assert ctypes.CDLL(None).abs(-3) == 3"""),
    ("calls back from C", BASIC, """
        import ctypes
        C = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int); assert C(lambda x: x + 1)(1) == 2"""),
    ("libffi writes code for calls back from C, which strict refuses", STRICT, """
        import ctypes
        try: ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
        except MemoryError: pass
        else: raise AssertionError"""),
    ("what has a fallback says so", BOTH, """
        import errno, os, tempfile, time, socket
        def refused(call, *wanted):
            try: call()
            except OSError as e: assert e.errno in wanted, (call, e)
            else: raise AssertionError(call)
        f = tempfile.NamedTemporaryFile()
        refused(lambda: os.setxattr(f.name, "user.x", b"y"), errno.ENOTSUP)
        refused(lambda: os.copy_file_range(0, 1, 1), errno.ENOSYS)
        refused(lambda: os.sendfile(1, 0, 0, 1), errno.ENOSYS)
        refused(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), errno.EPERM)
        refused(lambda: time.clock_settime(time.CLOCK_REALTIME, 0), errno.EPERM)
        refused(lambda: os.setuid(0), errno.EPERM)
        refused(lambda: os.chroot("/"), errno.EPERM)
        refused(lambda: socket.if_nameindex(), errno.EAFNOSUPPORT)
        refused(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), errno.EAFNOSUPPORT)"""),
    ("what strict takes away is an exception, not the end", STRICT, """
        import errno, fcntl, os, socket, tempfile
        def refused(call, wanted):
            try: call()
            except OSError as e: assert e.errno == wanted, (call, e)
            else: raise AssertionError(call)
        f = tempfile.TemporaryFile()
        refused(lambda: fcntl.flock(f, fcntl.LOCK_EX), errno.EPERM)
        refused(lambda: os.memfd_create("x"), errno.EPERM)
        refused(lambda: socket.socket(), errno.EAFNOSUPPORT)
        refused(lambda: os.mkfifo("/tmp/x"), errno.EPERM)"""),
    ("probes by ctypes are answered as promised", BOTH, CTYPES + """
import platform
if platform.machine() == "x86_64":
    for wanted, call in [
        ("ENOSYS", (435, 1, 88)), ("EPERM", (272, 0x10000000)), ("EPERM", (56, 0x10000011, 0, 0, 0, 0)), ("ENOSYS", (425, 1, 0)),
        ("ENOTTY", (16, -1, 0x123 << 32 | 0x5412, 1)), ("EAFNOSUPPORT", (41, 1 << 32 | 40, 1, 0)), ("EPERM", (101, 0)),
        ("EPERM", (165,)), ("EPERM", (250, 0, -3, 0)), ("ENOSYS", (275,)), ("EPERM", (135, 0x400000)), ("EPERM", (317, 1, 8)),
        ("EPERM", (298,)), ("EPERM", (304,)), ("ENOSYS", (457,)), ("ENOSYS", (471,)), ("ENOSYS", (600,)),
    ]:
        assert sc(*call) == wanted, (call, sc(*call))
"""),
    ("an x32 call ends the program, and only it", BOTH, CTYPES + """
import platform, signal
if platform.machine() == "x86_64":
    pid = os.fork()
    if pid == 0:
        sc(0x40000000 + 39); os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGSYS
"""),
    ("an int 0x80 call ends the program, and only it", BOTH, CTYPES + """
import mmap, platform, signal
if platform.machine() == "x86_64":
    pid = os.fork()
    if pid == 0:
        m = mmap.mmap(-1, 4096)
        m.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3")
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), 4096, mmap.PROT_READ | mmap.PROT_EXEC) == 0
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))(); os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (-signal.SIGSYS, -signal.SIGSEGV)  # SEGV: no IA32 here
"""),
]

MULTIPROCESSING = """
import multiprocessing as m
def double(x): return 2 * x
if __name__ == "__main__":
    m.set_start_method("{}")
    with m.Pool(2) as p: assert p.map(double, range(10)) == list(range(0, 20, 2))
"""


def program_of(text):
    if text.startswith("MULTIPROCESSING"):
        return MULTIPROCESSING.format(text.split()[1])
    return textwrap.dedent(text)


ROWS = [(policy, name, text) for name, policies, text in WORKS for policy in policies]


@pytest.mark.parametrize("policy,name,text", ROWS, ids=[f"{policy}: {name}" for policy, name, _ in ROWS])
@pytest.mark.requirement("A56", "B37")
def test_works(policy, name, text, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(program_of(text))
    with tempfile.TemporaryDirectory(prefix="brig-") as scratch: # a short path: sockets are made in it
        run = subprocess.run(
            [HELPER, SOURCE / "profiles", policy, PYTHON, "-I", program], env={**os.environ, "TMPDIR": scratch},
            capture_output=True, text=True, timeout=host.HANG, cwd=tmp_path, stdin=subprocess.DEVNULL,
        )
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr, run.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
