"""I6: each call of the set-up is made to fail once; no program may then run with less around it than was promised."""
import collections
import json
import re
import subprocess

import pytest

from support import brig, host

# Calls that build the cell. Not among them: what Python itself goes on to call by the dozen.
CALLS = """
clone3 clone unshare setns mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount mount_setattr setresuid setresgid setgroups
capset prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self keyctl sethostname setsid close_range memfd_create
socketpair sendmsg sendto pidfd_open fchown fchmod mkdirat execveat setrlimit
""".split()
HARMLESS = {
    # call: why the program may run all the same
    "landlock_create_ruleset": "landlock is used where the kernel has it; the record then says missing:landlock",
    "sendmsg": "the last message is the record itself: the program has run by then",
}
PROGRAM = "import os\nopen('/workspace/ran', 'w')\nprint('ran')\n"
ATTEMPTS = 60 # of one call, at most


def trace(folder, *inject, profile="basic"):
    """One run under strace; (CompletedProcess, lines of the trace)."""
    program, log = folder / "program.py", folder / "strace.log"
    program.write_text(PROGRAM)
    argv = ["strace", "-f", "-qq", "-o", log, *inject, brig.binary(), "run", "-p", profile, "--json", "--timeout", str(5 * host.SLOWER), program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30 * host.SLOWER, env=brig.environment(), stdin=subprocess.DEVNULL)
    return done, log.read_text(errors="replace").splitlines()


@pytest.fixture(scope="module")
def counts(jail, brig, tmp_path_factory):
    """How often one process makes each call, at most."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    made = collections.defaultdict(collections.Counter)
    for line in trace(tmp_path_factory.mktemp("count"))[1]:
        found = re.match(r"(\d+) +(\w+)\(", line)
        if found:
            made[found[2]][found[1]] += 1
    return {call: max(processes.values()) for call, processes in made.items()}


@pytest.mark.row("I6")
@pytest.mark.parametrize("call", CALLS)
def test_no_program_runs_when_a_call_fails(call, counts, tmp_path):
    """Status 125, a record that says setup_failed or denied, one line that names the step."""
    if call not in counts:
        return # not called on this kernel
    for n in range(1, min(counts[call], ATTEMPTS) + 1):
        done, log = trace(tmp_path, "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM:when={n}")
        record = brig.parse(done.stdout)
        injected = [line[:140] for line in log if "INJECTED" in line]
        story = f"{call}, time {n}: status {done.returncode}, stderr {done.stderr[-300:]!r}\n  record {json.dumps(record)[:400]}\n  {injected[:4]}"
        if not injected or record and record["exit_reason"] == "exited" and call in HARMLESS:
            continue
        if call in HARMLESS and done.returncode == 143:
            continue
        assert "ran" not in ((record or {}).get("stdout") or ""), f"the program ran\n  {story}"
        assert done.returncode == 125 and record and record["exit_reason"] in ("setup_failed", "denied"), story


@pytest.mark.row("I6")
def test_strict_refuses_a_kernel_that_refuses_landlock(counts, tmp_path):
    done, _ = trace(tmp_path, "-e", "trace=landlock_create_ruleset", "-e", "inject=landlock_create_ruleset:error=EPERM", profile="strict")
    assert done.returncode == 125 and "landlock" in done.stderr + done.stdout, done


@pytest.mark.control("I6")
def test_control_the_program_runs_when_nothing_fails(counts, tmp_path):
    done, _ = trace(tmp_path, "-e", "trace=pivot_root", "-e", "inject=pivot_root:error=EPERM:when=50")
    assert done.returncode == 0 and brig.parse(done.stdout)["stdout"] == "ran\n", done
