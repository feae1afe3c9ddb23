"""The brigd of a host that systemd runs: its units, its processes, and its clients of several users."""
import json
import os
import pathlib
import pwd
import subprocess

from support import daemon, host, runs

UNIT, SOCKET, SLICE = "brigd.service", "brigd.socket", "brig.slice"
GROUP = pathlib.Path("/sys/fs/cgroup/brig.slice/brigd.service")
GROUP_V1 = pathlib.Path("/sys/fs/cgroup/systemd/brig.slice/brigd.service")
BRIG = "/usr/local/bin/brig"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MEMBER, STRANGER = "plain", "bare" # in the group brig, and not


def lacks():
    """None when there is one to test, else the reason to print for a skip."""
    if os.geteuid() != 0 or host.read("/proc/1/comm").strip() != "systemd" or not os.path.exists("/usr/local/sbin/brigd"):
        return "needs root, systemd as init and an installed brigd: ./dev test nightly guests"
    return None


def systemctl(*args, check=False):
    return subprocess.run(["systemctl", *args], capture_output=True, text=True, check=check)


def show(what, unit=UNIT):
    return systemctl("show", "--value", "-p", what, unit).stdout.strip()


def reload(**drop_in):
    """reload(NAME="text", ...): drop-ins of the service, for this boot; "" removes one."""
    folder = pathlib.Path(f"/run/systemd/system/{UNIT}.d")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in drop_in.items():
        if text:
            (folder / f"{name}.conf").write_text(f"[Service]\n{text}\n")
        else:
            (folder / f"{name}.conf").unlink(missing_ok=True)
    systemctl("daemon-reload", check=True)


def begin_anew():
    """The socket listens, the service is not running, and nothing of before counts."""
    systemctl("stop", UNIT, SOCKET)
    systemctl("reset-failed", UNIT, SOCKET)
    systemctl("start", SOCKET, check=True)


def journal(*args, lines=1000):
    done = subprocess.run(["journalctl", "--no-pager", "-q", "-n", str(lines), *args], capture_output=True, text=True, check=True)
    return done.stdout


# --- clients ---

def as_user(name):
    """For subprocess: the process itself is the user's, so that it can be killed."""
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(name, entry.pw_gid), "cwd": "/",
            "env": {"PATH": PATH, "HOME": entry.pw_dir, "LANG": "C.UTF-8"}}


def brig(user, *args, stdin=""):
    return subprocess.run([BRIG, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=host.HANG, **as_user(user))


def run(user, program, *options):
    """The record of a program that came from standard input."""
    done = brig(user, "run", "--json", *options, "-", stdin=program)
    assert done.stdout, done.stderr
    return runs.SESSION.saw(json.loads(done.stdout))


class Running:
    """A program that does something, says "here" and stays, in a run of a user."""

    def __init__(self, user=MEMBER, token="", options=(), first=""):
        self.token = token
        program = f'{first}\nimport time\nprint("here", flush=True)\ntime.sleep(600)\n# {token}\n'
        self.process = subprocess.Popen([BRIG, "run", "--timeout", "300", *options, "-"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **as_user(user))
        self.process.stdin.write(program)
        self.process.stdin.close()
        self.process.stdin = None
        line = self.process.stdout.readline()
        if line != "here\n":
            raise AssertionError(f"the program did not begin: {line!r} {self.process.stderr.read()}")

    def ends(self):
        """(status, what was said on standard error)."""
        _, said = self.process.communicate(timeout=host.HANG)
        return self.process.returncode, said

    def close(self):
        self.process.kill()
        self.process.communicate()


# --- processes ---

def below(group=None):
    """Every process of the service, by its control groups. Cells may end meanwhile: os.walk() passes over what has gone."""
    group = group or (GROUP if GROUP.exists() else GROUP_V1)
    return [int(pid) for folder in sorted(folder for folder, _, _ in os.walk(group)) for pid in host.read(f"{folder}/cgroup.procs").split()]


def status(pid):
    lines = host.read(f"/proc/{pid}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def check_unprivileged(pid):
    """A dynamic user of systemd, without capabilities, under a filter."""
    has = status(pid)
    assert 61184 <= int(has["Uid"].split()[0]) <= 65519, "not one of systemd's passing accounts"
    assert {has[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {f"{0:016x}"}
    assert has["NoNewPrivs"] == "1" and has["Seccomp"] == "2"


def server():
    return int(show("MainPID"))


def words(pid):
    return host.read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()


def monitor():
    found = [pid for pid in below() if words(pid).startswith("brig-monitor")]
    assert found, f"no monitor among {[(pid, words(pid)) for pid in below()]}"
    return found[0]


def ids(user):
    entry = pwd.getpwnam(user)
    return entry.pw_uid, entry.pw_gid


def programs():
    """Programs in jails: (pid, host uid). A fork that stands ready is none yet."""
    return [(int(pid), int(uid)) for pid, comm, uid in left() if comm.startswith("python") and not waits(pid)]


def waits(pid):
    """It holds the memory file that its program will be in."""
    return any(daemon.link_of(f"/proc/{pid}/fd/{fd}").startswith(daemon.ORDER_FILE) for fd in daemon.listed(f"/proc/{pid}/fd"))


FIRST_OF_JAILS = 1879048192 # id_range.h: where a host has no subordinate ids of brig


def left():
    """Processes of jails and of the service, wherever they are."""
    found = []
    accounts = {ids(name)[0] for name in ("_brig-door", "_brig-keeper")}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        uids = status(pid).get("Uid", "").split()
        if uids and (int(uids[0]) in accounts or int(uids[0]) >= FIRST_OF_JAILS):
            found.append((pid, host.read(f"/proc/{pid}/comm").strip(), uids[0]))
    return found
