"""Networks that are used again: only after runs that left nothing there, and nobody can tell them from new ones."""
import time

import pytest

from rules import MANY
from support import daemon as daemons
from support import host

# The number alone is given to the next network when one is thrown away; the time when it was made is not.
WHICH = "import os; _s = os.stat('/proc/self/ns/net'); print(_s.st_ino, _s.st_ctime_ns)\n"

# Everything of one's own network that a program can read. Not what counts for the whole host (softnet_stat, stat/, half of
# sockstat), whoever's network it is; not by which numbers the kernel's own sockets are known.
VIEW = """
import os, socket, time
end = time.monotonic() + 20 # the socket that raised lo is freed when every CPU has noticed
while 'used 0' not in open('/proc/self/net/sockstat').readline() and time.monotonic() < end: time.sleep(.001)
skip = {'softnet_stat', 'stat', 'netfilter', 'ptype', 'protocols', 'psched'}
for folder, _, names in os.walk('/proc/self/net'):
    for name in sorted(names):
        path = os.path.join(folder, name)
        if not skip & set(path.split('/')):
            try: text = open(path).read()
            except OSError as e: text = str(e)
            if name == 'sockstat': text = [(w[:3] if w[0] in ('TCP:', 'UDP:') else w) for w in map(str.split, text.splitlines())] # the memory is the host's
            if name == 'netlink': text = [l.split()[1:-1] for l in text.splitlines()]
            print(path, text)
for name in 'left', 'left2':
    socket.socket(socket.AF_UNIX).bind(chr(0) + name)
"""
INET = "import socket\nU = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
LEAVES = {
    "a socket": INET,
    "a socket of version 6": "import socket; socket.socket(socket.AF_INET6)",
    "a socket by its number, with high bits that the kernel does not read":
        "import ctypes; assert ctypes.CDLL(None).syscall(ctypes.c_long(41), ctypes.c_long(2 | 1 << 32), ctypes.c_long(1), ctypes.c_long(0)) > 2",
    "a socket of a child": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import socket; socket.socket()'], check=True)",
    "a socket of a thread": "import socket, threading; t = threading.Thread(target=socket.socket); t.start(); t.join()",
    "a socket of an orphan that is killed":
        "import os, socket, time\nr, w = os.pipe()\nif os.fork() == 0:\n    s = socket.socket(); os.write(w, b'x'); time.sleep(600)\nos.read(r, 1)\n",
    "a socket of a program that kills itself": "import os, socket; s = socket.socket(); print(flush=True); os.kill(os.getpid(), 9)",
    "a route that was looked up": INET + "U.connect(('127.0.0.1', 9))\n",
    "a route of version 6": "import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('::1', 9))",
    "a figure of a refused connection": INET + "try: U.connect(('192.0.2.1', 9))\nexcept OSError: pass\n",
    "a packet": INET + "U.sendto(b'x', ('127.0.0.1', 9))\n",
    "a packet that only comes back": INET + "import struct\nU.setsockopt(0, socket.IP_MULTICAST_TTL, 0)\n"
        "U.setsockopt(0, socket.IP_MULTICAST_IF, struct.pack('=4s4si', bytes(4), bytes(4), 1))\n"
        "U.setsockopt(0, socket.IP_ADD_MEMBERSHIP, struct.pack('=4s4si', socket.inet_aton('239.1.2.3'), bytes(4), 1))\nU.sendto(b'x', ('239.1.2.3', 9))\n",
    "a group that was joined and left": INET + "import struct\nwish = struct.pack('=4s4si', socket.inet_aton('239.1.2.3'), bytes(4), 1)\n"
        "for how in socket.IP_ADD_MEMBERSHIP, socket.IP_DROP_MEMBERSHIP: U.setsockopt(0, how, wish)\n",
    "a group of version 6": "import socket, struct\nu = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
        "u.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, 'ff02::1234') + struct.pack('i', 1))\n",
    "a connection in TIME_WAIT": "import socket\nl = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); a, _ = l.accept()\na.close(); c.close()\n",
    "a listener": "import socket; l = socket.create_server(('127.0.0.1', 7777))",
    "many sockets at once": "import socket\nfor _ in range(300): socket.socket().close()\n",
}
# These are the kernel's to forget; whether it was fast enough decides, and nothing is to be seen either way.
LOCAL = {
    "a name of its own": "import socket; s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'left')",
    "a name in a child that lives on": "import os, socket, time\nr, w = os.pipe()\nif os.fork() == 0:\n    s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + 'left'); os.write(w, b'x')\n    time.sleep(600)\nos.read(r, 1)\n",
    "sockets that hold each other in their queues":
        "import array, socket\nfor name in 'left', 'left2':\n    a, b = socket.socketpair(); c = socket.socket(socket.AF_UNIX); c.bind(chr(0) + name); c.listen()\n"
        "    for s, t in (a, b), (b, a):\n        s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [t.fileno(), s.fileno(), c.fileno()]))])\n",
    "a listener with a connection that nobody took":
        "import socket; l = socket.socket(socket.AF_UNIX); l.bind(chr(0) + 'left'); l.listen(); c = socket.socket(socket.AF_UNIX); c.connect(chr(0) + 'left'); c.send(b'x' * 999)",
}


