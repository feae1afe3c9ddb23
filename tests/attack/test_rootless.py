"""Jails of plain users, with a range of subordinate ids and with their own id only: what they are, what they lack, what they leave.

The probes (test_probes.py) run in all three kinds of jails; here is what only those of users have.
"""
import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from support import host, tiers, users
from support.users import BARE, OTHER, PLAIN

LIMITS = {"memory-limit", "pids-limit", "cpu-limit", "cpu-time-limit"}
WAIT = "import time; print('ready', flush=True); time.sleep(600)"
LONG = ("--timeout", "300")
pytestmark = pytest.mark.private("users without a service; of root's runs beside theirs, the processes are looked at")

KILL_SEED = int(os.environ.get("BRIG_LEAK_SEED", time.time_ns() % 1000000))


@pytest.fixture(autouse=True)
def nothing_left_of_users(world):
    """No process of a user or his cells, no mount and no file, whatever the test did. Others use the machine at the same time."""
    before = of_users(world)
    yield
    left = host.poll(lambda: not of_users(world) - before)
    assert left, f"left behind: {of_users(world) - before}"


KEPT = {"brig", "slots", "filters", "groups", "layers-said"} # made once, used by every run


def of_users(world):
    """Processes and files that belong to the users or their cells, and what is mounted."""
    def theirs(uid):
        return any(uid == u.uid or u.range and u.range[0] <= uid < sum(u.range) for u in world.users)
    found = {("process", pid, comm) for pid, comm, uids in host.processes() if theirs(uids[0])}
    found |= {("mount", line.split(" ", 3)[-1]) for line in host.read("/proc/self/mountinfo").splitlines()}
    found |= {("file", f"/tmp/{name}") for name in os.listdir("/tmp") if theirs(owner_of(f"/tmp/{name}"))}
    return found | {("runtime", path) for u in world.users for path in world.runtime(u)
                    if not path.endswith(".bpf") and os.path.basename(path) not in KEPT}


def owner_of(path):
    try:
        return os.lstat(path).st_uid
    except OSError: # gone, or a mount whose server has died
        return -1


def missing(run):
    return {entry.partition(":")[2] for entry in run.record["isolation"] if entry.startswith("missing:")}


def of_cell(client):
    """(launcher, PID 1, program) below a running brig."""
    jail = host.jail_below(client)
    return jail["launcher"], jail["init"], jail["program"]


# --- what it is -----------------------------------------------------------------------------------------

def test_a_program_runs_and_the_record_names_what_root_would_have_added(world, user):
    run = world.run(user, "--verbose", program="import os; print(os.getuid(), os.getpid(), os.getcwd())")
    assert (run.reason, run.status, run.out) == ("exited", 0, "1000 2 /workspace\n"), str(run)
    assert missing(run) - LIMITS == (set() if user.range else {"own-ids"}), str(run)
    assert run.stderr.count("not in force") == 1 and "brig doctor" in run.stderr, str(run)


def test_what_is_missing_is_said_once_a_day_in_one_short_line(world):
    world.run(BARE, program="pass")
    assert "not in force" not in world.run(BARE, program="pass").stderr
    os.utime(world.path("run") / f"user/{BARE.uid}/brig/layers-said", (0, 0))
    said = world.run(BARE, program="pass").stderr
    assert said.count("not in force") == 1 and "own-ids" in said and "(" not in said and said.endswith("; brig doctor says how to get them\n"), said


def test_two_users_and_root_at_once_have_no_host_id_in_common(jail, world, start_brig):
    clients = [world.start(u, *LONG, program=WAIT, record=False) for u in (PLAIN, PLAIN, OTHER, OTHER, BARE)]
    clients += [start_brig(*LONG, program=WAIT, json_record=False) for _ in range(2)]
    try:
        assert [c.line() for c in clients] == ["ready"] * len(clients)
        owners = [users.host_ids(pid) for c in clients for pid in of_cell(c.pid)[1:]]
    finally:
        for c in clients:
            c.signal(signal.SIGTERM)
            c.wait()
    assert all(len(set(four)) == 1 for four in owners), owners
    ids = [four[0] for four in owners]
    alone = [i for i in ids if i != BARE.uid]
    assert len(set(alone)) == len(alone) == 12 and ids.count(BARE.uid) == 2, ids
    for first, user in ((0, PLAIN), (4, OTHER)):
        assert all(user.range[0] <= i < sum(user.range) for i in ids[first:first + 4]), ids


