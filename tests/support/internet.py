"""An internet of two network namespaces: `world` has servers on addresses that look public, `host` is where brig runs.

Neither has a way out: world's addresses are on its loopback, and the one other interface is a veth between the two. The host
has a mount namespace of its own, in which /etc/resolv.conf names world's dnsmasq, and the certificates that programs trust have
the CA of these tests. Everything ends with the process that made it.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import textwrap

from support import brig, daemon, host

TOOLS = ("unshare", "nsenter", "setpriv", "ip", "openssl", "curl", "git", "nginx", "dnsmasq", "haproxy", "fcgiwrap")
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
RESOLVER, SIX_PREFIX = "93.184.216.53", "2606:2800:220:1::"
HOST_ADDRESS, WORLD_ADDRESS = "203.0.113.2", "203.0.113.1" # of the veth
HOST_SIX, WORLD_SIX = "2001:db8:7::2", "2001:db8:7::1"
OWN_PUBLIC = "93.184.217.9" # an address of the host itself that looks public
OWN_PORT = 8000             # a service of the host, on all of its addresses

# Each name has an address of its own; "6": only in IPv6. nginx serves all but those that are named below.
NAMES = {
    "shop.example": 34, "api.example": 35, "evil.example": 36, "one.example": 37, "two.example": 37, "git.example": 38, "pypi.example": 39,
    "ws.example": 40, "echo.example": 41, "wild.example": 42, "a.wild.example": 42, "b.a.wild.example": 42, "raw.example": 43, "evilwild.example": 44,
    "cert.example": 45, "unknown-ca.example": 46, "six.example": 47, "closed.example": 48, "xn--pple-43d.example": 49, "apple.example": 49,
    "pypi.org": 60, "files.pythonhosted.org": 61, "api.github.com": 62, "example.com": 63, # of README and guide
}
SIX_ONLY = ("six.example",)
ODD = { # names of public domains that lead to where no program may come
    "private.example": ["10.1.2.3"], "mixed.example": ["93.184.216.34", "10.1.2.3"], "loopback.example": ["127.0.0.1"], "zero.example": ["0.0.0.0"],
    "metadata.example": ["169.254.169.254"], "cgnat.example": ["100.64.7.7"], "own.example": [OWN_PUBLIC], "link.example": [HOST_ADDRESS],
    "loopback6.example": ["::1"], "mapped.example": ["::ffff:10.1.2.3"], "mapped-metadata.example": ["::ffff:169.254.169.254"],
    "nat64.example": ["64:ff9b::a9fe:a9fe"], "own-nat64.example": ["64:ff9b::5db8:d909"], "own-sixtofour.example": ["2002:5db8:d909::1"], "sixtofour.example": ["2002:a9fe:a9fe::1"], "ula.example": ["fd00:ec2::254"], "linklocal6.example": ["fe80::1"],
    "multicast.example": ["224.0.0.1"], "broadcast.example": ["255.255.255.255"],
}
NOT_PUBLIC = ["10.1.2.3", "169.254.169.254", "100.64.7.7", "192.168.1.1", "fd00:ec2::254"] # of world, beside the public ones; a metadata service answers there
CERTIFIED = [*NAMES, "rebind.example", *ODD]
BIG = 10 ** 9
TOKEN = "your-token" # which /user wants, as in the guide


def address_of(name):
    return f"93.184.216.{NAMES[name]}"


def lacks():
    """None, or why there can be no internet here."""
    missing = [lack for tool in TOOLS if (lack := host.lacks(f"tool:{tool}"))]
    return host.lacks("root") or (missing[0] if missing else None) or lacks_veth()


@functools.lru_cache(maxsize=None)
def lacks_veth():
    made = subprocess.run(["unshare", "--net", "ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1"], capture_output=True, text=True)
    return None if made.returncode == 0 else f"needs network namespaces with veth: {made.stderr.strip()}"


class Machine:
    """A network and a mount namespace, for as long as the process that holds them runs."""

    def __init__(self, name):
        self.name = name
        # A sysfs of this network, with the control groups that the other one had.
        hold = ("mount --make-rprivate / && mount --rbind /sys/fs/cgroup /mnt && { mount -t sysfs sys /sys -o nosuid,nodev,noexec 2>/dev/null && mount --move /mnt /sys/fs/cgroup || umount -R /mnt; }; "
                "ip link set lo up && echo held && exec cat")
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "sh", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.holder.stdout.readline() == "held\n", f"no namespaces for {name}"
        self.started = []

    @property
    def enter(self):
        """What a command line begins with, to run here. The process stays the same one."""
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", "-t", str(self.holder.pid), "--net", "--mount", f"--wd={os.getcwd()}"]

    def run(self, *argv, check=True, **popen):
        done = subprocess.run([*self.enter, *map(str, argv)], capture_output=True, text=True, timeout=host.HANG, stdin=subprocess.DEVNULL, **popen)
        assert done.returncode == 0 or not check, f"{argv} in {self.name}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done

    def script(self, text, *args):
        """Lines of shell, up to the first that fails."""
        return self.run("sh", "-ec", text, "sh", *args)

    def start(self, *argv, **popen):
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **popen}
        self.started.append(subprocess.Popen([*self.enter, *map(str, argv)], **popen))
        return self.started[-1]

    def listens(self, address, port, kind="tcp"):
        """Waits until something listens there."""
        option = "-ltnH" if kind == "tcp" else "-lunH"
        shown = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        assert host.poll(lambda: shown in self.run("ss", option).stdout), f"nothing listens at {shown} in {self.name}: {self.run('ss', '-lntuH').stdout}"

    def held_by_tcp(self, to):
        """(connections to this address, bytes that their sockets hold in the kernel)."""
        shown = self.run("ss", "-tmnHO", "dst", to).stdout
        return shown.count("skmem:"), sum(map(int, re.findall(r"skmem:\(r(\d+),", shown))) + sum(map(int, re.findall(r",w(\d+),", shown)))

    def close(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.holder.stdin.close()
        self.holder.wait()


# A program with connections to a server that sends and does not read, while it reads nothing itself; each request has more of a body than is taken.
UNREAD = """
import os, socket, ssl, time
MANY, PORT = WORDS
held, where = [], socket.gethostbyname("shop.example")
for n in range(MANY // 150 - 1): # a process has few descriptors
    if os.fork() == 0: break
for n in range(150):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096) # so that they stay within the run's own bound
    sock.connect((where, PORT))
    if PORT == 443:
        sock = ssl.create_default_context().wrap_socket(sock, server_hostname="shop.example")
    sock.sendall(b"GET /big HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
    held.append(sock)
print("all", flush=True)
time.sleep(600)
"""


def most_held(net, many, port=80, profile="network", **kw):
    """Bytes that brig-proxy's sockets to servers hold for so many connections of one run, when no more come."""
    options = ["--net", "shop.example"] if profile == "network" else []
    flood = net.start_brig("-p", profile, *options, "--net-connections", "1024", "--net-bytes", "8G", "--timeout", "300", "--memory", "512M",
                           through=["prlimit", "--nofile=20000:20000"], program=UNREAD.replace("WORDS", f"{many}, {port}"), **kw)
    try:
        last = [-1]
        def settled():
            assert flood.process.poll() is None, str(flood.wait())
            there, held = net.host.held_by_tcp(address_of("shop.example"))
            last.append(held)
            return there >= many and len(last) > 20 and len(set(last[-20:])) == 1
        assert host.poll(settled, host.HANG * 2), last[-20:]
        return last[-1]
    finally:
        flood.process.terminate()
        flood.wait(host.HANG)


class Internet:
    """world and host, with all servers up when the constructor returns."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="brig-test-internet-")
        self.folder = pathlib.Path(self.scratch.name) # of all that the servers read and write
        self.folder.chmod(0o755)
        self.machines = []
        try:
            self.world, self.host = self.machine("world"), self.machine("host")
            self.connect()
            self.make_certificates()
            self.start_servers()
            self.settle_host()
        except BaseException:
            self.close()
            raise

    def machine(self, name):
        self.machines.append(Machine(name))
        return self.machines[-1]

    def close(self):
        for machine in reversed(self.machines):
            machine.close()
        self.scratch.cleanup()

    # --- links and addresses ---

    def connect(self):
        self.world.script(f"""
            ip link add up1 type veth peer name up0
            ip link set up0 netns {self.host.holder.pid}
            ip link set up1 up
            ip addr add {WORLD_ADDRESS}/30 dev up1
            ip -6 addr add {WORLD_SIX}/64 dev up1 nodad
        """)
        four = [*{address_of(name) for name in NAMES if name not in SIX_ONLY}, RESOLVER, *(one for one in NOT_PUBLIC if ":" not in one)]
        six = [*(f"{SIX_PREFIX}{number}" for number in set(NAMES.values())), *(one for one in NOT_PUBLIC if ":" in one)]
        batch = [f"addr add {one}/32 dev lo" for one in four] + [f"-6 addr add {one}/128 dev lo nodad" for one in six]
        self.batch(self.world, batch)
        self.host.script(f"""
            ip link set up0 up
            ip addr add {HOST_ADDRESS}/30 dev up0
            ip -6 addr add {HOST_SIX}/64 dev up0 nodad
            ip addr add {OWN_PUBLIC}/32 dev lo
            ip route add default via {WORLD_ADDRESS}
            ip -6 route add default via {WORLD_SIX}
        """)

    def batch(self, machine, lines):
        """`ip -batch` knows no family by the line, so one call for each."""
        for family, chosen in (("-4", [line for line in lines if not line.startswith("-6 ")]), ("-6", [line[3:] for line in lines if line.startswith("-6 ")])):
            path = self.folder / f"ip{family}"
            path.write_text("\n".join(chosen) + "\n")
            machine.run("ip", family, "-batch", path)

    # --- certificates ---

    def openssl(self, *argv):
        subprocess.run(["openssl", *map(str, argv)], check=True, capture_output=True, cwd=self.folder)

    def make_certificates(self):
        """A CA that the host trusts and one that it does not; every name is on one certificate, as with a content delivery network."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        for ca in ("ca", "unknown"):
            self.openssl("req", "-x509", *key, "-subj", f"/CN=brig tests {ca}", "-keyout", f"{ca}.key", "-out", f"{ca}.pem",
                         "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        for name, ca, names in (("server", "ca", CERTIFIED), ("other", "ca", ["another.example"]), ("stranger", "unknown", ["unknown-ca.example"])):
            (self.folder / "names.cnf").write_text("subjectAltName=" + ",".join(f"DNS:{one}" for one in names) + "\nextendedKeyUsage=serverAuth\n")
            self.openssl("req", "-new", *key[:-2], "-subj", f"/CN={names[0]}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", "names.cnf", "-out", f"{name}.crt")
        self.make_bad_certificates(key[:-2])
        self.bundle = self.folder / "bundle.pem"
        self.bundle.write_text(host.read(BUNDLE) + (self.folder / "ca.pem").read_text())

    def make_bad_certificates(self, key):
        """Both for cert.example: one of yesterday's, and one that signs itself."""
        (self.folder / "names.cnf").write_text("subjectAltName=DNS:cert.example\nextendedKeyUsage=serverAuth\n")
        (self.folder / "ca.cnf").write_text("[ca]\ndefault_ca=here\n[here]\ndatabase=issued\nrand_serial=yes\nnew_certs_dir=.\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n")
        (self.folder / "issued").write_text("")
        self.openssl("req", "-new", *key, "-subj", "/CN=cert.example", "-keyout", "expired.key", "-out", "expired.csr")
        self.openssl("ca", "-batch", "-notext", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key", "-extfile", "names.cnf", "-startdate", "20200101000000Z",
                     "-enddate", "20200102000000Z", "-in", "expired.csr", "-out", "expired.crt")
        self.openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=cert.example", "-addext", "subjectAltName=DNS:cert.example", "-keyout", "itself.key", "-out", "itself.crt")

    # --- servers ---

    def start_servers(self):
        self.make_content()
        self.start_dns()
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        self.world.start(host.PYTHON, host.REPO / "tests/network/servers.py", self.folder, env=env, stderr=open(self.folder / "servers.err", "w", encoding="ascii"))
        self.world.start("fcgiwrap", "-s", f"unix:{self.folder}/git.sock")
        (self.folder / "nginx.conf").write_text(nginx_conf(self.folder))
        self.world.start("nginx", "-c", self.folder / "nginx.conf", "-e", self.folder / "nginx.err")
        (self.folder / "haproxy.cfg").write_text(haproxy_conf(self.folder))
        self.world.start("haproxy", "-db", "-q", "-f", self.folder / "haproxy.cfg")
        for address, port in ((RESOLVER, 53), (address_of("shop.example"), 443), (address_of("one.example"), 443), (address_of("raw.example"), 443), (address_of("echo.example"), 7007), ("127.0.0.1", 9001)):
            self.world.listens(address, port)
        assert host.poll((self.folder / "git.sock").exists)

    def start_dns(self):
        lines = ["no-resolv", "no-hosts", "cache-size=0", "log-queries", f"log-facility={self.folder}/dns.log", f"listen-address={RESOLVER}", "bind-interfaces", "local-ttl=0",
                 "local=/example/", "local=/org/", "local=/com/", "server=/rebind.example/127.0.0.1#5353", "cname=alias.example,shop.example", "cname=alias-evil.example,evil.example", "txt-record=txt.example,a-command-for-the-program", "user=root", "pid-file="]
        for name in NAMES:
            addresses = [f"{SIX_PREFIX}{NAMES[name]}"] + ([] if name in SIX_ONLY else [address_of(name)])
            lines.append(f"host-record={name},{','.join(addresses)}")
        for name, addresses in ODD.items():
            lines += [f"host-record={name},{address}" for address in addresses]
        (self.folder / "dnsmasq.conf").write_text("\n".join(lines) + "\n")
        self.world.start("dnsmasq", "--keep-in-foreground", f"--conf-file={self.folder}/dnsmasq.conf")

    def make_content(self):
        www = self.folder / "www"
        www.mkdir()
        (www / "hello.txt").write_text("hello from the world\n")
        with open(www / "big", "wb") as big:
            big.truncate(BIG)
        git_repository(self.folder / "git")
        package_index(www / "simple")

    # --- the host ---

    def settle_host(self):
        (self.folder / "resolv.conf").write_text(f"nameserver {RESOLVER}\n")
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        for path, source in (("/etc/resolv.conf", "resolv.conf"), ("/etc/hosts", "hosts"), (BUNDLE, "bundle.pem")):
            self.host.run("mount", "--bind", self.folder / source, os.path.realpath(path))
        self.host.start(host.PYTHON, "-c", OWN_SERVICE, str(OWN_PORT), str(self.folder / "own.log"))
        self.host.listens("*", OWN_PORT)
        assert "up0" in self.host.run("ip", "-br", "link").stdout and self.host.run("ip", "route").stdout.count("\n") == 2, "the host must have no other way out"

    def curl(self, *argv, check=True):
        """As a process of the host: what the network gives to who is not in a jail."""
        return self.host.run("curl", "-sS", "--max-time", str(int(host.HANG)), *argv, check=check)

    # --- brig ---

    def store(self, *names):
        """A copy of these rootfs whose programs trust the tests' CA."""
        store = self.folder / "store"
        for name in names:
            if not (store / "names" / name).exists():
                copy_rootfs(name, store)
                tree = (store / "names" / name).resolve()
                found = next(tree.rglob("etc/ssl/certs/ca-certificates.crt"))
                found.write_text(found.read_text() + (self.folder / "ca.pem").read_text())
        return store

    def environment(self, extra=None):
        return {"BRIG_STORE": str(self.store("network")), **(extra or {})}

    def start_brig(self, *options, env=None, through=(), popen=None, **kw):
        """brig in the host, a private one unless env names a socket."""
        argv = [*self.host.enter, *through, *brig.command(*options, **kw)]
        return brig.Child(argv, env=self.environment({"BRIG_SOCKET": None, **(env or {})}), **(popen or {}))

    def brig(self, *options, timeout=host.HANG, **kw):
        return self.start_brig(*options, **kw).wait(timeout)

    def daemon(self, config=None, **kw):
        return daemon.Daemon(config, env=self.environment(kw.pop("env", None)), through=[*self.host.enter, *daemon.with_accounts()], **kw)

    # --- what the servers saw ---

    def dns_questions(self):
        """(kind, name) of each question that came to world's resolver."""
        return re.findall(r"query\[(\w+)\] (\S+) from", host.read(self.folder / "dns.log"))

    def requests(self):
        """What nginx answered: dicts with server, host, sni, request, protocol, authorization, status."""
        return [json.loads(line) for line in host.read(self.folder / "requests.log").splitlines()]

    def seen(self):
        """What servers.py heard: dicts with at, and data."""
        return [json.loads(line) for line in host.read(self.folder / "seen.log").splitlines()]

    def own_seen(self):
        return host.read(self.folder / "own.log")


def copy_rootfs(name, store):
    tree = (host.store_dir() / "names" / name).readlink().name
    for folder in ("names", "tmp", "trees"):
        (store / folder).mkdir(parents=True, exist_ok=True)
        shutil.copymode(host.store_dir() / folder, store / folder)
    subprocess.run(["cp", "-a", "--reflink=auto", host.store_dir() / "trees" / tree, store / "trees"], check=True)
    (store / "names" / name).symlink_to(f"../trees/{tree}")


# Of the host: answers any connection with one line, and writes down that it came.
OWN_SERVICE = """
import socket, sys
server = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    client, address = server.accept()
    with client, open(sys.argv[2], "a") as log:
        print(address[0], file=log, flush=True)
        client.settimeout(5)
        client.recv(65536)
        client.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\nthe host's own\\n")
"""


def nginx_conf(folder):
    """Two listeners on each address that no other server has; requests.log has a line for each answer."""
    taken = {"one.example", "two.example", "echo.example", "raw.example", "cert.example", "unknown-ca.example", "closed.example"}
    listens = sorted({one for name in NAMES if name not in taken for one in ([] if name in SIX_ONLY else [address_of(name)]) + [f"[{SIX_PREFIX}{NAMES[name]}]"]})
    public = "\n".join(f"        listen {one}:80;\n        listen {one}:443 ssl http2;" for one in listens)
    private = "\n".join(f"        listen {'[' + one + ']' if ':' in one else one}:{port};" for one in NOT_PUBLIC for port in ("80", "443 ssl"))
    return textwrap.dedent("""
        user root;
        daemon off;
        worker_processes 1;
        pid FOLDER/nginx.pid;
        events { worker_connections 24000; }
        worker_rlimit_nofile 50000;
        http {
            log_format seen escape=json '{"server":"$server_addr","port":"$server_port","host":"$http_host","sni":"$ssl_server_name","request":"$request","protocol":"$server_protocol","authorization":"$http_authorization","status":$status,"connection":$connection}';
            access_log FOLDER/requests.log seen;
            client_body_temp_path FOLDER/nginx-body; proxy_temp_path FOLDER/nginx-proxy; fastcgi_temp_path FOLDER/nginx-fcgi; uwsgi_temp_path FOLDER/nginx-uwsgi; scgi_temp_path FOLDER/nginx-scgi;
            ssl_certificate FOLDER/server.crt;
            ssl_certificate_key FOLDER/server.key;
            sendfile on;
            default_type application/octet-stream;
            server {
        PUBLIC
                root FOLDER/www;
                autoindex on;
                location = /who { default_type text/plain; return 200 "$host by $server_protocol at $server_addr:$server_port, authorization $http_authorization\\n"; }
                location = /user { default_type application/json; if ($http_authorization != "Bearer TOKEN") { return 401 '{}'; } return 200 '{"login": "octocat"}'; }
                location = /away { return 302 https://evil.example/who; }
                location /repos/ { default_type text/plain; return 200 "$request_method $request_uri\\n"; }
                location /ws { proxy_pass http://127.0.0.1:9001; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_read_timeout 60s; }
                location ~ ^/repo\\.git/ {
                    include /etc/nginx/fastcgi_params;
                    fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
                    fastcgi_param GIT_HTTP_EXPORT_ALL "";
                    fastcgi_param GIT_PROJECT_ROOT FOLDER/git;
                    fastcgi_param PATH_INFO $uri;
                    fastcgi_pass unix:FOLDER/git.sock;
                }
            }
            server {
        PRIVATE
                location / { default_type text/plain; return 200 "credentials of the machine\\n"; }
            }
            server { listen CERT:443 ssl; ssl_certificate FOLDER/other.crt; ssl_certificate_key FOLDER/other.key; location / { return 200 "wrong name\\n"; } }
            server { listen CERT:8443 ssl; ssl_certificate FOLDER/expired.crt; ssl_certificate_key FOLDER/expired.key; location / { return 200 "expired\\n"; } }
            server { listen CERT:8444 ssl; ssl_certificate FOLDER/itself.crt; ssl_certificate_key FOLDER/itself.key; location / { return 200 "signed by itself\\n"; } }
            server { listen STRANGER:443 ssl; ssl_certificate FOLDER/stranger.crt; ssl_certificate_key FOLDER/stranger.key; location / { return 200 "unknown CA\\n"; } }
        }
    """).replace("TOKEN", TOKEN).replace("PUBLIC", public).replace("PRIVATE", private).replace("CERT:", address_of("cert.example") + ":").replace("STRANGER:", address_of("unknown-ca.example") + ":").replace("FOLDER", str(folder))


def haproxy_conf(folder):
    """HTTP/2 at one address for one.example and two.example, which is what a client may coalesce."""
    pem = folder / "server.pem"
    pem.write_text((folder / "server.crt").read_text() + (folder / "server.key").read_text())
    return textwrap.dedent(f"""
        defaults
            mode http
            timeout connect 10s
            timeout client 60s
            timeout server 60s
        frontend two
            bind {address_of("one.example")}:443 ssl crt {pem} alpn h2,http/1.1
            http-request return status 200 content-type text/plain lf-string "%[req.hdr(host)] over %[req.ver]\\n"
    """)


def git_repository(folder):
    work, bare = folder / "work", folder / "repo.git"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1",
           **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "tests"), ("EMAIL", "tests@example.org"), ("DATE", "2024-01-01T00:00:00Z"))}}

    def git(*argv):
        subprocess.run(["git", *map(str, argv)], check=True, capture_output=True, env=env)
    work.mkdir(parents=True)
    git("init", "-q", "-b", "main", work)
    (work / "README").write_text("a repository of the world\n")
    git("-C", work, "add", "README")
    git("-C", work, "commit", "-q", "-m", "first")
    git("clone", "-q", "--bare", work, bare)


def package_index(folder):
    """One wheel, as PEP 503 lists it."""
    import hashlib # pylint: disable=import-outside-toplevel # of this function alone
    import zipfile # pylint: disable=import-outside-toplevel
    folder = folder / "tiny"
    folder.mkdir(parents=True)
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("tiny.py", "answer = 42\n")
        made.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        made.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "index.html").write_text(f'<!DOCTYPE html><a href="{wheel.name}#sha256={digest}">{wheel.name}</a>\n')
