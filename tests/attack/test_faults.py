"""I6: each call of a run is made to fail. Before the program starts it must not start then; later the record must stay honest.

The fast tier fails a dozen calls of each process, the full one each call of a trace once (on a slow host each second or third), with its
errnos in turn; the long one with every errno of its class.
"""
import collections
import subprocess

import pytest

import faults
from support import brig, host, tiers

pytestmark = pytest.mark.private("its calls are traced from brig to program, one process below the other")

PROGRAM = "print('ran')\n"


@pytest.fixture(scope="module")
def order(jail, tmp_path_factory):
    """(program, options): a run that uses every kind of descriptor."""
    folder = tmp_path_factory.mktemp("faults")
    program, text = folder / "program.py", folder / "input"
    program.write_text(PROGRAM)
    text.write_text("input\n")
    (folder / "shown").mkdir()
    return program, "--ro", folder / "shown", "--stdin", text


def called(order):
    """What a run calls on this kernel."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    found = faults.traced(*order)
    for _ in range(10): # until two runs agree: cells that still stand shift the count
        before, found = found, faults.traced(*order)
        if [call[:3] for call in before] == [call[:3] for call in found]:
            break
    assert {call.role for call in found} == faults.roles_of(order)
    return found


@pytest.fixture(scope="module")
def calls(order):
    return called(order)


@pytest.fixture(scope="module")
def network(order):
    """(program, options): one that may reach a host by TLS, so that its cell has sockets, and a CA."""
    return order[0], "--net", "https://a.example/path/"


@pytest.fixture(scope="module")
def network_calls(network):
    return called(network)


def attempted(call, error, order):
    """What is wrong stays wrong; a cell that still stands, and shifts the count of calls, goes away."""
    for _ in range(3):
        attempt = faults.Attempt(call, error, *order)
        if not attempt.complaint():
            break
    return attempt


def bad_ends(attempts, order):
    """Fails one call after the other; what is wrong with how the runs ended."""
    bad, before, reached = [], host.abandoned_groups(), collections.Counter()
    for call, error in attempts:
        attempt = attempted(call, error, order)
        left = host.abandoned_groups() - before
        if left and "left behind: control group" not in attempt.stderr and not host.poll(lambda: not left & host.abandoned_groups()):
            bad.append(f"left behind {left}: {attempt}")
        if attempt.complaint():
            bad.append(f"{attempt.complaint()}: {attempt}")
        reached[call.name] += attempt.failed
    always = {call.name for call, _ in attempts if call.nth == 1} # how often an event is waited for differs from run to run
    return bad + [f"{name} was never reached" for name, times in reached.items() if not times and name in always]


def check(attempts, order):
    before = host.Snapshot()
    bad = bad_ends(attempts, order)
    brig.run(program="pass", folder=order[0].parent) # takes a group along that could not be removed, and was told of
    left = {kind: things for kind, things in before.left_since().items() if kind not in ("cgroup", "process", "tmp")} # looked at above
    assert not bad, f"{len(bad)} of {len(attempts)}:\n" + "\n".join(bad[:20])
    assert not left, f"left behind: {left}"


def one_each(calls, role):
    """Every call once: the errnos of its class in turn."""
    mine = sorted((call for call in calls if call.role == role), key=lambda call: call.nth > 1) # each name first
    return [(call, faults.ERRNOS[call.name][n % len(faults.ERRNOS[call.name])]) for n, call in enumerate(mine)]


def spread(attempts, most):
    """So many of them, from the beginning to the end."""
    return attempts[::-(-len(attempts) // most) or 1]


def test_every_call_of_a_run_has_a_class_of_errors(calls):
    assert {call.name for call in calls} - set(faults.ERRNOS) == set()


@pytest.mark.row("I6")
@pytest.mark.parametrize("role", faults.ROLES)
@pytest.mark.parametrize("most", tiers.amounts(4, 600))
@pytest.mark.requirement("B3")
def test_a_call_that_fails_starts_no_program_or_ends_in_an_honest_record(calls, order, role, most):
    check(spread(one_each(calls, role), most), order)


@pytest.mark.row("I6")
@pytest.mark.parametrize("role", ["brigd", "launcher"])
@pytest.mark.parametrize("most", tiers.amounts(5, 600))
def test_a_call_of_a_run_with_a_network_that_fails_starts_no_program(calls, network_calls, network, role, most):
    """Those that a run without one does not make so often."""
    plain = collections.Counter((call.name, call.role) for call in calls)
    check(spread([(call, error) for call, error in one_each(network_calls, role) if call.nth > plain[call.name, role]], most), network)


@pytest.mark.long
@pytest.mark.row("I6")
@pytest.mark.parametrize("role", faults.ROLES)
def test_every_error_of_every_call(calls, order, role):
    check([(call, error) for call in calls if call.role == role for error in faults.ERRNOS[call.name]], order)


@pytest.mark.row("I6")
def test_strict_refuses_a_kernel_that_refuses_landlock(calls, order):
    call = next(call for call in calls if call.name == "landlock_create_ruleset" and call.role == "launcher")
    attempt = faults.Attempt(call, faults.ERRNOS[call.name][0], order[0], "-p", "strict")
    assert attempt.status == 125 and "landlock" in attempt.stderr and not attempt.ran, str(attempt)


@pytest.mark.row("C1")
def test_without_landlock_nothing_in_proc_can_be_written_to(calls, order):
    """What a process may change of itself, as its place in the list of whom the host kills first."""
    program = order[0].with_name("writes.py")
    program.write_text("""
import os
for folder, _, names in os.walk('/proc/self'):
    for path in (os.path.join(folder, name) for name in names):
        try: os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
        except OSError: continue
        print(path)
""")
    without = ["-e", "trace=landlock_create_ruleset", "-e", "inject=landlock_create_ruleset:error=ENOSYS"]
    done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", *without, *faults.command(program)], capture_output=True, text=True,
                          timeout=host.HANG, env=brig.environment(), stdin=subprocess.DEVNULL)
    record = brig.parse(done.stdout)
    assert record["stdout"] == "" and "missing:landlock" in record["isolation"] and record["exit_code"] == 0, record


def test_cpu_time_is_the_programs_however_late_the_launcher_hears_of_its_start(calls, order):
    late = ["-e", "trace=recvmsg", "-e", "inject=recvmsg:delay_enter=200000:when=3+"] # by then it is at its end
    done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", *late, *faults.command(*order)], capture_output=True, text=True,
                          timeout=host.HANG, env=brig.environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and brig.parse(done.stdout)["cpu_ms"] > 3, done


@pytest.mark.control("I6")
def test_control_the_program_runs_when_nothing_fails(calls, order):
    call = next(call for call in calls if call.name == "pivot_root")
    attempt = faults.Attempt(call._replace(nth=50), faults.ERRNOS[call.name][0], *order)
    assert attempt.is_whole() and attempt.ran and not attempt.failed, str(attempt)
