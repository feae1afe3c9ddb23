"""Starts the built brigd in a folder of its own, finds its processes and what they hold."""
import contextlib
import functools
import json
import os
import pathlib
import pwd
import re
import secrets
import signal
import socket
import subprocess
import tempfile
import threading
import time

from support import brig, client, host


def binary(name="brigd"):
    return host.build_dir() / "bin" / name


def lacks_binaries(*names):
    return next((f"{binary(name)} is missing: ./dev build" for name in names or ("brigd",) if not binary(name).exists()), None)


NO_IDS = "all blocks of host ids are taken"
ACCOUNTS = {"_brig-keeper": host.own_id(3), "_brig-door": host.own_id(4)} # packaging makes them
WITH_ACCOUNTS = """
for name in passwd group; do
    mount --bind "$1/$name" /etc/$name
done
shift
exec "$@"
"""


@functools.lru_cache(maxsize=None)
def with_accounts():
    """What a command begins with to have the service's accounts: they are put into copies that only it sees. Without them two services of root
    would each take the locks and control groups that they share."""
    if all(has_account(name) for name in ACCOUNTS):
        return ()
    folder = pathlib.Path(brig.SCRATCH.name, "etc")
    folder.mkdir()
    (folder / "passwd").write_text(host.read("/etc/passwd") + "".join(f"{name}:x:{id_}:{id_}::/:/usr/sbin/nologin\n" for name, id_ in ACCOUNTS.items()))
    (folder / "group").write_text(host.read("/etc/group") + "".join(f"{name}:x:{id_}:\n" for name, id_ in ACCOUNTS.items()))
    return ("unshare", "--mount", "--propagation", "private", "sh", "-ec", WITH_ACCOUNTS, "sh", str(folder))


def has_account(name):
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


@contextlib.contextmanager
def audit_log():
    """Where the server of root's service may write."""
    with tempfile.TemporaryDirectory(prefix="brig-test-") as top:
        os.chmod(top, 0o711)
        folder = pathlib.Path(top, "logs")
        folder.mkdir()
        os.chown(folder, ACCOUNTS["_brig-door"], -1)
        yield folder / "log"


