"""What the jail refused to a program: in the record by name, in one line on standard error, and with --why all of it."""
import json
import platform

import pytest

from support import brig as tool
from support import daemon as daemons
from support import host, users, warm
from support.users import BARE, PLAIN

CALLS = """
import ctypes, fcntl, mmap, os, resource, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(call, *words):
    try: call(*words)
    except (OSError, ValueError): pass
"""
TWO = CALLS + "libc.ptrace(0, 0, 0, 0); libc.ptrace(0, 0, 0, 0); attempt(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)\n"
TWO_WORDS = "ptrace (2 times) and socket(AF_NETLINK)"
TWO_ROWS = [{"call": "ptrace", "argument": None, "count": 2, "answer": "EPERM"},
            {"call": "socket", "argument": "AF_NETLINK", "count": 1, "answer": "EAFNOSUPPORT"}]

ROWS = [
    # what the program does, the profile, call, argument, answer
    ("libc.unshare(0x10000000)", "basic", "unshare", None, "EPERM"),
    ("attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)", "basic", "socket", "AF_INET, SOCK_RAW", "EAFNOSUPPORT"),
    ("attempt(socket.socket, socket.AF_INET)", "strict", "socket", "AF_INET", "EAFNOSUPPORT"),
    ("attempt(socket.socket(socket.AF_UNIX).setsockopt, socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 1))", "basic", "setsockopt",
     "_, SOL_SOCKET, SO_LINGER", "ENOPROTOOPT"),
    ("attempt(fcntl.fcntl, 1, 1024, 1)", "basic", "fcntl", "_, F_SETLEASE", "EINVAL"),
    ("libc.ioctl(0, 0x5412, b'x')", "basic", "ioctl", "_, TIOCSTI", "ENOTTY"),
    ("libc.prctl(29, 0, 0, 0, 0)", "basic", "prctl", "PR_SET_TIMERSLACK", "EPERM"),
    ("attempt(resource.setrlimit, resource.RLIMIT_CORE, (0, 0))", "basic", "prlimit64", "0, RLIMIT_CORE", "EPERM"),
    ("attempt(fcntl.flock, 1, fcntl.LOCK_EX)", "strict", "flock", None, "EPERM"),
    ("attempt(mmap.mmap, -1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)", "strict", "mmap", "_, _, PROT_WRITE|PROT_EXEC", "ENOMEM"),
    ("libc.syscall(400)", "basic", "400", None, "EPERM"),
]


@pytest.fixture
def run(jail, run_brig):
    return run_brig


def rows_of(ran):
    assert ran.record, str(ran)
    return ran.record["refused"]


# --- the record ---------------------------------------------------------------------------------------------

@pytest.mark.sample(4)
@pytest.mark.requirement("A11", "A92")
@pytest.mark.parametrize("does, profile, call, argument, answer", ROWS, ids=[f"{row[2]}({row[3] or ''}) of {row[1]} is named" for row in ROWS])
def test_a_refused_call_is_in_the_record(run, does, profile, call, argument, answer):
    ran = run("--profile", profile, program=CALLS + does)
    assert rows_of(ran) == [{"call": call, "argument": argument, "count": 1, "answer": answer}], str(ran)


