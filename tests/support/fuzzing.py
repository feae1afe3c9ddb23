"""New bytes for a parser, as long as a test likes: `./dev fuzz TARGET`."""
import dataclasses
import os
import re
import resource
import subprocess

from support import host

TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in (host.REPO / "tests" / "fuzz").glob("fuzz_*.c"))
BUILD = 1800 # seconds that a test may take longer: the first one builds, and what reads a large corpus does not look at the clock


def seconds(usual):
    return int(os.environ.get("BRIG_FUZZ_SECONDS", usual))


@dataclasses.dataclass
class Outcome:
    target: str
    seconds: int
    cpu: float
    status: int
    text: str # what libFuzzer printed

    def last(self, pattern):
        found = re.findall(pattern, self.text)
        return found[-1] if found else "?"

    def found(self):
        """Paths of inputs that broke a promise."""
        return re.findall(r"Test unit written to (\S+)", self.text)

    def line(self):
        """A row of the table whose head is HEAD."""
        finding = self.last(r"promise broken: .*|SUMMARY: .*") if self.status else "none"
        return (f"{self.target:12} {self.last(r'number_of_executed_units: *([0-9]+)'):>12} {self.seconds:7} {self.cpu:7.0f} "
                f"{self.last(r' cov: ([0-9]+)'):>6}  {finding}")

    def check(self):
        inputs = "\n".join(f"try it: build/fuzz/tests/fuzz_{self.target} {path}" for path in self.found())
        assert self.status == 0, f"{self.line()}\n{inputs or 'no input was written'}\n{self.text[-4000:]}"


HEAD = f"{'target':12} {'executions':>12} {'wall s':>7} {'CPU s':>7} {'edges':>6}  findings"


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fuzz(target, how_long):
    before = cpu_seconds()
    done = subprocess.run(["./dev", "fuzz", target], cwd=host.REPO, env={**os.environ, "FUZZ_SECONDS": str(how_long)},
                          capture_output=True, text=True, errors="replace")
    return Outcome(target, how_long, cpu_seconds() - before, done.returncode, done.stderr)
