"""What benches of a service share: its profiles, waiting for its Pythons, which machine it was, and where tables go."""
import json
import os
import pathlib
import contextlib
import shutil
import signal
import sys
import tempfile
import time

import clients
import lib

REPO = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPO / "tests"))

from support import host  # noqa: E402


def profiles(folder, wanted, alone=False):
    """The shipped `basic` (not when alone), and those that are wanted: name: (shipped one, keys that differ)."""
    made = folder / "profiles"
    shutil.copytree(REPO / "profiles", made)
    shipped = {path.stem: json.loads(path.read_text()) for path in made.glob("*.json")}
    for path in made.glob("*.json"):
        if alone or path.stem != "basic":
            path.unlink()
    for name, (base, keys) in wanted.items():
        (made / f"{name}.json").write_text(json.dumps({**shipped[base], **keys}))
    for path in (folder, made):
        path.chmod(0o755)
    return made


@contextlib.contextmanager
def scratch(name):
    """A folder for a bench, which ends it by way of every finally when it is asked to, and in one line when a client or a service fails."""
    def ended(number, _):
        sys.exit(f"bench {name}: ended by {signal.Signals(number).name}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended)
    with tempfile.TemporaryDirectory(prefix="brig-bench-", ignore_cleanup_errors=True) as folder:
        path = pathlib.Path(folder)
        path.chmod(0o755) # users of the jails have to reach the bundles
        try:
            yield path
        except (clients.Failed, RuntimeError) as e: # the latter: no service could be started
            sys.exit(f"bench {name}: {e}")


def wait_warm(daemon, names):
    """Until every profile has its Python: before that runs are cold, and imports would be measured beside them."""
    daemon.settle()
    for name in names:
        if not host.poll(lambda: daemon.run("pass", profile=name).record["warm"], 60, every=0.1):
            raise RuntimeError(f"runs of {name} stay cold\n{daemon.words()}")


class CpuOf:
    """CPU time of a service, its jails and what the kernel does for them. through: words before the service's own, which put it into a group of version 1.
    Where there is none it is the CPU time of the whole machine, less what it uses without runs: only a quiet one can be measured so."""

    def __init__(self, name):
        top = pathlib.Path("/sys/fs/cgroup/cpuacct")
        self.group = top / f"brig-bench-{os.getpid()}-{name}" if (top / "tasks").exists() else None
        self.through, self.idle = [], 0
        if self.group:
            self.group.mkdir(exist_ok=True)
            self.through = ["sh", "-c", 'echo 0 >"$0"/tasks && exec "$@"', self.group]

    def ms(self):
        if self.group:
            return int((self.group / "cpuacct.usage").read_text()) / 1e6
        idle, whole = lib.idle_and_all()
        return (whole - idle) * 1000 / os.sysconf("SC_CLK_TCK")

    def of(self, work, seconds_after=0.25):
        """What work() returns, and the CPU ms meanwhile and shortly after it: the cells after the last runs belong to it."""
        began, before = time.monotonic(), self.ms()
        done = work()
        time.sleep(seconds_after)
        return done, self.ms() - before - self.idle * (time.monotonic() - began)

    def learn_idle(self, seconds=1):
        if not self.group:
            before = self.ms()
            time.sleep(seconds)
            self.idle = (self.ms() - before) / seconds

    def close(self):
        if self.group and not host.poll(self.removed, 10):
            print(f"{self.group} is left", file=sys.stderr)

    def removed(self):
        for folder, _, _ in os.walk(self.group, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return True


def machine():
    model = next((line.split(":")[1].strip() for line in host.read("/proc/cpuinfo").splitlines() if line.startswith("model name")), "unknown CPU")
    return f"{model}, {host.cpus()} CPUs, Linux {os.uname().release}, cgroup {'v1' if 'cgroup' in host.kinds_of_groups() else 'v2'}"


def place(ms, share):
    """Empty when there are so few that it would be the slowest of them."""
    return f"{lib.percentile(ms, share):.2f}" if len(ms) * (1 - share) >= 1 else ""


def write_table(path, text, marks):
    """Between its two marks, where a file has them. "-": to stdout."""
    if path == "-":
        return print(text)
    before = host.read(path)
    if marks[0] in before and marks[1] in before:
        text = f"{before.split(marks[0])[0]}{marks[0]}\n{text}{marks[1]}{before.split(marks[1])[1]}"
    pathlib.Path(path).write_text(text)