def test_the_environment_does_not_decide_who_shares_a_host_id(world):
    first = world.start(PLAIN, *LONG, program=WAIT, record=False, env={"XDG_RUNTIME_DIR": "/tmp"})
    second = world.start(PLAIN, *LONG, program=WAIT, record=False)
    try:
        assert first.line() == second.line() == "ready"
        ids = [users.host_ids(pid)[0] for c in (first, second) for pid in of_cell(c.pid)[1:]]
    finally:
        for c in (first, second):
            c.signal(signal.SIGTERM)
            c.wait()
    assert len(set(ids)) == 4, ids


OVERLAPS = {
    "another user's": f"{PLAIN.subids}brig-other:{PLAIN.range[0] + 1000}:10\n",
    "root's cells'": f"{PLAIN.subids}brig:{PLAIN.range[0]}:100\n",
    "one's own id": f"{PLAIN.name}:20000:60000\n",
}


@pytest.mark.parametrize("text", OVERLAPS.values(), ids=[f"a range that holds ids of {whose}" for whose in OVERLAPS])
def test_is_nobodys(needs_root, needs_rootfs, text):
    elsewhere = users.World(subids=text)
    try:
        run = elsewhere.run(PLAIN, "--verbose", program="print('runs')")
        assert run.out == "runs\n" and "own-ids" in missing(run), str(run)
        assert "/etc/subuid gives" in run.stderr, str(run)
    finally:
        elsewhere.close()


def test_groups_of_the_caller_are_left_behind_or_told(world, user):
    program = "import os; print(os.getgroups())"
    alone, grouped = world.run(user, program=program), world.run(user, program=program, groups=(4, 27, user.uid))
    assert alone.out == "[]\n" and "no-groups" in alone.record["isolation"], str(alone)
    if user.range:
        assert grouped.out == "[]\n" and "no-groups" in grouped.record["isolation"], str(grouped)
    else:
        assert "no-groups" in missing(grouped) and "no-groups" in grouped.stderr, str(grouped)


def test_the_profile_that_requires_everything_is_refused(world, user):
    run = world.run(user, "-p", "strict", program="print('ran')")
    assert (run.reason, run.status) == ("setup_failed", 125) and not run.out, str(run)
    assert "own-ids" in run.stderr if not user.range else "controller" in run.stderr, str(run)
    assert "brig doctor" in run.stderr, str(run)


# --- what it holds without control groups --------------------------------------------------------------------

def test_processes_are_limited_without_a_control_group(world, user):
    program = """
import os, signal
children = []
try:
    while len(children) < 200:
        pid = os.fork()
        if pid == 0: signal.pause()
        children.append(pid)
except BlockingIOError:
    print(len(children) + 1)
for pid in children: os.kill(pid, 9)
"""
    run = world.run(user, "--pids", "20", program=program)
    assert run.out == "20\n", str(run)


def test_the_cell_is_what_the_host_kills_first_when_memory_is_used_up(world, user):
    run = world.run(user, program="print(open('/proc/self/oom_score_adj').read().strip())")
    assert run.out == ("1000\n" if "memory-limit" in missing(run) else "0\n"), str(run)


