"""Ten thousand runs and a thousand kills: afterwards the host is as it was. Figures go to docs/long-run.log.

BRIG_LONG_RUNS, BRIG_LONG_KILLS and BRIG_LONG_SEED change length and sequence.
"""
import collections
import concurrent.futures
import os
import random
import signal
import time

import pytest

from support import brig, host, longlog

RUNS = int(os.environ.get("BRIG_LONG_RUNS", "10000"))
KILLS = int(os.environ.get("BRIG_LONG_KILLS", "1000"))
SEED = int(os.environ.get("BRIG_LONG_SEED", time.time_ns() % 1000000))
AT_ONCE = 2 * (os.cpu_count() or 1)
pytestmark = pytest.mark.long

HELLO = "print('hello')"
MIX = [
    # weight, what it is, options, program, what the record says, status
    (70, "hello", (), HELLO, "exited", 0),
    (8, "an exception", (), "raise SystemExit(3)", "exited", 3),
    (3, "wall time", ("--timeout", "0.1"), "import time; time.sleep(600)", "timeout_wall", 124),
    (2, "CPU time", ("--cpu-time", "0.1"), "while True: pass", "timeout_cpu", 124),
    (4, "memory", ("--memory", "16M"), "x = bytearray(64 << 20)", "oom", 137),
    (4, "output", ("--output", "64K"), "while True: print('x' * 10000)", "output_limit", 153),
    (3, "processes", ("--pids", "8"), "import os, time\nfor n in range(6):\n  if os.fork() == 0: time.sleep(600)", "exited", 0),
    (3, "a crash", (), "import os; os.kill(os.getpid(), 11)", "signaled", 139),
    (3, "--ro", ("--ro", "{shown}"), "print(open('/workspace/shown/file').read())", "exited", 0),
    (3, "--stdin", ("--stdin", "{input}"), "print(input())", "exited", 0),
]


