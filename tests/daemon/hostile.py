"""Descriptors of every kind that a client may think of."""
import os
import pty
import select
import socket
import tempfile

from support import client


def empty(flags=os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING):
    return os.memfd_create("code", flags)


def unsealed():
    fd = empty()
    os.write(fd, b"print(1)")
    return fd


def huge():
    """One byte more than a program may have, and none of it is memory."""
    fd = empty()
    os.ftruncate(fd, (8 << 20) + 1)
    return seal(fd)


def seal(fd):
    import fcntl
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, client.SEALS)
    return fd


def write_only():
    fd = client.sealed("print(1)")
    again = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC) if os.geteuid() else os.open(f"/proc/self/fd/{fd}", os.O_PATH)
    os.close(fd)
    return again


def partly(seals):
    return lambda: client.sealed("print(1)", seals)


def deleted():
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"print(1)")
        return os.dup(file.fileno())


def gone():
    """A directory that nobody finds any more."""
    path = tempfile.mkdtemp(prefix="brig-test-")
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.rmdir(path)
    return fd


def pipe_end(n):
    def make():
        ends = os.pipe()
        os.close(ends[1 - n])
        return ends[n]
    return make


def fifo():
    """To open it for reading would wait for a writer that never comes."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as folder:
        os.mkfifo(f"{folder}/fifo")
        return os.open(f"{folder}/fifo", os.O_PATH)


def terminal():
    ours, theirs = pty.openpty()
    os.close(ours)
    return theirs


def socket_fd(family=socket.AF_UNIX, kind=socket.SOCK_STREAM):
    return lambda: socket.socket(family, kind).detach()


def epoll():
    made = select.epoll()
    fd = os.dup(made.fileno())
    made.close()
    return fd


def opened(path, flags=os.O_RDONLY):
    return lambda: os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY)


KINDS = {
    # a word for it: makes one
    "pipe": pipe_end(0), "pipe-writing": pipe_end(1), "fifo": fifo, "socket": socket_fd(), "datagram": socket_fd(kind=socket.SOCK_DGRAM),
    "internet": socket_fd(socket.AF_INET), "unsealed": unsealed, "empty": lambda: seal(empty()), "huge": huge, "memfd-opath": write_only,
    "unsealed-write": partly(client.SEALS & ~8), "unsealed-shrink": partly(client.SEALS & ~2), "unsealed-grow": partly(client.SEALS & ~4),
    "no-text": lambda: client.sealed(b"print('\xff')"), "tty": terminal, "epoll": epoll, "opath": opened("/etc/passwd", os.O_PATH), "file": opened("/etc/passwd"), "device": opened("/dev/null"),
    "zero": opened("/dev/zero"), "deleted": deleted, "gone": gone, "directory": opened("/usr"), "proc": opened("/proc", os.O_PATH),
    "proc-self": opened("/proc/self"), "mem": opened("/proc/self/mem"), "sysfs": opened("/sys", os.O_PATH), "pidfd": lambda: os.pidfd_open(os.getpid()),
    "eventfd": lambda: os.eventfd(0), "namespace": opened("/proc/self/ns/user"), "link": opened("/proc/self/exe", os.O_PATH | os.O_NOFOLLOW),
}
