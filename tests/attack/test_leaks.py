"""Many runs, half of them killed at random moments: afterwards the host is as it was.

BRIG_LEAK_SEED repeats a sequence, BRIG_LEAK_RUNS changes its length.
"""
import concurrent.futures
import os
import random
import signal
import subprocess
import time

import pytest

from support import brig, host, tiers

AT_ONCE = 4
PROGRAMS = [
    # what a run may be in the middle of
    "pass",
    "open('/workspace/f', 'wb').write(b'x' * 100000); open('/tmp/g', 'w').write('x')",
    "import os\nfor n in range(5):\n  if os.fork() == 0: os.setsid(); __import__('time').sleep(600)",
    "import time; time.sleep(600)",
    "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); c.send(b'x' * 1000)",
    "while True: print('x' * 1000)",
]


SLEEP = "import time; print('ready', flush=True); time.sleep(600)"


def one_run(dice, folder):
    """Runs one program, or kills it somewhere on its way; what was done, for the message."""
    program, way = dice.choice(PROGRAMS), dice.choice(["let", "KILL", "TERM", "INT", "brigd", "launcher"])
    if dice.random() < 0.4: # with the sixth that is let anyway: half of all
        way = "let"
    if way == "let":
        program = program.replace("sleep(600)", "sleep(0.01)").replace("while True", "for n in range(100)")
    child = brig.start("--timeout", "300", program=program, folder=folder)
    if way != "let":
        time.sleep(dice.uniform(0, 0.08)) # the random moment
        if way in ("brigd", "launcher"):
            found = host.jail_below(child.pid).get(way)
            if found:
                kill(found)
            else: # it has none yet
                child.signal(signal.SIGTERM)
        else:
            child.signal(getattr(signal, f"SIG{way}"))
    run = child.wait()
    return way, run


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


@pytest.mark.row("D6")
@pytest.mark.row("E14")
@pytest.mark.requirement("B24")
@pytest.mark.alone("counts open files, control groups and kernel objects of the whole machine")
@pytest.mark.parametrize("times", tiers.amounts(40, 500, "BRIG_LEAK_RUNS"))
def test_many_runs_leave_nothing(jail, brig, tmp_path, times):
    seed = int(os.environ.get("BRIG_LEAK_SEED", time.time_ns() % 1000000))
    print(f"seed {seed}: BRIG_LEAK_SEED={seed} BRIG_LEAK_RUNS={times} repeats it")
    before, groups = host.Snapshot(), host.kernel_groups("pids")
    slabs = {name: host.slab(name) for name in ("mnt_cache", "net_namespace", "user_namespace", "pid_namespace")}
    dice = [random.Random(seed * 1000 + n) for n in range(times)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda d: one_run(d, tmp_path), dice))
    left = before.left_since()
    assert not left, f"seed {seed}: left behind {left}"
    flat = host.poll(lambda: host.open_files() < before.open_files + 200)
    assert flat, f"seed {seed}: {host.open_files()} open files, were {before.open_files}"
    assert groups is None or host.poll(lambda: host.kernel_groups("pids") < groups + max(times // 10, 20)), f"seed {seed}: control groups that do not go"
    for name, count in slabs.items():
        room = max(times // 10, 15) # of the host's own processes, and what lies free in the list of a CPU: seven in a slab; one that each run left would be `times`
        assert count is None or host.poll(lambda: host.slab(name) < count + room), f"seed {seed}: {name} {host.slab(name)}, was {count}"
    hung = [str(run) for way, run in done if "[the test killed brig" in run.stderr]
    assert not hung, f"seed {seed}: did not end by themselves:\n" + "\n".join(hung[:3])
    bad = [(way, str(run)) for way, run in done if way == "let" and (run.status not in (0, 153) or run.record is None)]
    assert not bad, f"seed {seed}: {len(bad)} runs that nobody disturbed failed:\n{bad[:3]}"


@pytest.mark.row("D6")
@pytest.mark.parametrize("way", tiers.few(["KILL", "TERM", "INT", "HUP"], "KILL", "TERM"))
def test_a_killed_brig_takes_its_jail_along(jail, start_brig, token, nothing_left, way):
    child = start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False)
    assert child.line() == "ready"
    child.signal(getattr(signal, f"SIG{way}"))
    run = child.wait()
    assert run.status == {"KILL": -9, "TERM": 143, "INT": 130, "HUP": 143}[way], str(run)
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.private("it kills brig's own brigd or launcher")
@pytest.mark.row("D6")
def test_a_process_group_killed_at_once_leaves_nothing_after_the_next_run(jail, start_brig, run_brig, token, nothing_left):
    """Nobody is left to tidy up, so the next run does."""
    child = start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False,
                       popen={"start_new_session": True})
    assert child.line() == "ready"
    os.killpg(child.pid, signal.SIGKILL)
    assert child.wait().status == -9
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"
    assert run_brig(program="pass").status == 0


@pytest.mark.private("it kills brig's own brigd or launcher")
@pytest.mark.row("D6")
def test_a_killed_brigd_takes_its_jail_along_and_brig_says_so(jail, start_brig, token, nothing_left):
    child = start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False)
    assert child.line() == "ready"
    kill(host.jail_below(child.pid)["brigd"])
    run = child.wait()
    assert run.status == 143 and "brigd was killed" in run.stderr and len(run.stderr.splitlines()) == 1, str(run)
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"