@pytest.fixture(scope="module")
def folder(jail, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    (folder / "shown").mkdir()
    (folder / "shown" / "file").write_text("shown")
    (folder / "input").write_text("a line\n")
    return folder


def one_run(dice, folder):
    """(what it is, None or what is wrong)"""
    _, what, options, program, reason, status = dice.choices(MIX, [row[0] for row in MIX])[0]
    options = [option.format(shown=folder / "shown", input=folder / "input") for option in options]
    file = folder / f"{what}.py"
    if not file.exists():
        file.write_text(program)
    run = brig.run(*options, file=file, folder=folder)
    return what, None if (run.reason, run.status) == (reason, status) and "left behind" not in run.stderr else str(run)


def figures():
    """Of the whole host: others may be at work as well."""
    memory = {line.split(":")[0]: int(line.split()[1]) for line in host.read("/proc/meminfo").splitlines()}
    return {"processes": len(host.cell_processes()), "groups": host.kernel_groups("pids"), "memory groups": host.kernel_groups("memory"),
            "dying": host.dying_groups(), "mounts": host.slab("mnt_cache"), "net namespaces": host.slab("net_namespace"),
            "user namespaces": host.slab("user_namespace"), "open files": host.open_files(),
            "files": len(host.files_below(host.runtime_dir())) + sum(len(list(host.brig_files(place))) for place in ("/tmp", "/dev/shm")),
            "slab MiB": memory["SUnreclaim"] >> 10, "per-CPU MiB": memory["Percpu"] >> 10}


def table(rows):
    names = list(rows[0][1])
    yield "runs   " + "  ".join(names)
    for runs, row in rows:
        yield f"{runs:6} " + "  ".join(f"{'-' if row[name] is None else row[name]:>{len(name)}}" for name in names)


def test_ten_thousand_runs_leave_nothing(folder):
    before, rows, seen, bad, began = host.Snapshot(), [(0, figures())], collections.Counter(), [], time.monotonic()
    dice = [random.Random(SEED * 100000 + n) for n in range(RUNS)]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for start in range(0, RUNS, 1000):
            for what, wrong in pool.map(lambda d: one_run(d, folder), dice[start:start + 1000]):
                seen[what] += 1
                bad += [wrong] if wrong else []
            rows.append((min(start + 1000, RUNS), figures()))
    seconds, left = time.monotonic() - began, before.left_since()
    longlog.write("runs", [
        f"{RUNS} runs, {AT_ONCE} at a time, in {seconds:.0f} s; seed {SEED}", ", ".join(f"{what} {n}" for what, n in sorted(seen.items())),
        f"other ends than expected: {len(bad)}", f"left behind: {left or 'nothing'}", "", "of the whole host, which had other work:", *table(rows)])
    assert not bad, f"seed {SEED}: {len(bad)} ended otherwise:\n{bad[0]}"
    assert not left, f"seed {SEED}: left behind {left}"
    for name in ("mounts", "net namespaces", "user namespaces", "groups", "memory groups", "open files"):
        first, last = rows[0][1][name], rows[-1][1][name]
        assert first is None or last < first + RUNS // 10 + 200, f"seed {SEED}: {name} grew from {first} to {last}"


# --- kills ------------------------------------------------------------------------------------------------

TARGETS = {
    # who is killed
    "brig": ("brig",), "brigd": ("brigd",), "the launcher": ("launcher",), "PID 1": ("init",), "brig and brigd": ("brig", "brigd"),
    "brigd and the launcher": ("brigd", "launcher"), "brig and the launcher": ("brig", "launcher"), "all four": ("brig", "brigd", "launcher", "init"),
}
VICTIMS = ["import time; time.sleep(600)", HELLO, "import os, time\nfor n in range(5):\n  if os.fork() == 0: os.setsid()\ntime.sleep(600)"]


def kill_one(dice, folder, token):
    """(who was there to be killed, what is wrong)"""
    who, program = dice.choice(list(TARGETS)), dice.choice(VICTIMS)
    groups = host.abandoned_groups()
    child = brig.start("--timeout", "300", program=program, args=[token], folder=folder)
    time.sleep(dice.uniform(0, 0.040)) # the random moment
    there = {"brig": child.pid, **host.jail_below(child.pid)}
    killed = [there[name] for name in TARGETS[who] if name in there]
    for pid in killed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if not killed: # not born yet
        child.signal(signal.SIGTERM)
    run, wrong = child.wait(), []
    if "[the test killed" in run.stderr or "somebody still holds" in run.stderr:
        wrong.append(f"brig did not end: {run}")
    if not host.poll(lambda: not host.with_token(token)):
        wrong.append(f"these run on: {host.with_token(token)}")
    alone = not {"brigd", "launcher"} <= set(TARGETS[who]) # brigd cleans up after a launcher
    if alone and not host.poll(lambda: not host.abandoned_groups() - groups):
        wrong.append(f"left behind: {host.abandoned_groups() - groups}")
    after = brig.run(program=HELLO, folder=folder)
    if (after.status, after.out) != (0, "hello\n"):
        wrong.append(f"the next run: {after}")
    if not host.poll(lambda: brig.run(program=HELLO, folder=folder) and not host.abandoned_groups() - groups, every=0.2): # a neighbour may hold the slot
        wrong.append(f"left behind after the next run: {host.abandoned_groups() - groups}")
    return f"{who}{'' if len(killed) == len(TARGETS[who]) else ', not all born or alive'}", [f"{who}: {text}" for text in wrong]


def test_a_thousand_kills_leave_nothing(folder):
    before, seen, bad, began = host.Snapshot(), collections.Counter(), [], time.monotonic()
    for n in range(KILLS):
        who, wrong = kill_one(random.Random(SEED * 100000 + n), folder, f"token-{SEED}-{n}")
        seen[who] += 1
        bad += wrong
    left = before.left_since()
    longlog.write("kills", [
        f"{KILLS} runs killed 0 to 40 ms after their start, each followed by a run, in {time.monotonic() - began:.0f} s; seed {SEED}",
        *(f"{n:5} {who}" for who, n in sorted(seen.items())), f"wrong: {len(bad)}", f"left behind: {left or 'nothing'}"])
    assert not bad, f"seed {SEED}: {len(bad)}\n" + "\n".join(bad[:5])
    assert not left, f"seed {SEED}: left behind {left}"
