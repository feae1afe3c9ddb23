"""What the program sees: design, section 5."""
import json
import os
import re
import subprocess

import pytest

from support import host

VIEW = """
import builtins, json, os, pwd, resource, socket, sys
os.write(1, json.dumps({
    "argv": sys.argv, "cwd": os.getcwd(), "path": sys.path, "flags": [sys.flags.isolated, sys.flags.no_user_site], "uid": [os.getuid(), os.getgid()],
    "name": pwd.getpwuid(os.getuid()).pw_name, "host": socket.gethostname(), "env": dict(os.environ), "pid": os.getpid(), "ppid": os.getppid(),
    "site": [hasattr(builtins, n) for n in ("exit", "help", "quit")], "main": __name__, "umask": os.umask(0), "cpus": os.cpu_count(), "sid": os.getsid(0) == os.getpid(),
    "fds": sorted(int(n) for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)), "core": [l.split()[4:6] for l in open("/proc/self/limits") if l.startswith("Max core file size")][0],
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "input": sys.stdin.read(), "statvfs": {p: [os.statvfs(p).f_blocks * os.statvfs(p).f_frsize,
    os.statvfs(p).f_files] for p in ("/tmp", "/dev/shm", "/workspace")}, "exe": sys.executable, "tmp": [os.stat(p).st_mode & 0o7777 for p in ("/tmp", "/dev/shm")],
}).encode())
"""


def view(run):
    assert run.status == 0, str(run)
    return json.loads(run.record["stdout"] if run.record and "run_id" in run.record else run.stdout)


@pytest.fixture(scope="module", params=[False, True], ids=["by the interpreter", "by the runner"])
def seen(request, jail, brig, tmp_path_factory):
    from support import brig as tool
    seen = view(tool.run(program=VIEW, json_record=request.param, args=["one", "--json", "", "ä"], folder=tmp_path_factory.mktemp("view"),
                         env={"SECRET_TOKEN": "s3cret", "PYTHONPATH": "/tmp", "LD_BIND_NOW": "1", "NOTIFY_SOCKET": "/x", "TZ": "Asia/Tokyo"}))
    return {**seen, "reports on": [5] if request.param else []}


PROMISES = [
    ("argv is main.py and what follows the file", lambda s: s["argv"] == ["main.py", "one", "--json", "", "ä"]),
    ("the folder is /workspace", lambda s: s["cwd"] == "/workspace"),
    ("the path is that of python3 -I: no folder of the program", lambda s: not {"", "/workspace", "/tmp"} & set(s["path"]) and s["flags"] == [1, 1]),
    ("dist-packages are on the path", lambda s: any(p.endswith("dist-packages") or p.endswith("site-packages") for p in s["path"])),
    ("exit, help and quit are there", lambda s: s["site"] == [True] * 3 and s["main"] == "__main__"),
    ("the user is 1000, called user", lambda s: s["uid"] == [1000, 1000] and s["name"] == "user"),
    ("the host is called brig", lambda s: s["host"] == "brig"),
    ("the process is 2 and its parent is not to be seen", lambda s: s["pid"] == 2 and s["ppid"] in (0, 1)),
    ("it leads a session of its own", lambda s: s["sid"]),
    ("only 0, 1 and 2 are open, and where the runner reports", lambda s: s["fds"] == [0, 1, 2, *s["reports on"]]),
    ("the standard input is empty", lambda s: s["input"] == ""),
    ("the umask is the usual one", lambda s: s["umask"] == 0o22),
    ("the system has four CPUs, on a large host as on a small one", lambda s: s["cpus"] == 4),
    ("/tmp and /dev/shm are everybody's, with the sticky bit", lambda s: s["tmp"] == [0o1777, 0o1777]),
    ("no core is dumped, and no handler of the host is called", lambda s: s["core"] == ["1", "1"]),
    ("the sizes and files are those of basic", lambda s: s["statvfs"] == {"/tmp": [64 << 20, 10000], "/dev/shm": [64 << 20, 10000],
                                                                           "/workspace": [256 << 20, 10000]} and s["files"] == 256),
]