@pytest.mark.private("it kills brig's own brigd or launcher")
@pytest.mark.row("D6")
def test_what_brigs_brigds_and_launchers_killed_together_leave_goes_with_the_next_run(jail, start_brig, run_brig, token, nothing_left):
    """Nobody was left to remove the control groups of three slots; the next run takes one slot, and removes all."""
    running = [start_brig("--timeout", "300", program=SLEEP, args=[token], json_record=False)
               for _ in range(3)]
    assert [child.line() for child in running] == ["ready"] * 3
    jails = [host.jail_below(child.pid) for child in running]
    together = [pid for child, jail in zip(running, jails) for pid in (child.pid, jail["brigd"], jail["launcher"])]
    for pid in together:
        os.kill(pid, signal.SIGSTOP) # none sees another die
    for pid in together:
        kill(pid)
    assert [child.wait().status for child in running] == [-9] * 3
    assert host.poll(lambda: not host.with_token(token)), f"still there: {host.with_token(token)}"
    assert run_brig(program="pass").status == 0


@pytest.mark.nightly
@pytest.mark.row("D6")
def test_a_launcher_that_dies_while_its_cell_is_born_leaves_no_cell(jail, brig, tmp_path, nothing_left):
    """strace holds both between clone3 and the moment from which the kernel kills the cell along with its launcher."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    program = tmp_path / "program.py"
    program.write_text("import time; time.sleep(600)")
    slow = ["-e", "trace=prctl,sendto", "-e", "inject=prctl:delay_enter=1000000:when=1", "-e", "inject=sendto:delay_enter=800000:when=1"]
    tracer = brig_tracer([*slow, str(brig), "run", "--json", "--timeout", "300", str(program)])
    cell = None
    try:
        launcher, cell = host.poll(lambda: born(tracer.pid)) or (None, None)
        assert cell, "no cell was born"
        kill(launcher)
        gone = host.poll(lambda: not os.path.exists(f"/proc/{cell}") or "State:\tZ" in host.read(f"/proc/{cell}/status"))
        assert gone, f"the cell waits for ever: {host.read(f'/proc/{cell}/status')[:60]!r} in {host.read(f'/proc/{cell}/wchan')}"
    finally:
        if cell:
            kill(cell)
        tracer.terminate()
        tracer.wait(host.HANG)


def brig_tracer(argv):
    return subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", *argv], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def born(tracer):
    """(launcher, PID 1 of the cell), as soon as this is there, and no program in it."""
    jail = host.jail_below(tracer)
    return (jail["launcher"], jail["init"]) if "init" in jail and "program" not in jail else None
