"""The C programs that measure, as objects: what they are told and answer is in orders.h."""
import collections
import os
import pathlib
import shlex
import subprocess
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("BRIG_BUILD", REPO / "build"))
WARM_CLIENT, SPAWN_CLIENT = BUILD / "bench/warm_client", BUILD / "bench/spawn_client"

Took = collections.namedtuple("Took", "kind first record setup") # ms, None: not measured
Told = collections.namedtuple("Told", "runs cpu seconds") # cpu: seconds of the client's own


class Failed(Exception):
    """The client, or what it measured, in its own words."""


class Client:
    """One of them, waiting for orders. env is all that it has of an environment."""

    def __init__(self, argv, env):
        self.argv, self.after = [str(word) for word in argv], None # after: a function to be called when it has gone
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=env, text=True)

    def paced(self, rounds, pause_ms):
        return self.order(f"paced {rounds} {int(pause_ms * 1000)}")

    def sustained(self, seconds, parallel):
        return self.order(f"sustained {seconds} {parallel}")

    def order(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.words()) from None
        runs, cpu, took = [], 0, 0
        for line in self.process.stdout:
            kind, *figures = line.split()
            if kind == "done":
                return Told(runs, cpu / 1000, took / 1000)
            figures = [int(us) / 1000 if us != "-1" else None for us in figures]
            if kind == "cpu":
                cpu, = figures
            elif kind == "took":
                took, = figures
            else:
                runs.append(Took(kind, *figures))
        raise Failed(self.words())

    def said(self):
        """On its stderr, until now."""
        return " ".join(os.pread(self.errors.fileno(), 1 << 16, 0).decode(errors="replace").split())[:1500]

    def words(self):
        status = self.process.wait(10)
        return self.said() or f"status {status}: {shlex.join(self.argv)}"

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError: # it had ended with an order unread
            pass
        self.process.stdout.close()
        self.errors.close()
        try:
            self.process.wait(20) # what it was told last is carried out
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def service_client(socket, program, expect, *, profile, warm=True, keys="", bombs=(), bomb_keys=""):
    """Asks the service on a kept connection."""
    named = f'"profile":"{profile}"'
    argv = [WARM_CLIENT, "--keys", ",".join(filter(None, (named, keys)))]
    argv += ["--warm"] if warm else []
    argv += ["--bomb-keys", ",".join(filter(None, (named, bomb_keys)))] if bombs else []
    for path in bombs:
        argv += ["--bomb", path]
    return Client([*argv, program, expect], {"BRIG_SOCKET": str(socket)})


def process_client(argv, expect, env, *, opens=(), enter=""):
    """Starts whole processes. enter: shell commands in a mount namespace of its own, where they all are."""
    command = [SPAWN_CLIENT, *(word for fd, path in opens for word in ("--open", f"{fd}={path}")), expect, *argv]
    if enter:
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", enter + '\nexec "$@"', "sh", *command]
    return Client(command, env)
