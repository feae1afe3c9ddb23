"""Starts the built brig and reads what it says."""
import dataclasses
import fcntl
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import time

from support import host, runs

KEEP = ("PATH", "HOME", "LANG", "BRIG_STORE", "BRIG_PROFILES", "BRIG_PRESETS")
numbers = itertools.count(1)
SCRATCH = tempfile.TemporaryDirectory(prefix="brig-test-") # removed when the tests end


def binary():
    return host.build_dir() / "bin" / "brig"


@dataclasses.dataclass
class Run:
    argv: list
    status: int       # 128 + n when a signal ended brig itself is -n here, as subprocess has it
    stdout: str
    stderr: str
    seconds: float
    record: dict      # None unless --json printed one

    @property
    def out(self):
        """What the program wrote, whichever way it came."""
        return self.record["stdout"] if self.record else self.stdout

    @property
    def reason(self):
        return self.record["exit_reason"] if self.record else None

    def __str__(self):
        return (f"{' '.join(map(str, self.argv))}\n  status {self.status} after {self.seconds:.2f} s\n"
                + (f"  record {json.dumps(self.record)[:3000]}\n" if self.record else f"  stdout {self.stdout[-1500:]!r}\n")
                + f"  stderr {self.stderr[-1500:]!r}")


def environment(extra=None):
    """Where runs are warm they are those of the session's service, but for whoever names a socket, profiles or a store of his own."""
    extra = extra or {}
    env = {name: os.environ[name] for name in KEEP if name in os.environ}
    socket = None if extra.keys() & {"BRIG_SOCKET", "BRIG_PROFILES", "BRIG_PRESETS", "BRIG_STORE"} else runs.SESSION.socket()
    env.update({"BRIG_SOCKET": socket and str(socket), **extra})
    return {name: value for name, value in env.items() if value is not None}


def command(*options, verb="run", program=None, file=None, args=(), json_record=True, folder=None):
    argv = [str(binary()), verb, *map(str, options)]
    if json_record and "--json" not in argv:
        argv.insert(2, "--json")
    if program is not None:
        folder = pathlib.Path(folder or SCRATCH.name)
        file = folder / f"program-{next(numbers)}.py"
        if isinstance(program, str):
            program = program.encode()
        file.write_bytes(program)
    if file is not None:
        argv.append(str(file))
    return argv + [str(a) for a in args]


class Child:
    """A brig that runs in the background."""

    def __init__(self, argv, env=None, **popen):
        self.argv, self.began = argv, time.monotonic()
        popen.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env), **popen)
        self.pid = self.process.pid
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe: # a test may look at brig until it ends and read only then: a record must fit
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def line(self):
        """The next line of the program's output; blocks."""
        return self.process.stdout.readline().decode(errors="replace").strip()

    def wait(self, timeout=host.HANG, input=None):
        try:
            out, err = self.process.communicate(input=input, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.rest()
            err += f"\n[the test killed brig after {timeout:g} s]".encode()
        seconds = time.monotonic() - self.began
        out, err = out.decode(errors="replace"), err.decode(errors="replace")
        return Run(self.argv, self.process.returncode, out, err, seconds, parse(out) if "--json" in self.argv else None)

    def rest(self):
        """What is left in the pipes of a killed brig; a cell that outlives it may hold them open."""
        try:
            return self.process.communicate(timeout=2)
        except subprocess.TimeoutExpired as e:
            return e.stdout or b"", (e.stderr or b"") + b"\n[somebody still holds brig's output open]"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()


def parse(text):
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return runs.SESSION.saw(record) if isinstance(record, dict) else None


def start(*options, env=None, popen=None, **kw):
    return Child(command(*options, **kw), env=env, **(popen or {}))


def run(*options, timeout=host.HANG, input=None, **kw):
    """One brig run from start to end."""
    if input is not None:
        kw["popen"] = {**kw.get("popen", {}), "stdin": subprocess.PIPE}
    return start(*options, **kw).wait(timeout, input=input)
