"""What a cell with a network has of one: sockets that lead to brig-proxy, addresses that lead to itself, and no way out.

The test is the proxy (network_cell.c): it gets the sockets as brig-proxy does, and answers, stays silent, or dies.
"""
import array
import contextlib
import os
import select
import signal
import socket
import subprocess
import textwrap

import pytest

from support import brig, host, layout

pytestmark = pytest.mark.private("cells that the test orders by itself")

PORTS = (80, 443, 8443)
LISTENERS = layout.struct("net_listeners")
NAMES = ["dns-udp", "dns-tcp", "proxy", *PORTS]
GATEWAY, NAME = "198.18.0.1", "198.18.1.7"

TRIES = """
import errno, os, socket, struct, sys
def told(f):
    try: return f() or "done"
    except OSError as e: return errno.errorcode[e.errno]
def tcp(host, port, family=socket.AF_INET):
    def go():
        with socket.socket(family) as s:
            s.settimeout(5)
            s.connect((host, port))
    return told(go)
def udp(host, port, family=socket.AF_INET):
    def go():
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.settimeout(5)
            s.connect((host, port))
            s.send(b"question")
            return s.recv(100).decode()
    return told(go)
"""


class Cell:
    """A run whose sockets the test has: sockets by name, once they came."""

    def __init__(self, code, ports=PORTS, asks=True):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            argv = [host.build_dir() / "tests" / "network_cell", "basic", ",".join(map(str, ports)), str(theirs.fileno() if asks else -1), TRIES + textwrap.dedent(code)]
            self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
                                            env=brig.environment(), pass_fds=[theirs.fileno()])
        self.sockets = {}

    def take(self):
        """What came over the socket: (ports, how many descriptors); the descriptors are in self.sockets."""
        self.ours.settimeout(host.HANG)
        data, ancillary, flags, _ = self.ours.recvmsg(4096, socket.CMSG_SPACE(32 * 4), socket.MSG_CMSG_CLOEXEC)
        assert not flags & socket.MSG_CTRUNC
        if not data:
            return None
        fds = array.array("i")
        for level, kind, payload in ancillary:
            assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
            fds.frombytes(payload)
        what = LISTENERS.from_buffer_copy(data)
        self.sockets = {name: socket.socket(fileno=fd) for name, fd in zip(NAMES, fds)}
        return what.port[:what.ports], len(fds)

    def end(self, status=0):
        out, err = self.process.communicate(timeout=host.HANG)
        assert self.process.returncode == status and not err, (self.process.returncode, out, err)
        return out

    def close(self):
        self.ours.close()
        for one in self.sockets.values():
            one.close()
        self.sockets = {}
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def cell(needs_root):
    with contextlib.ExitStack() as stack:
        def make(*args, **kw):
            return stack.enter_context(contextlib.closing(Cell(*args, **kw)))
        yield make


# --- what is there ----------------------------------------------------------------------------------

def test_a_cell_listens_for_the_proxy_and_the_sockets_are_given_away_once_when_it_uses_one(cell):
    one = cell(f"""
        print("begun", flush=True)
        sys.stdin.readline()
        socket.create_connection(("{GATEWAY}", 3128)).close()
        sys.stdin.read()
    """)
    assert one.process.stdout.readline() == "begun\n" and not select.select([one.ours], [], [], 0)[0]
    one.process.stdin.write("\n")
    one.process.stdin.flush()
    assert one.take() == (list(PORTS), len(NAMES))
    assert one.take() is None, "the other end is closed after that"
    names = {name: s.getsockname() for name, s in one.sockets.items()}
    assert names == {"dns-udp": (GATEWAY, 53), "dns-tcp": (GATEWAY, 53), "proxy": (GATEWAY, 3128), **{p: ("0.0.0.0", p) for p in PORTS}}
    assert one.sockets["dns-udp"].type == socket.SOCK_DGRAM
    assert all(s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for name, s in one.sockets.items() if name != "dns-udp")
    assert not any(os.get_blocking(s.fileno()) for s in one.sockets.values()), "brig-proxy waits in none of them"


def test_a_program_that_knows_of_no_proxy_reaches_it_and_the_proxy_learns_which_address_was_meant(cell):
    one = cell(f"""
        with socket.create_connection(("{NAME}", 443), timeout=20) as s:
            print(s.recv(100).decode(), s.getpeername())
    """)
    one.take()
    listener = one.sockets[443]
    listener.settimeout(host.HANG)
    with listener.accept()[0] as accepted:
        assert accepted.getsockname() == (NAME, 443)
        accepted.sendall(b"hello")
    assert one.end() == f"hello ('{NAME}', 443)\n"


def test_a_question_to_the_resolver_is_answered_from_the_address_that_was_asked(cell):
    one = cell(f"print(udp('{GATEWAY}', 53))")
    one.take()
    resolver = one.sockets["dns-udp"]
    resolver.settimeout(host.HANG)
    data, client = resolver.recvfrom(100)
    resolver.sendto(data.upper(), client)
    assert one.end() == "QUESTION\n"


def test_a_cell_without_a_network_has_no_listener_and_no_such_address(cell):
    one = cell(f"""
        print(tcp("{GATEWAY}", 3128), tcp("{NAME}", 80), tcp("{GATEWAY}", 53), udp("{GATEWAY}", 53))
        print(len(open("/proc/self/net/tcp").readlines()), "C612" in open("/proc/self/net/fib_trie").read() or "198.18" in open("/proc/self/net/fib_trie").read())
    """, ports=())
    assert one.take() is None
    assert one.end() == "ENETUNREACH ENETUNREACH ENETUNREACH ENETUNREACH\n1 False\n"