HONEST = {
    "hello": "print('hello')",
    "threads, processes, files and pipes": "import subprocess, tempfile, threading, sqlite3\nt = threading.Thread(target=print); t.start(); t.join()\n"
                                           "subprocess.run(['ls', '/'], check=True)\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
                                           "sqlite3.connect('/tmp/x').execute('create table t (a)')",
    "an exception": "raise ValueError",
    "asyncio and multiprocessing": "import asyncio, multiprocessing\nasyncio.run(asyncio.sleep(0))\nq = multiprocessing.Queue(); q.put(1); q.get()",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("profile", ["basic", "strict"])
@pytest.mark.parametrize("what", HONEST)
def test_an_honest_program_is_refused_nothing(run, what, profile):
    """So no call of it waits for an answer, as a refused call does."""
    assert rows_of(run("--profile", profile, program=HONEST[what])) == []


@pytest.mark.nightly
def test_numeric_libraries_are_refused_nothing(run):
    if not host.has_rootfs("data-science"):
        pytest.skip("needs the rootfs data-science: ./dev rootfs data-science")
    ran = run("--profile", "data-science", program="import numpy, pandas\nprint(numpy.ones((300, 300)) @ numpy.ones((300, 300)), pandas.DataFrame({'a': [1]}).sum())")
    assert rows_of(ran) == [] and ran.record["exit_code"] == 0, str(ran)


def test_what_libraries_fall_back_from_is_not_told(run):
    ran = run(program=CALLS + "attempt(os.copy_file_range, 0, 1, 1); libc.syscall(435, 0, 0); libc.syscall(470)")
    assert rows_of(ran) == []


def test_calls_of_threads_and_children_are_counted(run):
    ran = run(program=CALLS + """
import threading
def ten():
    for _ in range(10): libc.ptrace(0, 0, 0, 0)
threads = [threading.Thread(target=ten) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
for _ in range(3):
    if os.fork() == 0: ten(); os._exit(0)
    os.wait()
os.execv(sys.executable, ["python3", "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)"])
""")
    assert rows_of(ran) == [{"call": "ptrace", "argument": None, "count": 71, "answer": "EPERM"}], str(ran)


def test_one_call_cannot_fill_the_list(run):
    """Else what a program does not want to be seen would come behind it."""
    rows = rows_of(run(program=CALLS + "for n in range(200): libc.ioctl(0, 0xf000 + n, 0)\nlibc.ptrace(0, 0, 0, 0)"))
    assert [(row["call"], row["argument"], row["count"]) for row in rows] == [
        *(("ioctl", f"_, 0xf00{n}", 1) for n in range(3)), ("ioctl", None, 197), ("ptrace", None, 1)]


def test_a_limit_that_ends_the_run_leaves_the_list(run):
    ran = run("--timeout", "0.5", program=TWO + "import time; time.sleep(600)")
    assert ran.reason == "timeout_wall" and rows_of(ran) == TWO_ROWS, str(ran)


def test_a_run_that_did_not_begin_knows_nothing(run):
    assert rows_of(run("--memory", "100G", program="")) is None


# --- other ways to begin ------------------------------------------------------------------------------------

@pytest.mark.private("users without a service")
@pytest.mark.parametrize("user", [PLAIN, BARE], ids=["with a range of ids", "with one id"])
def test_a_plain_user_is_told_as_well(jail, world, user):
    ran = world.run(user, program=TWO)
    assert rows_of(ran) == TWO_ROWS, str(ran)


@pytest.fixture(scope="module")
def service(jail):
    config = {"runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000}]}
    with daemons.Daemon(config, env={"BRIG_PRESETS": str(host.build_dir() / "profiles")}) as one: # as shipped, also in a session of cold runs
        one.settle()
        with one.connect() as talk:
            warm.wait(talk)
        yield one


@pytest.mark.parametrize("cold", [False, True], ids=["forked", "executed"])
def test_a_service_tells_of_warm_and_cold_runs(service, cold):
    with service.connect() as talk:
        for program, want in ("print(1)", []), (TWO, TWO_ROWS):
            record = talk.run(program, cold=cold).record
            assert record["refused"] == want and record["warm"] is not cold, record


def test_a_strict_run_of_a_service_is_told(service):
    with service.connect() as talk:
        assert talk.run(TWO, profile="strict").record["refused"] == TWO_ROWS


def test_a_service_is_asked_by_a_brig_that_begins_early(service):
    ran = tool.run(program=TWO + "sys.exit(3)", json_record=False, env={"BRIG_SOCKET": str(service.path)})
    assert (ran.status, ran.stderr) == (3, f"brig: the jail refused {TWO_WORDS}; brig run --why lists all\n"), str(ran)


# --- without a listener -------------------------------------------------------------------------------------

@pytest.fixture
def extended(tmp_path):
    """extended("deny sendmsg") -> the environment in which the profile "own" is basic with these lines."""
    def make(*lines):
        for file in (host.REPO / "profiles").iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        profile = json.loads((tmp_path / "basic.json").read_text())
        (tmp_path / "own.json").write_text(json.dumps({**profile, "policy_extend": list(lines)}))
        return {"BRIG_PROFILES": str(tmp_path)}
    return make


@pytest.mark.private("profiles of its own")
def test_a_policy_that_keeps_the_listener_from_being_sent_refuses_without_a_word(jail, extended):
    env = extended("deny sendmsg")
    ran = tool.run("--profile", "own", program=TWO + "sys.exit(3)", env=env)
    assert rows_of(ran) is None and ran.status == 3, str(ran)
    ran = tool.run("--profile", "own", "--why", program=TWO + "sys.exit(3)", env=env, json_record=False)
    assert "which calls the jail refused is not known" in ran.stderr, str(ran)


@pytest.mark.private("profiles of its own")
@pytest.mark.parametrize("line", ["deny clock_gettime", "deny poll", "deny getpid", "deny recvmsg", "errno EACCES @timer"])
def test_no_call_of_the_set_up_waits_for_its_own_listener(jail, extended, line):
    ran = tool.run("--profile", "own", program=TWO, env=extended(line))
    assert ran.status == 0 and [row for row in rows_of(ran) if row in TWO_ROWS] == TWO_ROWS, str(ran)


LISTENS = """
import ctypes, struct, sys, os
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000)) # allow all
libc.prctl(38, 1, 0, 0, 0)
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
fd = libc.syscall(number, 1, 8, ctypes.create_string_buffer(struct.pack("HxxxxxxP", 1, ctypes.addressof(code))))
assert fd >= 0
if os.fork() == 0:
    os.execv(sys.argv[1], sys.argv[1:])
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.private("what began brig is what matters")
def test_a_container_that_listens_itself_keeps_its_listener(jail):
    """A process can have one listener; LXC and Incus install theirs. The run is refused the same calls, and the record has none of them."""
    words = tool.command(program=TWO + "print(open('/proc/self/status').read())")
    ran = tool.Child([host.PYTHON, "-c", LISTENS, *words]).wait()
    record = json.loads(ran.stdout)
    assert record["refused"] is None and record["exit_code"] == 0 and "\nSeccomp_filters:\t2\n" in record["stdout"], str(ran)


# --- one line -----------------------------------------------------------------------------------------------

def test_a_run_that_fails_says_what_was_refused_in_one_line(run):
    ran = run(program=TWO + "sys.exit(3)", json_record=False)
    assert (ran.status, ran.stderr) == (3, f"brig: the jail refused {TWO_WORDS}; brig run --why lists all\n"), str(ran)


def test_of_many_the_first_are_named(run):
    ran = run(program=TWO + "libc.unshare(0x10000000); libc.setns(0, 0); libc.personality(4); sys.exit(1)", json_record=False)
    assert ran.stderr == "brig: the jail refused ptrace (2 times), socket(AF_NETLINK), unshare and 2 more; brig run --why lists all\n", str(ran)


def test_who_asks_a_server_of_the_host_for_localhost_reads_that_it_is_the_jail(run):
    """The C library asks netlink for the interfaces when it resolves a name: that call is not what failed."""
    ran = run(program="import socket\nsocket.create_connection(('localhost', 5432))", json_record=False)
    assert ran.status == 1 and ran.stderr.splitlines()[-2:] == ["ConnectionRefusedError: [Errno 111] Connection refused",
        "brig: this run has no network: its localhost is the jail itself, where only servers that the program has started can be reached; --net HOST lets it reach a host outside"], str(ran)


def test_a_command_is_told_of_its_own_verb(run):
    ran = run(verb="exec", args=["--", "python3", "-c", TWO + "sys.exit(3)"], json_record=False)
    assert (ran.status, ran.stderr) == (3, f"brig: the jail refused {TWO_WORDS}; brig exec --why lists all\n"), str(ran)


QUIET = {"a program that ended well": (TWO, False), "a failure without a refusal": ("raise SystemExit(3)", False), "--json, which has it": (TWO + "sys.exit(3)", True)}


@pytest.mark.parametrize("what", QUIET)
def test_nothing_is_said_of(run, what):
    program, json_record = QUIET[what]
    assert run(program=program, json_record=json_record).stderr == ""


FOREIGN = """
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("b814000000cd80c3")) # mov eax, 20 (getpid); int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs the calls of i386")
def test_sigsys_is_what_the_jail_kills_with(run):
    if host.lacks("int80"):
        pytest.skip(host.lacks("int80"))
    ran = run(program=FOREIGN, json_record=False)
    assert "brig: the jail ends with SIGSYS a program that calls by a foreign ABI; brig run --why lists all\n" in ran.stderr and ran.status == 128 + 31, str(ran)
    ran = run("--why", program=FOREIGN, json_record=False)
    assert "the jail kills for calls by a foreign ABI (i386, x32), which no profile can allow\n" in ran.stderr and "no call" not in ran.stderr, str(ran)


# --- all of it ----------------------------------------------------------------------------------------------

WHY = [
    # what the program does, the profile, what is said of it
    ("libc.ptrace(0, 0, 0, 0)", "basic", ["  ptrace: 1 time, answered with EPERM\n    by the floor: it controls other processes", "no profile can allow it\n"]),
    ("attempt(socket.socket, socket.AF_NETLINK)", "basic", ["  socket(AF_NETLINK): 1 time", "    by the floor: other families are rarely used", "no profile can allow it\n"]),
    ("attempt(fcntl.flock, 1, 2); attempt(fcntl.flock, 1, 2)", "strict",
     ["  flock: 2 times", "    by python-strict.policy, line 8\n", "    allowed by these profiles: basic, ", "policy_extend"]),
    ("attempt(socket.socket, socket.AF_INET)", "strict", ["by python-strict.policy, line 21, which allows it with other arguments\n", "allowed by these profiles: basic, "]),
    ("libc.prctl(29, 0, 0, 0, 0)", "basic", ["by python.policy, line 54, which allows it with other arguments\n", "no other profile allows it; one of your own can"]),
    ("libc.syscall(400)", "basic", ["  call 400: 1 time", "by default: no line of the policy names it\n"]),
    ("pass", "basic", ["brig: the jail refused no call\n"]),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("does, profile, said", WHY, ids=[f"{row[0]} of {row[1]}" for row in WHY])
def test_why_names_the_line_and_what_allows_it(run, does, profile, said):
    ran = run("--profile", profile, "--why", program=CALLS + does, json_record=False)
    assert ran.status == 0 and not [part for part in said if part not in ran.stderr], str(ran)
    assert ran.stderr.endswith("brig: not in this list: refusals by file modes and Landlock, missing files, and calls answered with ENOSYS\n"), str(ran)


def test_why_tells_of_limits(run):
    program = "import os, signal\nfor n in range(20):\n  try:\n    if os.fork() == 0: signal.pause()\n  except OSError: pass"
    ran = run("--pids", "8", "--why", program=program, json_record=False)
    assert "brig: the limit pids of 8 refused something" in ran.stderr and "; --pids asks for more\n" in ran.stderr, str(ran)
    ran = run("--timeout", "0.3", "--why", program="import time; time.sleep(600)", json_record=False)
    assert "brig: the limit --timeout 0.3 ended the run; the same option asks for more\n" in ran.stderr, str(ran)


def test_why_goes_with_json(run):
    ran = run("--why", program=TWO)
    assert rows_of(ran) == TWO_ROWS and "  ptrace: 2 times" in ran.stderr, str(ran)


def test_why_takes_no_value(jail):
    ran = tool.run("--why=all", program="", json_record=False)
    assert ran.status == 2 and "--why" in ran.stderr, str(ran)


def test_why_of_a_run_that_did_not_begin(run):
    ran = run("--memory", "100G", "--why", program="", json_record=False)
    assert ran.status == 125 and "is not known: no program ran" in ran.stderr, str(ran)