@pytest.mark.parametrize("true_of", [row[1] for row in PROMISES], ids=[row[0] for row in PROMISES])
def test_view(seen, true_of):
    assert true_of(seen), json.dumps(seen, indent=1)


@pytest.mark.row("H7")
@pytest.mark.requirement("B13", "B16")
def test_the_environment_is_an_exact_list(seen):
    env = dict(seen["env"])
    assert (env.pop("HOME"), env.pop("LANG")) == ("/workspace", "C.UTF-8")
    assert re.fullmatch(r"[a-z/:]+", env.pop("PATH")), seen["env"]
    threads = {name for name in env if re.fullmatch(r"[A-Z]+_NUM_THREADS|LOKY_MAX_CPU_COUNT", name)}
    assert {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"} <= threads and {env[name] for name in threads} == {"1"}, seen["env"]
    assert not set(env) - threads, f"more than was promised: {env}"


@pytest.mark.control("H7")
def test_control_the_secret_reaches_a_program_without_a_jail():
    import subprocess
    done = subprocess.run([host.PYTHON, "-c", "import os; print(os.environ['SECRET_TOKEN'])"], env={"SECRET_TOKEN": "s3cret"}, capture_output=True)
    assert done.stdout == b"s3cret\n"


@pytest.mark.requirement("B8")
def test_the_program_file_cannot_be_changed(jail, run_brig):
    program = """
import os
def refused(what, *args):
    try: what(*args); return False
    except OSError: return True
me = "/workspace/main.py"
open("/workspace/new", "w").write("x")
print(refused(open, me, "w"), refused(open, me, "a"), refused(os.chmod, me, 0o777), refused(os.truncate, me, 0), refused(os.unlink, me),
      refused(os.rename, me, "/workspace/other"), refused(os.rename, "/workspace/new", me), open(me).read(7) == "\\nimport")
"""
    run = run_brig(program=program)
    assert run.out.split() == ["True"] * 8, str(run)


COPY = """
import os, shutil, subprocess, sys
shutil.copy(os.path.realpath(sys.executable), "copy"); os.chmod("copy", 0o755)
try: print(subprocess.run(["./copy", "-c", "print('executed')"], capture_output=True, text=True).stdout.strip())
except PermissionError as e: print("refused")
except OSError as e: print("refused", e)
"""


@pytest.mark.parametrize("profile, answer", [("basic", "executed"), ("strict", "refused")],
                         ids=["the workspace executes in basic", "the workspace does not execute in strict"])
def test_exec_in_workspace(jail, run_brig, profile, answer):
    run = run_brig("-p", profile, program=COPY)
    assert run.out.split()[:1] == [answer], str(run)


# --- what is given along ------------------------------------------------------------------------------------

def test_a_program_may_come_on_the_standard_input(jail, run_brig):
    run = run_brig(file="-", args=["a"], input=b"import sys; print(sys.argv, repr(sys.stdin.read()))")
    assert run.out == "['main.py', 'a'] ''\n", str(run)


READ = "import sys; print(repr(sys.stdin.read()))"


def test_what_is_piped_in_is_what_the_program_reads(jail, run_brig):
    run = run_brig(program=READ, input=b"a\nb", json_record=False)
    assert (run.status, run.stdout) == (0, "'a\\nb'\n"), run


LOOP = 'while read -r word; do "$0" run $1 -c "$2"; echo "$word"; done'


def loop_of(brig, tmp_path, line, program, option=""):
    done = subprocess.run(["sh", "-c", line, brig, option, program], cwd=tmp_path, capture_output=True, text=True, timeout=host.HANG)
    return done.stdout, done.stderr


def test_a_loop_of_a_shell_gets_what_a_run_did_not_read_of_its_file(jail, brig, tmp_path):
    words = "".join(f"{word * 30000}\n" for word in "abc") # more than a pipe holds
    (tmp_path / "list").write_text(words)
    assert loop_of(brig, tmp_path, LOOP + " <list", "pass") == (words, "")


def test_a_loop_of_a_shell_whose_input_a_run_got_is_warned(jail, brig, tmp_path):
    (tmp_path / "list").write_text("a\nb\n")
    read, pipe = "input()", "cat list | "
    assert "half read, as in a loop of a shell" in loop_of(brig, tmp_path, LOOP + " <list", read)[1]
    out, said = loop_of(brig, tmp_path, pipe + LOOP, "pass")
    assert out == "a\n" and "did not read its standard input, and the 2 bytes that brig took from it are lost" in said and "--stdin /dev/null leaves" in said, (out, said)
    assert loop_of(brig, tmp_path, pipe + LOOP, "pass", "--stdin=/dev/null") == ("a\nb\n", "")
    assert loop_of(brig, tmp_path, pipe + LOOP, "pass", "-q") == loop_of(brig, tmp_path, pipe + LOOP, read) == ("a\n", "")


def test_a_file_on_standard_input_is_what_the_program_reads(jail, run_brig, tmp_path):
    (tmp_path / "data").write_bytes(b"x" * 300000)
    with open(tmp_path / "data", "rb") as data:
        run = run_brig(program="import sys; print(len(sys.stdin.read()))", popen={"stdin": data}, json_record=False)
    assert (run.status, run.stdout) == (0, "300000\n"), run


def test_a_command_reads_what_is_piped_in(jail, run_brig):
    run = run_brig(verb="exec", args=["--", "cat"], input=b"through", json_record=False)
    assert (run.status, run.stdout) == (0, "through"), run


def test_a_terminal_is_not_the_programs(jail, run_brig):
    """A program that reads would wait for keys, without a word."""
    ours, theirs = os.openpty()
    run = run_brig(program=READ, popen={"stdin": theirs}, json_record=False)
    os.close(theirs)
    os.close(ours)
    assert (run.status, run.stdout) == (0, "''\n"), run


def test_a_pipe_that_never_ends_does_not_outlive_the_program(jail, run_brig):
    reading, writing = os.pipe()
    run = run_brig(program="print(1)", popen={"stdin": reading}, json_record=False)
    os.close(reading)
    os.close(writing)
    assert (run.status, run.stdout) == (0, "1\n"), run


def test_stdin_may_come_from_a_file(jail, run_brig, tmp_path):
    (tmp_path / "data").write_bytes(b"one\ntwo\n" * 10000)
    run = run_brig("--stdin", tmp_path / "data", program="import sys; print(len(sys.stdin.read()))")
    assert run.out == "80000\n", str(run)


def test_a_variable_may_be_given(jail, run_brig):
    run = run_brig("--env", "GREETING=hello=world", "--env", "EMPTY=", program="import os; print(os.environ['GREETING'], repr(os.environ['EMPTY']))")
    assert run.out == "hello=world ''\n", str(run)


@pytest.mark.private("a service shows what everybody may walk to")
def test_a_directory_may_be_shown(jail, run_brig, tmp_path):
    """Also below a folder that nobody else may enter, with files that only we may read."""
    folder = tmp_path / "closed" / "data"
    folder.mkdir(parents=True)
    (folder / "x.txt").write_text("shown")
    (tmp_path / "closed").chmod(0o700)
    program = """
import errno, os
def attempt(what, *args):
    try: what(*args); return "ok"
    except OSError as e: return errno.errorcode[e.errno]
print(open("/workspace/data/x.txt").read(), attempt(open, "data/x.txt", "w"), attempt(open, "data/new", "w"), attempt(os.unlink, "data/x.txt"),
      attempt(os.chmod, "data", 0o777), os.listdir("data"))
"""
    run = run_brig("--ro", folder, program=program)
    assert run.out == "shown EROFS EROFS EROFS EROFS ['x.txt']\n", str(run)
    assert (folder / "x.txt").read_text() == "shown" and os.listdir(folder) == ["x.txt"]


@pytest.mark.parametrize("n", ["1", "2"], ids=["one CPU", "two CPUs"])
def test_the_libraries_are_told_how_many_cpus_there_are(jail, run_brig, n):
    run = run_brig("--cpus", n, program="import os; print(os.environ['OMP_NUM_THREADS'], os.environ['OPENBLAS_NUM_THREADS'])")
    assert run.out.split() == [n, n], str(run)


# --- limits -----------------------------------------------------------------------------------------------

LOWER = [
    ("--tmp-size", "2M", lambda s: s["statvfs"]["/tmp"][0] == s["statvfs"]["/dev/shm"][0] == 2 << 20),
    ("--workspace-size", "3M", lambda s: s["statvfs"]["/workspace"][0] == 3 << 20),
    ("--inodes", "100", lambda s: {v[1] for v in s["statvfs"].values()} == {100}),
    ("--files", "32", lambda s: s["files"] == 32),
]


@pytest.mark.parametrize("option, value, true_of", LOWER, ids=[f"{row[0]} {row[1]} is what the program has" for row in LOWER])
@pytest.mark.requirement("A98")
def test_lowered(jail, run_brig, option, value, true_of):
    found = view(run_brig(option, value, program=VIEW))
    assert true_of(found), found


RAISED = [("--timeout", "301", "301(000)?", "300(000)?"), ("--cpu-time", "301", "301(000)?", "300(000)?"), ("--memory", "2G", "2G", "1G"), ("--pids", "257", "257", "256"),
          ("--cpus", "5", "5", "4"), ("--output", "17M", "17M", "16M"), ("--tmp-size", "2G", "2G", "1G"), ("--workspace-size", "2G", "2G", "1G"),
          ("--inodes", "100001", "100001", "100000"), ("--files", "1025", "1025", "1024")]


@pytest.mark.parametrize("option, value, asked, ceiling", RAISED, ids=[f"{row[0]} {row[1]} is above the ceiling" for row in RAISED])
@pytest.mark.requirement("A98")
def test_raised(jail, run_brig, option, value, asked, ceiling):
    run = run_brig(option, value, program="print('ran')", json_record=False)
    assert run.status == 125 and run.stdout == "" and len(run.stderr.splitlines()) == 1, str(run)
    assert re.search(rf"\b{asked}\b.*\b{ceiling}\b", run.stderr), str(run)


def test_a_refusal_makes_a_record_too(jail, run_brig):
    run = run_brig("--memory", "2G", program="print('ran')")
    assert run.record and run.reason == "denied" and run.record["exit_code"] is None and run.status == 125, str(run)


# --- many at once -----------------------------------------------------------------------------------------

def host_users(token):
    """Of the program with this token, and of everybody in its cell."""
    program = [pid for pid, uid in host.with_token(token) if uid != os.geteuid()]
    cells = {namespace_of(pid) for pid in program}
    return [{uids[0] for pid, _, uids in host.processes() if pid in pids}
            for pids in (program, [pid for pid, *_ in host.processes() if namespace_of(pid) in cells])]


def namespace_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError: # it has ended
        return None


def test_twenty_runs_at_once_have_twenty_host_users(jail, start_brig):
    """And what else is in their cells, which is PID 1, has others."""
    tokens = [f"token-many-{os.getpid()}-{n}-" for n in range(20)]
    held = [start_brig("--timeout", "300", program="import time; print('ready', flush=True); time.sleep(600)", args=[token], json_record=False) for token in tokens]
    assert [child.line() for child in held] == ["ready"] * 20
    uids, in_cells = zip(*[host_users(token) for token in tokens])
    for child in held:
        child.signal(15)
    assert all(len(u) == 1 for u in uids) and len(set.union(*uids)) == 20, uids
    assert sum(map(len, in_cells)) == len(set.union(*in_cells)) == 40, in_cells
    assert [child.wait().status for child in held] == [143] * 20