# --- no way out -------------------------------------------------------------------------------------

def test_every_route_of_a_cell_leads_to_lo(cell):
    one = cell("""
        print(open("/proc/self/net/route").read().splitlines()[1:])
        print(sorted({line.split()[-1] for line in open("/proc/self/net/ipv6_route")}))
        print(sorted(line.split(":")[0].strip() for line in open("/proc/self/net/dev").readlines()[2:]))
        trie = [line.split()[-1] for line in open("/proc/self/net/fib_trie") if "|-- " in line]
        print(sorted(set(trie)))
    """)
    one.take()
    routes, routes6, devices, trie = one.end().splitlines()
    assert routes == "[]" and routes6 == devices == "['lo']"
    assert trie == str(sorted({"127.0.0.0", "127.0.0.1", "127.255.255.255", "198.18.0.0"}))


ADDRESSES = ["192.0.2.1", "8.8.8.8", "169.254.169.254", "10.0.0.1", "100.64.0.1", "198.20.0.1", "198.17.255.255", "255.255.255.254"]


def test_what_is_not_the_cells_own_is_unreachable_at_once(cell):
    one = cell(f"""
        for host in {ADDRESSES}:
            print(tcp(host, 443), udp(host, 443))
        for host in "2001:db8::1", "fd00:ec2::254", "ff0e::1", "::ffff:192.0.2.1":
            print(tcp(host, 443, socket.AF_INET6), udp(host, 443, socket.AF_INET6))
    """)
    one.take()
    lines = one.end().splitlines()
    assert lines[:len(ADDRESSES)] == ["ENETUNREACH ENETUNREACH"] * len(ADDRESSES)
    assert set(" ".join(lines[len(ADDRESSES):]).split()) <= {"ENETUNREACH", "EADDRNOTAVAIL", "EHOSTUNREACH"}


def test_what_has_no_listener_is_refused_at_once(cell):
    one = cell(f"""
        for host in "{GATEWAY}", "{NAME}", "127.0.0.1":
            print(tcp(host, 22), udp(host, 443), udp(host, 123))
    """)
    one.take()
    assert one.end().splitlines() == ["ECONNREFUSED ECONNREFUSED ECONNREFUSED"] * 3


def test_raw_and_icmp_sockets_are_refused(cell):
    one = cell("""
        kinds = [(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), (socket.AF_INET, socket.SOCK_RAW, 255),
                 (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6), (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_INET, socket.SOCK_STREAM, 132)]
        for kind in kinds:
            print(told(lambda: socket.socket(*kind).close()))
    """)
    one.take()
    assert not {line for line in one.end().splitlines()} & {"done"}


def test_a_program_has_no_power_over_its_network(cell):
    one = cell("""
        import fcntl
        s = socket.socket()
        print(told(lambda: fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0)) and None))  # SIOCSIFFLAGS
        print(told(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()))
        print(told(lambda: open("/proc/sys/net/ipv4/ip_forward", "w") and None))
        print(tcp("127.0.0.1", 80))
    """)
    one.take()
    flags, netlink, forward, port = one.end().splitlines()
    assert flags in ("EPERM", "ENOTTY") and netlink != "done" and forward in ("ENOENT", "EACCES", "EROFS") and port == "done"


# --- the end of the proxy, and of the cell ----------------------------------------------------------

def test_without_a_proxy_a_program_is_refused_at_once(cell):
    one = cell(f"""
        first = tcp("{NAME}", 443)
        while tcp("{NAME}", 443) == "done": pass
        print(first)
        print(tcp("{GATEWAY}", 3128), tcp("{NAME}", 443), tcp("{GATEWAY}", 53), udp("{GATEWAY}", 53))
    """)
    one.take()
    one.sockets[443].settimeout(host.HANG)
    with one.sockets[443].accept()[0]: # it runs, and has reached the proxy
        for name in NAMES:
            one.sockets[name].close()
    assert one.end() == "done\nECONNREFUSED ECONNREFUSED ECONNREFUSED ECONNREFUSED\n"


def test_where_the_sockets_cannot_be_sent_they_are_closed(cell):
    one = cell(f"""
        import time
        while tcp("{NAME}", 443) == "done": time.sleep(.001)
        print(tcp("{GATEWAY}", 3128))
    """)
    one.ours.close()
    assert one.end() == "ECONNREFUSED\n"


def test_a_cell_that_was_never_asked_keeps_its_sockets_until_its_end(cell):
    one = cell(f"print(tcp('{NAME}', 443))", asks=False)
    assert one.end() == "done\n" and one.take() is None


def test_no_process_of_the_cell_or_around_it_has_a_listener(cell):
    one = cell(f"""
        print(sum("socket" in os.readlink(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{fd}}")), flush=True)
        while True: tcp("{NAME}", 80)
    """)
    one.take()
    assert one.process.stdout.readline() == "0\n"
    inodes = {os.fstat(s.fileno()).st_ino for s in one.sockets.values()}

    def holders():
        return {pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid() for inode in inodes if f"socket:[{inode}]" in links(pid)}
    assert host.poll(lambda: not holders()), holders() # who gave them closes them after that


def links(pid):
    found = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def test_nothing_is_left_of_a_cell_with_a_network(cell, nothing_left, token):
    for asks in (True, False):
        one = cell(f"tcp('{NAME}', 80)", asks=asks)
        if asks:
            one.take()
        one.end()
        one.close()


def test_ports_that_the_gateway_has_itself_are_refused(cell):
    one = cell("print('ran')", ports=(3128,))
    out, err = one.process.communicate(timeout=host.HANG)
    assert not out and "ports that cannot be listened at" in err
