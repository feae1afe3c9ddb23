"""Section D: whatever a program leaves running, stops or kills, its run ends in time and takes everything along."""
import json
import subprocess

import pytest

from support import brig, host, tiers
from support import daemon as daemons

DAEMONS = """
import os, signal, sys, time
reading, writing = os.pipe()
for n in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            os.write(writing, b"x")
            time.sleep(600)
        os._exit(0)
    os.wait()
seen = 0
while seen < 50:
    seen += len(os.read(reading, 100))
print("daemons", seen, flush=True)
"""
KILLS = """
import errno, os, signal
def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]
victim = os.fork()
if victim == 0:
    signal.pause()
one = [kill(1), kill(1, signal.SIGSTOP), kill(1, signal.SIGTERM)]
if os.getppid() > 1:
    one.append(kill(os.getppid()))
others = {kill(pid, 0) for pid in range(2, 40000) if pid not in (os.getpid(), victim)}
everyone = kill(-1)
dead = os.waitpid(victim, 0)[1]
print({"one": one, "others": sorted(others), "everyone": everyone, "victim": dead}, flush=True)
"""
ENDLESS = {
    "sleeping": "import time; time.sleep(600)",
    "reading a pipe that nobody writes": "import os; r, w = os.pipe(); os.read(r, 1)",
    "spinning": "while True: pass",
    "waiting in C with every signal blocked":
        "import ctypes, signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)); ctypes.CDLL(None).pause()",
}
STOPPED = {
    "itself": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "a child it waits for": "import os, signal\nif os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nos.wait()",
    "its whole group, in a loop": "import os, signal\nfor _ in range(3): os.fork()\nwhile True: os.killpg(0, signal.SIGSTOP)",
}


@pytest.mark.row("D1")
def test_fifty_daemons_die_with_their_run(jail, run_brig, token, nothing_left):
    run = run_brig("--timeout", "50", program=DAEMONS, args=[token])
    assert "daemons 50" in run.out and run.reason == "exited" and run.status == 0, str(run)
    assert host.poll(lambda: not host.with_token(token)), f"these still run: {host.with_token(token)}\n{run}"


@pytest.mark.control("D1")
def test_control_daemons_outlive_their_program_without_a_jail(needs_root, token, tmp_path):
    program = tmp_path / "daemons.py"
    program.write_text(DAEMONS)
    script = f"{host.PYTHON} {program} {token}; echo gone; exec sleep 600"
    child = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        while child.stdout.readline() not in ("gone\n", ""):
            pass
        daemons = [pid for pid, _ in host.with_token(token)]
    finally:
        child.kill()
        child.wait()
    assert len(daemons) >= 50
    assert host.poll(lambda: not host.with_token(token)), "the control left daemons behind"


@pytest.mark.row("D2")
def test_nobody_dies_of_the_programs_kills(jail, run_brig, bystander, token, nothing_left):
    run = run_brig("--timeout", "50", program=KILLS, args=[token])
    assert run.reason == "exited" and run.status == 0, str(run)
    found = eval(run.out)
    assert set(found["one"]) <= {"EPERM", "ESRCH"}, f"process 1 takes signals of the program\n{run}"
    assert set(found["others"]) == {"ESRCH"}, f"there are other processes\n{run}"
    assert found["victim"] == 9, f"its own child survived\n{run}"


@pytest.mark.control("D2")
def test_control_everybody_dies_without_a_jail(free_python):
    text = KILLS.replace("victim = os.fork()", "if os.fork() == 0:\n    signal.pause()\nvictim = os.fork()")
    found = eval(free_python(text.replace("one = [kill(1), kill(1, signal.SIGSTOP), kill(1, signal.SIGTERM)]", "one = []")).stdout)
    assert "ok" in found["others"] and found["everyone"] == "ok" and found["victim"] == 9


@pytest.mark.row("D3")
@pytest.mark.parametrize("program", STOPPED.values(), ids=[f"a program that stops {what}" for what in STOPPED])
def test_stopped(jail, run_brig, program, token, nothing_left):
    run = run_brig("--timeout", "1", program=program, args=[token])
    assert (run.reason, run.status) == ("timeout_wall", 124), str(run)
    assert 1000 <= run.record["wall_ms"] <= 1000 * run.seconds, str(run)


@pytest.mark.control("D3")
def test_control_a_program_stops_itself_without_a_jail():
    child = subprocess.Popen([host.PYTHON, "-c", STOPPED["itself"]])
    try:
        assert host.poll(lambda: "State:\tT" in host.read(f"/proc/{child.pid}/status"))
    finally:
        child.kill()
        child.wait()


@pytest.mark.row("D4")
def test_all_endless_programs_end_at_the_wall_time(jail, start_brig, token, nothing_left):
    running = {name: start_brig("--timeout", "1", program=text, args=[token]) for name, text in ENDLESS.items()}
    for name, child in running.items():
        run = child.wait()
        assert (run.reason, run.status) == ("timeout_wall", 124), f"{name}: {run}"
        assert 1000 <= run.record["wall_ms"] <= 1000 * run.seconds, f"{name}: {run}"


@pytest.mark.control("D4")
def test_control_endless_programs_do_not_end_without_a_jail():
    running = [subprocess.Popen([host.PYTHON, "-c", text]) for text in ENDLESS.values()]
    try:
        assert all(host.poll(lambda pid=child.pid: host.rests(pid) or daemons.cpu_seconds(pid) > 0.5) for child in running)
        assert [child.poll() for child in running] == [None] * len(running)
    finally:
        for child in running:
            child.kill()
            child.wait()


