"""brig-proxy as a server starts it, and a network namespace that is a cell's: the test is the server, and the programs in the cell are its own."""
import array
import ctypes
import fcntl
import mmap
import os
import re
import socket
import subprocess
import tempfile

from support import host, layout

GATEWAY = "198.18.0.1"
PORTS = (80, 443, 8443)
Rule, Rules, Secret, Config, Message, Report, Listeners = (layout.struct(name) for name in (
    "net_rule", "net_rules", "net_secret", "proxy_config", "proxy_message", "net_report", "net_listeners"))
SCHEMES = {scheme: layout.number(f"NET_SCHEME_{scheme.upper()}") for scheme in ("any", "https", "http", "tcp")}
NAME, BELOW, PUBLIC, ADDRESS, ANYTHING = (layout.number(f"NET_HOST_{kind}") for kind in ("NAME", "BELOW", "PUBLIC", "ADDRESS", "ANYTHING"))
METHODS = {method: layout.number(f"NET_METHOD_{method}") for method in ("GET", "HEAD", "POST")}
VERDICTS, REASONS = layout.words("verdicts"), layout.words("reasons")
BEGIN, END = layout.number("PROXY_BEGIN"), layout.number("PROXY_END")


def rule(text, private=False, methods=()):
    """[SCHEME://]HOST[:PORT], with *.HOST; no IPv6."""
    found = re.fullmatch(r"(?:(\w+)://)?(\*\.)?([^:/]+)(?::(\d+))?", text)
    kind = BELOW if found[2] else ADDRESS if found[3].replace(".", "").isdigit() else NAME
    return Rule(kind, SCHEMES[found[1] or "any"], sum(METHODS[one] for one in methods), 0, int(found[4] or 0), private, found[3].encode())


def rules(*which):
    made = Rules(len(which))
    for n, one in enumerate(which):
        made.rule[n] = one if isinstance(one, Rule) else rule(one)
    return made


def listeners(ports):
    made = Listeners(len(ports))
    made.port[:len(ports)] = ports
    return made


def used(content):
    """Of the rules of a run, those that are there."""
    return Rules.rule.offset + content.n * ctypes.sizeof(Rule) if isinstance(content, Rules) else None


def memory(content, sealed=True):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.write(fd, bytes(content)[:used(content)])
    if sealed:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


# As the process that builds a cell does: sockets, sent over the socket that a server sent, and closed here.
LISTEN = """
import array, socket, sys
what, (there, *ports) = bytes.fromhex(sys.argv[1]), map(int, sys.argv[2:])
def made(kind, address, port):
    s = socket.socket(socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    if kind == socket.SOCK_STREAM: s.listen(128)
    return s
sockets = [made(socket.SOCK_DGRAM, GATEWAY, 53), made(socket.SOCK_STREAM, GATEWAY, 53), made(socket.SOCK_STREAM, GATEWAY, 3128), *(made(socket.SOCK_STREAM, "0.0.0.0", port) for port in ports)]
socket.socket(fileno=there).sendmsg([what], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno() for s in sockets]))])
""".replace("GATEWAY", repr(GATEWAY))

# Descriptors where the proxy looks for them, and then the proxy.
BECOME = """
import fcntl, os, sys
fds = [fcntl.fcntl(int(fd), fcntl.F_DUPFD, 20) for fd in sys.argv[2:]]
for to, fd in enumerate(fds, 3): os.dup2(fd, to)
os.closerange(3 + len(fds), 64)
os.execv(sys.argv[1], ["brig-proxy"])
"""


class Cell:
    """A machine of the internet whose only network is brig-proxy."""

    def __init__(self, internet):
        self.machine = internet.machine("cell")
        self.machine.script("ip route add local 198.18.0.0/15 dev lo")
        conf = internet.folder / "cell-resolv.conf"
        conf.write_text(f"nameserver {GATEWAY}\noptions timeout:5 attempts:1\n")
        self.machine.run("mount", "--bind", conf, os.path.realpath("/etc/resolv.conf"))
        self.ca = internet.folder / "ca.pem"

    def run(self, *argv, **kw):
        return self.machine.run(*argv, check=False, **kw)

    def curl(self, *argv, proxy=None):
        """proxy: "http", "socks5h"; None: the program knows of none."""
        through = ["--proxy", f"{proxy}://{GATEWAY}:3128"] if proxy else ["--noproxy", "*"]
        return self.run("curl", "-sS", "--max-time", str(int(host.HANG)), "--cacert", self.ca, *through, *argv)

    def python(self, code, *argv):
        return self.run(host.PYTHON, "-c", code, *map(str, argv))


class Run:
    """One run that a proxy serves: its report, as the server reads it."""

    def __init__(self, proxy, number, allowed, cell, bytes_max=1 << 30, connections_max=64, rate_max=0, cpus=1000, user=0, ports=PORTS):
        self.proxy, self.number = proxy, number
        self.report_fd = memory(Report(), sealed=False)
        self.mapped = mmap.mmap(self.report_fd, ctypes.sizeof(Report))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening = cell.machine.start(host.PYTHON, "-c", LISTEN, bytes(listeners(ports)).hex(), str(theirs.fileno()), *map(str, ports), pass_fds=[theirs.fileno()])
        with ours, theirs:
            rules_fd = memory(allowed)
            proxy.send(Message(BEGIN, number, bytes_max, connections_max, rate_max, cpus, user), [ours.fileno(), rules_fd, self.report_fd])
            os.close(rules_fd)
        assert listening.wait(host.HANG) == 0, f"no sockets in the cell: {proxy.said()}"

    @property
    def report(self):
        return Report.from_buffer_copy(self.mapped)

    def connections(self):
        """(name, port, verdict, reason) of each."""
        report = self.report
        return [(c.name.decode(), c.port, VERDICTS[c.verdict], REASONS[c.reason]) for c in report.connection[:report.n]]

    def comes_to(self, *row):
        assert host.poll(lambda: row in self.connections()), self.connections()

    def end(self):
        self.proxy.send(Message(END, self.number))


class Proxy:
    def __init__(self, internet, allow=(), ceiling=(), deny=(), upstream=b"", config=None, through=()):
        """config: a memory file instead of the one that the others make. through: a command that becomes the proxy."""
        self.internet, self.runs = internet, 0
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        config = memory(Config(rules(*allow), rules(*ceiling), rules(*deny), upstream=upstream)) if config is None else config
        self.err = tempfile.TemporaryFile("w+") # pylint: disable=consider-using-with # as long as the proxy
        with theirs:
            self.process = subprocess.Popen([*internet.host.enter, *through, host.PYTHON, "-c", BECOME, host.build_dir() / "bin/proxy", str(theirs.fileno()), str(config)],
                                            pass_fds=[theirs.fileno(), config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.err)
        os.close(config)

    def send(self, message, fds=()):
        self.ours.sendmsg([bytes(message)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def begin(self, cell, *allowed, **kw):
        self.runs += 1
        return Run(self, self.runs, rules(*allowed), cell, **kw)

    def said(self):
        self.err.seek(0)
        return self.err.read()

    def end(self):
        """The server goes away."""
        self.ours.close()
        return self.process.wait(host.HANG)

    def close(self):
        self.ours.close()
        if self.process.poll() is None:
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.err.close()