@pytest.mark.diagonal("user")
@pytest.mark.parametrize("limit, value, layer", [("memory", "64M", "memory-limit"), ("cpus", "0.5", "cpu-limit")])
def test_a_limit_that_is_asked_for_and_cannot_be_held_refuses_the_run(world, user, limit, value, layer):
    if layer not in missing(world.run(user, program="pass")):
        pytest.skip(f"a control group holds {limit} here")
    run = world.run(user, f"--{limit}", value, program="print('ran')")
    assert (run.reason, run.status, run.out) == ("setup_failed", 125, None), str(run)
    assert f"the limit {limit} was asked for and cannot be held here" in str(run) and f"--allow-missing {limit}" in str(run), str(run)
    run = world.run(user, f"--{limit}", value, "--allow-missing", limit, program="print('ran')")
    assert run.out == "ran\n" and layer in missing(run), str(run)


# Asked for and not touched: to fill so much takes some hosts longer than a run has.
TAKE = """
import mmap
taken = []
try:
    while len(taken) < 2000: taken.append(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
except OSError: pass
print(len(taken))
"""


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
def test_without_a_control_group_a_process_has_little_more_memory_than_the_limit(world, user):
    if "memory-limit" not in missing(world.run(user, program="pass")):
        pytest.skip("a control group holds the memory here")
    run = world.run(user, program=TAKE)
    assert 700 <= int(run.out) <= 256 + 512, str(run)
    run = world.run(user, "--allow-missing", "memory", program=TAKE)
    assert run.out == "2000\n", str(run)


@pytest.mark.diagonal("user")
@pytest.mark.parametrize("options, program, verdict", [
    (("--timeout", "1"), "while True: pass", ("timeout_wall", 124)),
    (("--timeout", "1"), "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", ("timeout_wall", 124)),
    (("--output", "1K"), "while True: print('x' * 1000)", ("output_limit", 153)),
    ((), "import os; os.kill(os.getpid(), 9)", ("signaled", 137)),
], ids=["spinning", "stopped", "flooding", "dying"])
def test_ends(world, user, options, program, verdict):
    run = world.run(user, *options, program=program)
    assert (run.reason, run.status) == verdict, str(run)


# --- attacks ------------------------------------------------------------------------------------------------

# With one id, the kernel lets the program do to its PID 1 what the filter does not forbid.
ON_PID_1 = """
import ctypes, os, resource, signal
def attempt(what, *args):
    try: return what(*args)
    except (OSError, ValueError) as e: return e
for which in range(16):
    for limits in ((1, 1), (0, 0)):
        attempt(resource.prlimit, 1, which, limits)
attempt(os.sched_setaffinity, 1, {max(os.sched_getaffinity(0))})
attempt(os.setpriority, os.PRIO_PROCESS, 1, 19)
attempt(os.setpriority, os.PRIO_USER, 0, 19)
attempt(os.setpriority, os.PRIO_PGRP, 1, 19)
for number in range(1, 65):
    if number not in (signal.SIGKILL, signal.SIGSTOP): attempt(signal.signal, number, signal.SIG_IGN)
    attempt(os.kill, 1, number)
for number in (19, 9): attempt(os.kill, 1, number)
"""


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
def test_whatever_is_done_to_process_1_the_clock_ends_the_run(world, user):
    run = world.run(user, "--timeout", f"{max(3, host.SLOWER):g}", program=ON_PID_1 + "print('still here', flush=True)\nwhile True: pass")
    assert "still here" in run.out and (run.reason, run.status) == ("timeout_wall", 124), str(run)


@pytest.mark.diagonal("user")
@pytest.mark.parametrize("ending, verdict", [("os._exit(7)", ("exited", 7, None)), ("os.kill(os.getpid(), 9)", ("signaled", 137, "SIGKILL"))])
def test_whatever_is_done_to_process_1_it_tells_the_truth(world, user, ending, verdict):
    run = world.run(user, "--timeout", "50", program=ON_PID_1 + ending)
    assert (run.reason, run.record["exit_code"], run.record["signal"]) == verdict, str(run)


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
def test_the_users_own_quotas_are_not_used_up(world, user):
    """Watches count for the user who started the jail, in whatever namespace they are taken."""
    take = """
import ctypes, os
libc, n = ctypes.CDLL(None, use_errno=True), 0
while n < 200 and libc.inotify_init() >= 0: n += 1
print(n, flush=True)
import time; time.sleep(600)
"""
    jailed = world.start(user, *LONG, program=take, record=False)
    try:
        taken = int(jailed.line())
        free = world.shell(user, f"{host.PYTHON} -c '{take.split('import time')[0]}'")
    finally:
        jailed.signal(signal.SIGTERM)
        jailed.wait()
    assert 0 < taken <= 32 and int(free.stdout) >= 64, (taken, free)