@pytest.fixture(scope="module")
def kept(only_basic):
    with daemons.Daemon(MANY, env={"BRIG_PRESETS": str(only_basic)}) as one:
        one.settle()
        yield one


@pytest.fixture
def talk(kept):
    with kept.connect() as made:
        yield made


def which(run):
    """Which network it had, and what it printed itself."""
    first, _, rest = run.stdout.partition("\n")
    assert first.replace(" ", "").isdigit(), run
    return first, rest


def quiet(talk, **keys):
    """Those that are given to quiet runs, one of which was given twice."""
    seen = []
    assert host.poll(lambda: seen.append(which(talk.run(WHICH, **keys))[0]) or len(set(seen)) < len(seen)), seen
    return set(seen)


@pytest.fixture(scope="module")
def fresh(kept):
    """What a run sees whose network nobody has had: every one of this profile, which is never warm."""
    with kept.connect() as talk:
        seen = {talk.run(VIEW, profile="strict").stdout for _ in range(3)}
        assert len(seen) == 1 and "/proc/self/net/snmp6" in str(seen)
        return seen.pop()


def test_a_quiet_run_has_the_network_of_another_one(talk):
    assert quiet(talk)


def test_a_cold_run_of_a_warm_profile_has_it_too(talk):
    assert quiet(talk, cold=True)


def test_local_sockets_that_are_closed_do_no_harm(talk):
    program = WHICH + "import socket, asyncio\na, b = socket.socketpair(); a.send(b'x')\nasyncio.run(asyncio.sleep(0))\n" \
                      "l = socket.socket(socket.AF_UNIX); l.bind(chr(0) + 'name')\n"
    seen = []
    assert host.poll(lambda: seen.append(which(talk.run(program))[0]) or len(set(seen)) < len(seen)), seen


@pytest.mark.diagonal("only_basic")
@pytest.mark.parametrize("name", LEAVES)
def test_a_network_in_which_something_was_done_is_thrown_away(talk, fresh, name):
    run = talk.run(WHICH + "import sys; sys.stdout.flush()\n" + LEAVES[name])
    assert "Error" not in run.stderr, run
    later = [talk.run(WHICH + VIEW) for _ in range(4)]
    assert which(run)[0] not in [which(one)[0] for one in later]
    for one in later:
        assert which(one)[1] == fresh, name


@pytest.mark.parametrize("name", LOCAL)
def test_what_is_left_of_local_sockets_is_seen_by_nobody(talk, fresh, name):
    run = talk.run(LOCAL[name])
    assert "Error" not in run.stderr, run
    for _ in range(4):
        assert talk.run(VIEW).stdout == fresh, name


def test_nothing_comes_later(talk, fresh):
    """Reports on groups are sent by the kernel after a while: who looks at it for so long must not see any."""
    for _ in range(4):
        talk.run(LEAVES["a group that was joined and left"])
        talk.run(LEAVES["a group of version 6"])
    assert talk.run("import time; time.sleep(2)\n" + VIEW).stdout == fresh


def test_a_profile_that_is_never_warm_has_a_new_one_for_each_run(talk):
    seen = [which(talk.run(WHICH, profile="strict"))[0] for _ in range(6)]
    assert len(set(seen)) == 6, seen


def networks(pid):
    return sum(daemons.link_of(f"/proc/{pid}/fd/{fd}").startswith("net:[") for fd in daemons.listed(f"/proc/{pid}/fd"))


def test_a_supervisor_keeps_a_bounded_number(talk, kept):
    runs = [talk.start("import sys; print(1, flush=True); sys.stdin.read()", stdin=True) for _ in range(20)]
    for run in runs:
        assert run.line() == "1"
    for run in runs:
        run.feed(b"")
        run.close()
    assert host.poll(lambda: max(networks(pid) for pid in kept.roles()["supervisor"]) <= 8 + 1 + 4), "those that are kept, its own, those of cells that stand ready"


def test_a_program_that_makes_sockets_all_the_time_costs_its_supervisor_little(talk, kept):
    """The supervisor's time is not counted for the program, so it must not be the program's to spend."""
    run = talk.start("import socket, time\nprint('here', flush=True)\nend = time.monotonic() + 2\nn = 0\n"
                     "while time.monotonic() < end: socket.socket().close(); n += 1\nprint(n)\n")
    assert run.line() == "here"
    before = {pid: daemons.cpu_seconds(pid) for pid in kept.roles()["supervisor"]}
    start = time.monotonic()
    said = run.line()
    spent = max(daemons.cpu_seconds(pid) - was for pid, was in before.items() if pid in kept.roles()["supervisor"])
    share = spent / (time.monotonic() - start)
    assert int(said) > 100, "sockets are hardly made any more"
    assert share < (.5 if host.SLOWER == 1 else .9), f"{share:.0%} of a CPU for {said} sockets"
    run.close()
