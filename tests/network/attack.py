"""Programs that attack from inside of a jail: what they all begin with, and how they are run."""
import json

from support import host

# Each probe says in a word what came of it; a program prints one JSON object of them.
PRELUDE = """
import errno, json, os, socket, ssl, struct, sys, time
GATEWAY = "198.18.0.1"
said = {}

def told(name, call, *args):
    try:
        result = call(*args)
        said[name] = result.decode("latin-1") if isinstance(result, bytes) else result
    except OSError as e:
        said[name] = errno.errorcode.get(e.errno, str(e)) if type(e) in (OSError, ConnectionRefusedError, ConnectionResetError, PermissionError, BrokenPipeError) else f"{type(e).__name__}: {e}"

def to(address, port, family=socket.AF_INET, seconds=WAIT):
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(seconds)
    sock.connect((address, port))
    return sock

def all_of(sock, most=1 << 20):
    "Up to end of file, or to a reset behind something."
    heard = b""
    while len(heard) < most:
        try:
            data = sock.recv(65536)
        except ConnectionResetError:
            if not heard:
                raise
            break
        if not data:
            break
        heard += data
    return heard

def proxy(data, then=b""):
    "What the proxy answers to these bytes, up to its end of file."
    with to(GATEWAY, 3128) as sock:
        sock.sendall(data)
        heard = b""
        if then:
            while b"\\r\\n\\r\\n" not in heard:
                more = sock.recv(65536)
                if not more:
                    return heard
                heard += more
            sock.sendall(then)
        try:
            return heard + all_of(sock)
        except ConnectionResetError:
            if heard:
                return heard
            raise

def status(data):
    "Of an HTTP answer, or of none at all."
    words = data.split(b"\\r\\n", 1)[0].split()
    return words[1].decode() if data.startswith(b"HTTP/1.") and len(words) > 1 else repr(data[:80])

def connect(target):
    return proxy(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode("latin-1", "surrogateescape") if isinstance(target, str) else target)

def tunnel(target):
    "A socket behind CONNECT."
    sock = to(GATEWAY, 3128)
    sock.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
    heard = b""
    while b"\\r\\n\\r\\n" not in heard:
        data = sock.recv(1)
        if not data:
            raise OSError("closed")
        heard += data
    if b" 200 " not in heard.split(b"\\r\\n")[0] + b" ":
        raise OSError(heard.split(b"\\r\\n")[0].decode())
    return sock

def tls(sock, sni, context=None):
    context = context or ssl.create_default_context()
    if sni is None:
        context.check_hostname = False
    return context.wrap_socket(sock, server_hostname=sni)

def page(sock, host, path="/who"):
    sock.sendall(f"GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    return all_of(sock)

def question(name, kind=1, flags=0x0100, count=1):
    labels = name if isinstance(name, bytes) else b"".join(bytes([len(part)]) + part.encode() for part in name.rstrip(".").split(".")) + b"\\0"
    return struct.pack("!6H", 0x4242, flags, count, 0, 0, 0) + labels + struct.pack("!HH", kind, 1)

def ask(name, kind=1, tcp=False, seconds=WAIT, **more):
    "(rcode, number of answers, the last four bytes of an answer)"
    data = question(name, kind, **more)
    if tcp:
        with to(GATEWAY, 53) as sock:
            sock.sendall(struct.pack("!H", len(data)) + data)
            heard = sock.recv(4096)[2:]
    else:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(seconds)
            sock.sendto(data, (GATEWAY, 53))
            heard = sock.recv(4096)
    answers = struct.unpack("!H", heard[6:8])[0]
    return [heard[3] & 15, answers, socket.inet_ntoa(heard[-4:]) if answers else None]
""".replace("WAIT", str(host.HANG / 2))
END = "\nprint(json.dumps(said))\n"


class Attacked:
    """said: the program's words; connections: rows of the record's network."""

    def __init__(self, run):
        assert run.record and run.reason == "exited" and run.record["exit_code"] == 0, str(run)
        self.run, self.said, self.network = run, json.loads(run.out.splitlines()[-1]), run.record["network"]

    def reasons(self, name):
        """Why connections to that name were refused or failed."""
        return {one["reason"] for one in self.network["connections"] if one["name"] == name and one["verdict"] in ("refused", "failed")}

    def verdicts(self, name):
        return {one["verdict"] for one in self.network["connections"] if one["name"] == name}


def allowed(*rules):
    """The options of a run."""
    return [word for rule in rules for word in ("--net", rule)]


def attack(net, program, *rules, profile="network", options=(), **kw):
    """Runs it in a jail that may reach these."""
    return Attacked(net.brig("-p", profile, *allowed(*rules), *options, program=PRELUDE + program + END, **kw))


class Profiles:
    """A folder of profiles with a network, for $BRIG_PROFILES."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.chmod(0o755)

    def make(self, name, network, **more):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"rootfs": "network", "policy": "python", "network": network, **more}))
        path.chmod(0o644)
        return {"profile": name, "env": {"BRIG_PROFILES": str(self.folder)}}