def test_a_running_jail_cannot_be_looked_into_by_other_programs_of_the_user(world, user):
    client = world.start(user, *LONG, program=WAIT, record=False)
    try:
        assert client.line() == "ready"
        launcher, one, _ = of_cell(client.pid)
        said = {pid: world.shell(user, f"cat /proc/{pid}/environ /proc/{pid}/mem").stderr for pid in (launcher, one)}
    finally:
        client.signal(signal.SIGTERM)
        client.wait()
    assert all(text.count("Permission denied") == 2 for text in said.values()), said


COPIES = [ # whose private run; which processes have a copy of their parent's memory; which programs are executed
    (users.User("root", 0), ["launcher", "forker"], ["brigd", "brig-init", "python3"]),
    (PLAIN, ["launcher", "newuidmap", "newgidmap", "forker"], ["brigd", "newuidmap", "newgidmap", "brig-init", "python3"]),
    (BARE, ["launcher", "forker"], ["brigd", "brig-init", "python3"]),
]


@pytest.mark.parametrize("who, copies, programs", COPIES, ids=[row[0].name for row in COPIES])
def test_a_private_run_copies_the_memory_of_few_processes(world, tmp_path, who, copies, programs):
    """The others run in that of their parent until they execute a program or end. A copy costs its pages twice: to make, and to write to."""
    if host.lacks("tool:strace"):
        pytest.skip(host.lacks("tool:strace"))
    log = tmp_path / "log"
    argv = world.as_user(who, world.binary, "run", "--private", world.program("print(1)"))
    done = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", "trace=clone,clone3,fork,vfork,execve,execveat", *argv], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "1\n"), done
    calls = re.findall(r"^\d+ +((?:clone3?|v?fork|execve|execveat)\(.*)", log.read_text(), re.MULTILINE)
    calls = calls[next(n for n, call in enumerate(calls) if call.startswith(f'execve("{world.binary}"')) + 1:]
    copied = [call for call in calls if not call.startswith("exec") and "CLONE_VM" not in call]
    executed = [call for call in calls if call.startswith("exec")]
    assert len(copied) == len(copies) and len(executed) == len(programs), "\n".join(calls)


IN_FLIGHT = """
import array, socket, sys
keep = []
try:
    while True:
        keep.append(socket.socketpair())
        keep[-1][0].sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [keep[-1][0].fileno()] * 100))])
except OSError as error:
    assert error.errno == 109, error # ETOOMANYREFS
print('full', flush=True)
sys.stdin.read()
"""


