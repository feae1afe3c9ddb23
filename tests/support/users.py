"""Plain users: real unprivileged ids, in a mount namespace whose /etc/passwd, /etc/subuid and /etc/subgid are copies.

Nobody is added to the host. A process sleeps in the namespace as long as the tests need it; programs enter it
and become the user there. Places that a plain user may not reach (a checkout below /root, the tests' folders) are
shown to him where he can.
"""
import dataclasses
import os
import pathlib
import subprocess
import tempfile

from support import brig, host

MADE = """
set -e
umask 022
mount -t tmpfs -o mode=0755 users "$1"
cd "$1"
mkdir -p etc build profiles home run/user tests
for name in passwd group subuid subgid; do
    [ ! -e /etc/$name ] || cp /etc/$name etc/$name
    [ -e /etc/$name ] || continue
    case $name in sub*) printf '%s' "$3" >etc/$name ;; passwd) printf '%s' "$2" >>etc/$name ;; esac
    mount --bind etc/$name /etc/$name
done
mount --rbind "$4" build
cp "$5"/* profiles # a link in build/, to where a user may not go
chmod a+r profiles/*
mount --bind run /run
echo ready
exec sleep infinity
"""


@dataclasses.dataclass(frozen=True)
class User:
    name: str
    uid: int
    range: tuple = None # of subordinate ids: first and count

    @property
    def subids(self):
        return f"{self.name}:{self.range[0]}:{self.range[1]}\n" if self.range else ""


RANGES = 0x50000000 + 0x20000 * host.WORKER # of subordinate ids; nothing else on a host is near
PLAIN = User("brig-plain", host.own_id(0), (RANGES, 65536))
OTHER = User("brig-other", host.own_id(1), (RANGES + 0x10000, 65536))
BARE = User("brig-bare", host.own_id(2))
MODES = {"range": PLAIN, "single": BARE} # how a run of theirs gets its ids


class World:
    """The namespace. subids: the text of both files, when it shall not be what the users have."""

    def __init__(self, users=(PLAIN, OTHER, BARE), subids=None):
        self.users = users
        self.scratch = tempfile.TemporaryDirectory(prefix="users-")
        self.root = pathlib.Path(self.scratch.name)
        self.root.chmod(0o755)
        accounts = "".join(f"{u.name}:x:{u.uid}:{u.uid}::{self.root}/home/{u.name}:/bin/sh\n" for u in users)
        ranges = "".join(u.subids for u in users) if subids is None else subids
        argv = ["unshare", "--mount", "--propagation", "private", "bash", "-c", MADE, "users", str(self.root), accounts, ranges,
                str(host.build_dir()), str(host.REPO / "profiles")]
        self.holder = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            raise RuntimeError(self.holder.stderr.read().decode())
        for user in users:
            for place in (f"home/{user.name}", f"run/user/{user.uid}"):
                self.path(place).mkdir(mode=0o700)
                os.chown(self.path(place), user.uid, user.uid)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        self.holder.stderr.close()
        self.scratch.cleanup()

    def path(self, name):
        """A place of the namespace, from outside of it."""
        return pathlib.Path(f"/proc/{self.holder.pid}/root{self.root}", name)

    def enter(self, *argv):
        return ["nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--", *map(str, argv)]

    def change(self, script):
        """Something else for everybody in the namespace, as root."""
        subprocess.run(self.enter("sh", "-ec", script), check=True, capture_output=True)

    def as_user(self, user, *argv, flags=(), groups=()):
        """argv as that user, with his own environment."""
        env = [f"HOME={self.root}/home/{user.name}", f"PATH={os.environ['PATH']}", "LANG=C.UTF-8",
               f"BRIG_PRESETS={self.root}/profiles"]
        names = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
        return self.enter("setpriv", "--reuid", user.uid, "--regid", user.uid, *names, *flags, "env", "-i", *env, *argv)

    @property
    def binary(self):
        return self.root / "build" / "bin" / "brig"

    def runtime(self, user):
        """What a run leaves in the runtime directory."""
        return host.files_below(self.path(f"run/user/{user.uid}"))

    def program(self, text):
        """A file that every user can read; returns its path inside."""
        fd, path = tempfile.mkstemp(suffix=".py", dir=self.path("tests"))
        os.write(fd, text if isinstance(text, bytes) else text.encode())
        os.fchmod(fd, 0o644)
        os.close(fd)
        return self.root / "tests" / os.path.basename(path)

    def start(self, user, *options, program=None, args=(), verb="run", env=None, flags=(), groups=(), record=True, **popen):
        argv = [self.binary, verb, *(["--json"] if record else []), *options]
        if program is not None:
            argv.append(self.program(program))
        settings = [f"{name}={value}" for name, value in (env or {}).items()]
        return brig.Child(self.as_user(user, *settings, *argv, *args, flags=flags, groups=groups), **popen)

    def run(self, user, *options, timeout=host.HANG, input=None, popen=None, **kw):
        popen = dict(popen or {}, **({"stdin": subprocess.PIPE} if input is not None else {}))
        return self.start(user, *options, **kw, **popen).wait(timeout, input=input)

    def shell(self, user, script, **kw):
        """A line of shell as that user: the finished process."""
        return subprocess.run(self.as_user(user, "sh", "-c", script), capture_output=True, text=True, timeout=host.HANG, **kw)


def host_ids(pid):
    """The four uids of a process as the host sees them."""
    for line in host.read(f"/proc/{pid}/status").splitlines():
        if line.startswith("Uid:"):
            return tuple(map(int, line.split()[1:]))
    return ()
