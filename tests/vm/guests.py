"""What runs in which guest: a boot has parts, one after the other, one per way of running brig there.

To add tests: put them into a part, or add one. Tests that need what the other host lacks say so with a skip.
"""
import os

SLOWER = 10   # by so much whoever waits in a guest waits longer
SILENCE = 300 # seconds without a word after which a guest is lost

LEAKS = {"BRIG_LEAK_RUNS": os.environ.get("BRIG_LEAK_RUNS", "50")}
IDS = {"plain": 1000, "bare": 1001} # users of the guests: with and without subuids


def part(name, tests, through=(), user=None, env=None):
    """`tests` is pytest's command line; `through` is put before it, and decides about the control group."""
    return {"name": name, "tests": tests, "through": [*login(user), *through], "user": user, "env": env or {}}


def login(user):
    """In a service of the user's own systemd, which has a bus and a runtime directory. With --scope in `through` it becomes a scope of theirs."""
    if not user:
        return []
    runtime = f"XDG_RUNTIME_DIR=/run/user/{IDS[user]}"
    return ["runuser", "-u", user, "--", "env", "-u", "DBUS_SESSION_BUS_ADDRESS", runtime, "systemd-run", "--user", "--quiet", "--wait", "--pipe", "--"]


DELEGATED = ["systemd-run", "--user", "--scope", "--quiet", "-p", "Delegate=yes", "--"]

# What takes minutes in a guest, or a machine that is not as slow; --deselect takes the beginning of a name.
LEFT_OUT = [f"--ignore=tests/escape/{name}.py" for name in ("test_faults", "test_failing_steps", "test_table")] + [f"--deselect=tests/escape/{name}" for name in (
    "test_attack.py::test_control_a_hundred_connections", # the buffers of TCP do not fill in time
    "test_lifetime.py::test_two_thousand_orphans",
    "test_exhaustion.py::test_network_namespaces_are_gone", # two hundred runs
    "test_exhaustion.py::test_looking_up_missing_names",
    "test_probes.py::test_jail[A21", "test_probes.py::test_control[A21", # 160 calls, a process for each
    "test_probes.py::test_control[A9", # loads a kernel module for each family
)]
FAULTS = [f"tests/escape/test_failing_steps.py::test_a_step_that_fails_starts_no_program[{step}]" for step in ("join-groups", "die-with-launcher")]

HELLO = "tests/cli/test_examples.py"
USER = [HELLO, "tests/groups/test_user.py", "tests/groups/test_user_place.py"]

GUESTS = {
    "systemd": {
        "boot": "systemd.unit=brig-tests.target",
        "parts": [
            part("root", [HELLO, "tests/groups", "tests/cli/test_run_status.py", "tests/cli/test_record.py", "tests/cli/test_program_view.py", "tests/escape",
                          *LEFT_OUT], env=LEAKS),
            part("root, faults", FAULTS),
            part("plain", USER, user="plain"),
            part("bare", USER, user="bare"),
            part("plain, of no systemd", [HELLO, "tests/groups/test_user.py"], through=["runuser", "-u", "plain", "--"]),
        ],
    },
    "bare": { # cgroup v2 and nobody who manages it
        "boot": "init=/usr/lib/brig-guest/init brig-tests",
        "parts": [part("root", [HELLO, "tests/groups", "tests/cli/test_run_status.py"])],
    },
}