def test_descriptors_that_the_user_has_on_their_way_do_not_hang_his_run(world):
    """The fork asks the launcher then to fetch the listener of its filter, while the forker waits for the fork's exec."""
    filling = world.as_user(BARE, "prlimit", "--nofile=512:512", "/usr/bin/python3", "-c", IN_FLIGHT)
    with subprocess.Popen(filling, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"full\n"
        run = world.run(BARE, "--private", "--timeout", "20", program="print(1)")
        other.stdin.close()
    assert run.reason == "exited" or "Too many references" in run.stderr, str(run) # not: was not started within 10 s


@pytest.fixture
def elsewhere(needs_root, needs_rootfs):
    """A world of this test alone, which it may spoil."""
    made = users.World()
    yield made
    made.close()


def test_newuidmap_gets_nothing_of_the_caller(elsewhere):
    tell = "#!/bin/sh\n{ echo \"$0 $*\" | sed 's/ [0-9]* / PID /'; env; ls -l /proc/self/fd; } >>TOLD; exit 1\n"
    told = elsewhere.root / "tests" / "told"
    fake(elsewhere, tell.replace("TOLD", str(told)), "newuidmap")
    fake(elsewhere, "#!/bin/sh\nexit 1\n", "newgidmap")
    os.chmod(elsewhere.path("tests"), 0o777)
    run = elsewhere.run(PLAIN, "--verbose", program="print('runs')", env={"SECRET": "x", "LD_PRELOAD": ""}, popen={"pass_fds": (0,)})
    text = (elsewhere.path("tests") / "told").read_text()
    assert run.out == "runs\n" and "own-ids" in missing(run) and "refused" in run.stderr, str(run)
    assert text.startswith(f"/usr/bin/newuidmap PID 0 {PLAIN.uid} 1 1 {PLAIN.range[0]} {PLAIN.range[1]}\n"), text
    assert "SECRET" not in text and "LD_PRELOAD" not in text and "HOME" not in text, text
    descriptors = [line for line in text.splitlines() if " -> " in line]
    assert len([d for d in descriptors if "/dev/null" in d or str(told) in d]) >= 3 and not any("socket" in d for d in descriptors), text


def fake(where, text, name):
    """Another program in the place of newuidmap or newgidmap, in that world only."""
    path = where.path("tests") / name
    path.write_text(text)
    path.chmod(0o755)
    where.change(f"mount --bind {where.root}/tests/{name} /usr/bin/{name}")


def test_half_a_map_is_an_error(elsewhere):
    fake(elsewhere, "#!/bin/sh\nexit 3\n", "newgidmap")
    run = elsewhere.run(PLAIN, program="print('ran')")
    assert (run.reason, run.status) == ("setup_failed", 125) and "newgidmap refused (status 3)" in run.stderr, str(run)


def test_without_newuidmap_there_is_one_id(elsewhere):
    elsewhere.change("mount --bind /dev/null /usr/bin/newuidmap")
    run = elsewhere.run(PLAIN, "--verbose", program="print('runs')")
    assert run.out == "runs\n" and "own-ids" in missing(run) and "newuidmap and newgidmap are not there" in run.stderr, str(run)


def test_a_newuidmap_that_is_killed_did_not_refuse(elsewhere):
    for name in ("newuidmap", "newgidmap"):
        fake(elsewhere, "#!/bin/sh\nkill -9 $$\n", name)
    run = elsewhere.run(PLAIN, "--verbose", program="print('runs')")
    assert run.out == "runs\n" and "own-ids" in missing(run) and "were killed, or took longer than 5 s" in run.stderr, str(run)


def test_where_no_user_namespace_can_be_made_nobody_waits_for_newuidmap(elsewhere):
    """Which has five seconds, more than a whole run takes."""
    whole = elsewhere.run(PLAIN, program="pass").seconds
    elsewhere.change(f"mkdir {elsewhere.root}/chroot; mount --rbind / {elsewhere.root}/chroot") # the kernel refuses them in one
    argv = elsewhere.as_user(PLAIN, elsewhere.binary, "run", elsewhere.program("print('ran')"))
    at = argv.index("--") + 1
    began = time.monotonic()
    done = subprocess.run([*argv[:at], "chroot", f"{elsewhere.root}/chroot", *argv[at:]], capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 125 and "unshare" in done.stderr and not done.stdout, done
    assert time.monotonic() - began < whole + 4.5


def test_under_no_new_privs_there_is_one_id(world):
    run = world.run(PLAIN, "--verbose", program="print('runs')", flags=("--no-new-privs",))
    assert run.out == "runs\n" and "own-ids" in missing(run) and "no_new_privs" in run.stderr, str(run)


# --- what it shows ------------------------------------------------------------------------------------------

def test_a_directory_is_shown_and_its_sockets_are_told(world, user):
    folder = world.path("tests") / f"shown-{user.name}"
    folder.mkdir(mode=0o755)
    (folder / "file").write_text("content")
    run = world.run(user, "--verbose", "--ro", world.root / "tests" / folder.name, program=f"""
print(open('/workspace/{folder.name}/file').read())
try: open('/workspace/{folder.name}/new', 'w')
except OSError as e: print(e.errno)
""")
    assert run.out == "content\n30\n" and "inert-ro" in missing(run), str(run)
    assert run.stderr.count("not in force") == 1 and "inert-ro (sockets" in run.stderr, str(run)


def test_a_directory_of_the_users_own_is_shown_only_when_the_program_has_his_id(world, user):
    """As for root: the program is somebody else, and reads what others may read."""
    world.shell(user, "umask 077; mkdir -p ~/private; echo secret > ~/private/file; chmod 755 ~/private").check_returncode()
    run = world.run(user, "--ro", f"{world.root}/home/{user.name}/private", program="print(open('/workspace/private/file').read())")
    assert ("secret" in run.out) == (user is BARE), str(run)


def test_a_directory_over_which_something_is_mounted_is_refused_or_shown_without(world, user):
    run = world.run(user, "--ro", world.root, program="print('ran')")
    assert run.status == 125 and "--ro" in run.stderr and "mounted" in run.stderr, str(run)


# --- stores and places ---------------------------------------------------------------------------------------

@pytest.fixture
def store(world):
    """A copy of root's store that belongs to a user: store(user, place below his home) -> path outside."""
    made = []

    def copy(user, place):
        path = world.path("home") / user.name / place
        made.append(world.path("home") / user.name / place.split("/")[0])
        host.copy_rootfs("basic", path)
        subprocess.run(["chown", "-R", f"{user.uid}:{user.uid}", made[-1]], check=True)
        return path
    yield copy
    for path in made:
        shutil.rmtree(path)


def test_a_users_own_store_comes_first_and_is_locked_while_it_is_used(world, store):
    lock = next(store(PLAIN, ".local/share/brig/rootfs").glob("trees/*")) / "lock"
    client = world.start(PLAIN, *LONG, program=WAIT, record=False)
    try:
        assert client.line() == "ready"
        locked = subprocess.run(["flock", "-n", lock, "true"]).returncode
    finally:
        client.signal(signal.SIGTERM)
        client.wait()
    assert locked == 1


def test_a_store_of_somebody_else_is_refused(world, store):
    store(OTHER, "store")
    (world.path("home") / OTHER.name).chmod(0o711)
    for tree in (world.path("home") / OTHER.name / "store").glob("trees/*"):
        (tree / "lock").chmod(0o644)
    run = world.run(PLAIN, program="print('ran')", env={"BRIG_STORE": f"{world.root}/home/{OTHER.name}/store"})
    (world.path("home") / OTHER.name).chmod(0o700)
    assert run.status == 125 and f"belongs to uid {OTHER.uid}" in run.stderr, str(run)


def test_a_pipe_in_the_place_of_a_stores_lock_holds_nobody_up(world, store):
    for tree in store(PLAIN, "piped").glob("trees/*"):
        (tree / "lock").unlink()
        os.mkfifo(tree / "lock", 0o644)
        os.chown(tree / "lock", PLAIN.uid, PLAIN.uid)
    run = world.run(PLAIN, program="print('ran')", env={"BRIG_STORE": f"{world.root}/home/{PLAIN.name}/piped"})
    assert run.reason in ("exited", "setup_failed"), str(run)


def test_a_home_that_is_closed_to_the_user_leaves_him_roots_store(world, user):
    """As runuser and sudo leave it."""
    run = world.run(user, program="print('ran')", env={"HOME": f"{world.root}/home/{OTHER.name}"})
    assert run.out == "ran\n", str(run)


TRAPS = {"a directory of another": "mkdir {0}; chown 1 {0}", "a link": "ln -s /etc {0}", "a file": "touch {0}"}


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_in_the_place_of_the_runtime_directory_is_left_alone(elsewhere, trap):
    """The home is used. Without one nothing runs, and the message says what to do."""
    elsewhere.change(f"rm -r /run/user/{PLAIN.uid}; d=/tmp/brig-{PLAIN.uid}; " + trap.format("$d"))
    homed = elsewhere.run(PLAIN, program="print('ran')")
    elsewhere.change(f"rm -r /tmp/brig-{PLAIN.uid}")
    later = elsewhere.run(PLAIN, program="print('ran')")
    assert later.out == "ran\n" and not os.path.lexists(elsewhere.path(f"/tmp/brig-{PLAIN.uid}")), "runs at once would have two places, and the same ids"
    elsewhere.change(f"d=/tmp/brig-{PLAIN.uid}; " + trap.format("$d"))
    elsewhere.change(f"sed 's|:[^:]*/home/{PLAIN.name}:|:/nowhere:|' /etc/passwd >/tmp/passwd; cat /tmp/passwd >/etc/passwd")
    homeless = elsewhere.run(PLAIN, program="print('ran')")
    elsewhere.change(f"rm -r /tmp/brig-{PLAIN.uid}")
    assert homed.out == "ran\n" and (elsewhere.path("home") / PLAIN.name / ".brig").is_dir(), str(homed)
    assert (homeless.reason, homeless.status) == ("setup_failed", 125), str(homeless)
    assert f"/tmp/brig-{PLAIN.uid}" in homeless.stderr and "another user" in homeless.stderr and "loginctl enable-linger" in homeless.stderr, str(homeless)


# --- ends ---------------------------------------------------------------------------------------------------

def killed(world, user, dice):
    """One run that is killed somewhere: brig, its brigd, its launcher, newuidmap, or a process of the cell."""
    child = world.start(user, "--timeout", "2", program="import os\nfor n in range(5): os.fork()\nimport time; time.sleep(600)")
    time.sleep(dice.uniform(0, 0.12)) # the random moment
    below = [child.pid]
    for pid in below:
        below += host.children(pid)
    victim = dice.choice(below[:7])
    try:
        os.kill(victim, dice.choice([signal.SIGKILL, signal.SIGTERM]) if victim == child.pid else signal.SIGKILL)
    except ProcessLookupError:
        pass
    return child.wait()


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "range"), indirect=True)
@pytest.mark.parametrize("times", tiers.amounts(4, 24))
def test_a_run_killed_anywhere_leaves_nothing(world, user, times):
    print(f"seed {KILL_SEED}: BRIG_LEAK_SEED={KILL_SEED} repeats it")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda n: killed(world, user, random.Random(KILL_SEED + n)), range(times)))
    hung = [str(run) for run in runs if "[the test killed brig" in run.stderr]
    assert not hung, "\n".join(hung[:3])


@pytest.mark.parametrize("user", tiers.few(["range", "single"], "single"), indirect=True)
@pytest.mark.parametrize("way", tiers.few(["KILL", "TERM", "INT"], "KILL"))
def test_a_killed_brig_takes_its_jail_along(world, user, way):
    client = world.start(user, *LONG, program=WAIT, record=False)
    assert client.line() == "ready"
    client.signal(getattr(signal, f"SIG{way}"))
    assert client.wait().status == {"KILL": -9, "TERM": 143, "INT": 130}[way]


def test_a_killed_launcher_takes_its_jail_along(world, user):
    client = world.start(user, *LONG, program=WAIT, record=False)
    assert client.line() == "ready"
    os.kill(of_cell(client.pid)[0], signal.SIGKILL)
    run = client.wait()
    assert run.status == 143 and "the launcher was killed" in run.stderr, str(run)


def test_a_killed_brigd_takes_its_jail_along(world, user):
    client = world.start(user, *LONG, program=WAIT, record=False)
    assert client.line() == "ready"
    os.kill(host.jail_below(client.pid)["brigd"], signal.SIGKILL)
    run = client.wait()
    assert run.status == 143 and "brigd was killed" in run.stderr, str(run)