class Daemon:
    """`brigd --foreground`: ready when the constructor returns. config: a dict, or None for no file."""

    def __init__(self, config=None, *, options=(), env=None, through=None, stderr=None, folder=None, wait=True):
        self.scratch = None if folder else tempfile.TemporaryDirectory(prefix="brig-test-daemon-")
        self.folder = pathlib.Path(folder or self.scratch.name)
        self.folder.chmod(0o755)
        self.path, self.config = self.folder / "brig.sock", self.folder / "brig.json"
        self.options, self.env, self.through, self.wanted_stderr = list(options), dict(env or {}), through, stderr
        if config is not None:
            self.configure(config)
        self.process, self.said, self.reader = None, bytearray(), None
        self.supervisors = {} # by profile
        try:
            self.start(wait)
        except BaseException:
            self.close()
            raise

    def configure(self, config):
        self.config.write_text(config if isinstance(config, str) else json.dumps(config))
        self.config.chmod(0o644)

    def command(self):
        through = with_accounts() if self.through is None else self.through
        argv = [*through, binary(), "--foreground", "--socket", self.path]
        if self.config.exists():
            argv += ["--config", self.config]
        return [str(word) for word in [*argv, *self.options]]

    def start(self, wait=True):
        """A host has ids for four services: who runs his own beside these tests is waited for."""
        end = time.monotonic() + host.HANG
        while True:
            try:
                return self.start_once(wait)
            except RuntimeError:
                if NO_IDS not in self.words() or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def start_once(self, wait):
        self.said.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            path = self.folder / "notify"
            path.unlink(missing_ok=True)
            told.bind(str(path))
            path.chmod(0o777)
            env = brig.environment({"BRIG_SOCKET": None, "NOTIFY_SOCKET": str(path), "LANG": "C.UTF-8", **self.env})
            stderr = subprocess.PIPE if self.wanted_stderr is None else self.wanted_stderr
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=env)
            self.pid = self.process.pid
            if stderr == subprocess.PIPE:
                self.reader = threading.Thread(target=self.read_stderr, args=(self.process.stderr,), daemon=True)
                self.reader.start()
            if wait:
                self.wait_ready(told)

    def read_stderr(self, pipe):
        with pipe:
            for data in iter(lambda: os.read(pipe.fileno(), 65536), b""):
                self.said += data

    def wait_ready(self, told):
        told.settimeout(0.1)
        end = time.monotonic() + host.HANG
        while time.monotonic() < end:
            try:
                if b"READY=1" in told.recv(4096).split(b"\n"):
                    return
            except TimeoutError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"brigd ended with status {self.process.returncode} before it was ready:\n{self.words()}")
        raise RuntimeError(f"brigd is not ready after {host.HANG:g} s:\n{self.words()}")

    def words(self):
        """What it has written to its standard error."""
        if self.process.poll() is not None and self.reader:
            self.reader.join(host.HANG)
        return self.said.decode(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def ends(self, seconds=host.HANG):
        """Waits; the status, or None when it is still there."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self, number=signal.SIGTERM):
        """Its status; None when it did not end and had to be killed."""
        if self.process is None:
            return None
        if self.alive():
            self.process.send_signal(number)
        status = self.ends()
        if status is None:
            self.kill_all()
        return status

    def restart(self):
        self.stop()
        self.start()

    def kill_all(self):
        """Everything of it at once, as when a machine's memory is short. The dead keep their control groups until the host has reaped them."""
        pids = [self.pid, *self.below()]
        for number in signal.SIGSTOP, signal.SIGKILL: # or who is killed last cleans up after the others
            for pid in pids:
                kill(pid, number)
        self.process.wait()
        host.poll(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))

    def close(self):
        if self.process is not None:
            self.stop()
        if self.reader:
            self.reader.join(host.HANG)
        if self.scratch:
            self.scratch.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # --- talking ---

    def connect(self, timeout=host.HANG):
        return client.Client.at(self.path, timeout)

    def connect_as(self, uid, **kw):
        return client.connect_as(self.path, uid, **kw)

    def run(self, program, **keys):
        """One run on a connection of its own."""
        with self.connect() as talk:
            return talk.run(program, **keys)

    def settle(self):
        """Until no cell is being built: what it holds now is what it holds when nothing happens."""
        def settled():
            return self.of_kind("init") and len(self.of_kind("monitor")) == 1
        assert host.poll(settled), f"{self.tree()}\n{self.words()}"
        host.poll(self.has_leases) # a cell may have none, and is asked by the monitor

    def rest(self):
        """The processes that stay, when they have held as many descriptors for half a second: cells are made anew a moment after a run, and the monitor
        holds some of each."""
        pids, seen = [pid for pids in self.roles().values() for pid in pids], []

        def is_steady():
            seen.append([lasting_descriptors(pid) for pid in pids])
            return seen[-25:] == [seen[-1]] * 25
        self.settle()
        host.poll(is_steady, every=0.02)
        return pids

    def has_leases(self):
        """The zygotes stand, and the server may use each cell that stands ready for their forks."""
        try:
            with self.connect() as talk:
                profiles = talk.ask("stats")["profiles"]
        except (client.Refused, client.Closed, OSError): # not ours to know
            return True
        warm = [one for one in profiles if one["zygote"] and one["zygote"]["state"] != "none"]
        return all(one["zygote"]["state"] == "serving" and one["ready"] and one["tickets"] >= one["ready"] for one in warm) and not any(one["building"] for one in profiles)

    def has_all_leases(self, profile, ready):
        """As many cells stand as the profile wants, and the server may use each of them. `settle` cannot know how many that is."""
        with self.connect() as talk:
            told = next(one for one in talk.ask("stats")["profiles"] if one["name"] == profile)
        return (told["ready"], told["building"], told["tickets"]) == (ready, 0, ready)

    # --- its processes ---

    def below(self, pid=None):
        """Every process under it, parents first."""
        return host.below(pid or self.pid)

    def of_kind(self, kind):
        """server, monitor, supervisor, zygote, init: pids, oldest first."""
        return [pid for pid in [self.pid, *self.below()] if kind_of(pid) == kind]

    def roles(self):
        """The processes that stay. A PID 1 and a zygote are born with their supervisor's name, but are never children of the monitor's."""
        monitors = self.of_kind("monitor")
        supervisors = [pid for monitor in monitors for pid in host.children(monitor) if kind_of(pid) == "supervisor"]
        return {"server": self.of_kind("server"), "monitor": monitors, "supervisor": supervisors}

    def supervisor_of(self, profile="basic"):
        """The parent of its programs: found with a run, and remembered as long as it is there."""
        known = self.supervisors.get(profile)
        if known is None or kind_of(known) != "supervisor":
            seconds = str(600 + secrets.randbelow(1 << 30))
            with self.connect() as talk:
                run = talk.start_command("sleep", seconds, profile=profile)
                (program, _), *_ = host.poll(lambda: host.with_token(seconds))
                self.supervisors[profile] = host.parent(program)
                talk.ask("cancel", run=run.id)
                run.finish()
        return self.supervisors[profile]

    def one(self, kind):
        found = self.of_kind(kind)
        assert found, f"no {kind} among {self.tree()}"
        return found[0]

    def tree(self):
        return {pid: (kind_of(pid), host.read(f"/proc/{pid}/comm").strip()) for pid in [self.pid, *self.below()]}


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def link_of(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def kind_of(pid):
    """What a process of the daemon is: by its name, but for a cell's PID 1, which has that of its supervisor until there is a program for it."""
    if host.number_inside(pid) == 1:
        return "init"
    comm = host.read(f"/proc/{pid}/comm").rstrip("\n")
    return "server" if comm == "brigd" else comm.removeprefix("brig-")


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def descriptors(pid):
    return len(listed(f"/proc/{pid}/fd"))


ORDER_FILE = "/memfd:order" # of a cell that waits for a program; by it rows below and programs() of support.service tell what is kept for later from what is in use
OF_CELL = 56 # a supervisor holds no more descriptors for one place, with or without a cell
SPARE = re.compile(ORDER_FILE + r"|net:\[|/proc/[0-9]+/net/(sockstat|dev)$|.*/cell-[0-9]+$")


def open_files(pid):
    """What its descriptors lead to."""
    held = []
    for fd in listed(f"/proc/{pid}/fd"):
        try:
            held.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError: # closed meanwhile
            pass
    return held


def lasting_descriptors(pid):
    """Without descriptors that are kept for later runs, whose number changes: leases (7 each, with one order file), networks,
    places that are used again (of the monitor: groups and a socket each), and a supervisor's cells. The name of a group that was
    removed does not match SPARE."""
    held = open_files(pid)
    lasting = len(held) - sum(bool(SPARE.match(path)) for path in held)
    places = {path.rpartition("/")[2] for path in held if "/cell-" in path and SPARE.match(path)}
    if kind_of(pid) == "supervisor":
        return max(0, lasting - OF_CELL * max(len(places), sum(kind_of(child) == "init" for child in host.children(pid))))
    return lasting - 6 * sum(path.startswith(ORDER_FILE) for path in held) - (len(places) if kind_of(pid) == "monitor" else 0)


def resident(pid):
    """Bytes of its memory that are not shared with a file."""
    for line in host.read(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid):
    """User and system time of a process alone, to the nanosecond where the kernel says so."""
    exact = host.read(f"/proc/{pid}/schedstat").split()
    if exact:
        return int(exact[0]) / 1e9
    fields = host.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


class Private:
    """`brigd --private`: serves one connection, with our own rights, and ends when that closes."""

    def __init__(self, env=None, stderr=subprocess.DEVNULL):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        with theirs:
            argv = [str(binary()), "--private", "--fd", str(theirs.fileno())]
            self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=stderr, env=brig.environment({"BRIG_SOCKET": None, **(env or {})}))
        self.client = client.Client(ours)
        self.pid = self.process.pid

    def connect(self):
        return self.client

    def ends(self, seconds=host.HANG):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def close(self):
        self.client.close()
        if self.ends() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