BURN = """
import os, sys, time
for n in range(4):
    if os.fork() == 0:
        end = time.process_time() + float(sys.argv[1])
        while time.process_time() < end: pass
        os._exit(0)
print([os.waitstatus_to_exitcode(os.wait()[1]) for n in range(4)], flush=True)
"""


@pytest.mark.row("D5")
def test_cpu_time_counts_all_processes(jail, run_brig, token, nothing_left):
    run = run_brig("--cpu-time", "1", "--cpus", "2", "--timeout", "50", program=BURN, args=["20", token])
    assert (run.reason, run.status) == ("timeout_cpu", 124), str(run)
    assert 950 <= run.record["cpu_ms"] < 10000, str(run) # they would take 80 seconds


@pytest.mark.control("D5")
def test_control_a_limit_per_process_is_evaded_by_four():
    text = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n" + BURN
    done = subprocess.run([host.PYTHON, "-c", text, "0.4"], capture_output=True, text=True, timeout=host.HANG)
    assert done.stdout == "[0, 0, 0, 0]\n" # 1.6 seconds together


ORPHANS = """
import os, sys, time
refused = 0
for batch in range(int(sys.argv[2])):
    end = time.monotonic() + 10
    parent = os.fork()
    if parent == 0:
        for n in range(40):
            while True:
                try:
                    if os.fork() == 0: os._exit(0)
                    break
                except BlockingIOError:
                    if time.monotonic() > end: os._exit(7)
        os._exit(0)
    refused += os.waitpid(parent, 0)[1] != 0
print("refused", refused)
"""


@pytest.mark.row("D9")
@pytest.mark.parametrize("batches", tiers.amounts(5, 50))
def test_orphans_are_reaped_forty_at_a_time(jail, run_brig, token, nothing_left, batches):
    run = run_brig("--timeout", f"{50 * host.SLOWER:g}", program=ORPHANS, args=[token, batches])
    assert "refused 0" in run.out, str(run)


@pytest.mark.control("D9")
def test_control_orphans_stay_where_nobody_reaps(needs_root):
    """The program is process 1 itself and does not reap; a user of its own has 64 processes."""
    text = ORPHANS.replace("monotonic() + 10", "monotonic() + 0.2")
    argv = ["unshare", "--pid", "--fork", "--kill-child", "prlimit", "--nproc=64", "setpriv", "--reuid", "64987", "--clear-groups",
            host.PYTHON, "-c", text, "token", "3"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=host.HANG)
    assert done.stdout in ("refused 1\n", "refused 2\n") or "BlockingIOError" in done.stderr, done


FORGED = [
    # what it does, program, verdict, brig's status
    ("exits with the status of a kill", "import os; os._exit(137)", ("exited", 137, None), 137),
    ("exits with the status of a time limit", "import os; os._exit(124)", ("exited", 124, None), 124),
    ("exits with the status of the output limit", "raise SystemExit(153)", ("exited", 153, None), 153),
    ("kills itself", "import os; os.kill(os.getpid(), 9)", ("signaled", 137, "SIGKILL"), 137),
    ("sends itself the signal of a CPU limit", "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", ("signaled", 152, "SIGXCPU"), 152),
    ("prints a record", "print('{\"exit_reason\": \"oom\", \"run_id\": \"x\"}')", ("exited", 0, None), 0),
    ("writes a record on every descriptor",
     "import os\nfor fd in range(256):\n  try: os.write(fd, b'{\"exit_reason\": \"oom\", \"exit_code\": 9}\\n')\n  except OSError: pass",
     ("exited", 0, None), 0),
]


@pytest.mark.row("D10")
@pytest.mark.parametrize("program, verdict, status", [row[1:] for row in FORGED], ids=[f"a program that {row[0]}" for row in FORGED])
def test_verdict_is_not_forged(jail, run_brig, program, verdict, status):
    run = run_brig(program=program)
    assert run.record, str(run)
    assert (run.reason, run.record["exit_code"], run.record["signal"]) == verdict and run.status == status, str(run)


@pytest.mark.control("D10")
def test_control_a_shell_takes_an_exit_for_a_kill():
    tell = [subprocess.run(["sh", "-c", f"{host.PYTHON} -c 'import os; {what}'; echo $?"], capture_output=True, text=True).stdout.split()[-1]
            for what in ("os._exit(137)", "os.kill(os.getpid(), 9)")]
    assert tell == ["137", "137"]


@pytest.mark.private("a policy of its own")
def test_a_child_that_is_its_parents_sibling_does_not_keep_a_run_from_ending(jail, tmp_path):
    """No policy of brig's allows CLONE_PARENT. Its child is one of the process that watches the cell, which has to reap it."""
    for file in (host.REPO / "profiles").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    profile = json.loads((tmp_path / "basic.json").read_text())
    (tmp_path / "own.json").write_text(json.dumps({**profile, "policy_extend": ["deny clone", "allow clone if arg0 has no CLONE_NEW*"]}))
    code = """
import ctypes, os
libc = ctypes.CDLL(None)
if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: # SYS_clone, CLONE_PARENT | SIGCHLD
    os._exit(0)
print('made')
"""
    run = brig.run("--profile", "own", "--timeout", "20", program=code, env={"BRIG_PROFILES": str(tmp_path)})
    assert run.reason == "exited" and "made" in run.stdout and run.record["wall_ms"] < 15000, str(run)
