"""What runs in which guest: one row per boot, and in it one part per way of running brig there."""
import os

SLOWER = 10 # by so much the guest's tests wait longer
SILENCE = 300 # seconds without a word after which a guest is lost

LEAKS = {"BRIG_LEAK_RUNS": os.environ.get("BRIG_LEAK_RUNS", "50")}


def part(name, tests, through=(), env=None):
    """`through` is put before the command line: it decides who runs the tests and in which control group."""
    return {"name": name, "tests": tests, "through": list(through), "env": env or {}}


def as_user(name, *how):
    """A user's own systemd starts the tests, in a service of theirs unless `how` says --scope."""
    return ["systemd-run", "--quiet", "--wait", "--pipe", "-M", f"{name}@", "--user", *how, "--"]


GUESTS = {
    "systemd": {
        "boot": "systemd.unit=brig-tests.target",
        "parts": [
            part("root in a service", ["tests/escape", "tests/cli/test_run_status.py", "tests/cli/test_program_view.py"], env=LEAKS),
        ],
    },
    "bare": {
        "boot": "init=/usr/lib/brig-guest/init brig-tests",
        "parts": [part("root", ["tests/cli/test_run_status.py"])],
    },
}
