"""A recipe of another Debian release with another Python, and that of examples/rootfs for a C compiler."""
import json
import os
import subprocess

import pytest

from builder import BUILD, REPO, Rootfs
from support import daemon as daemons
from support import host, warm
from wheels import wheel

pytestmark = pytest.mark.nightly
EXAMPLES = REPO / "examples/rootfs"
LONG = 5 * host.HANG # whole builds


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return Rootfs(tmp_path_factory.mktemp("examples") / "store")


@pytest.fixture(scope="session")
def debian12(store, needs_root):
    done = store("build", "basic-debian12", timeout=LONG)
    assert done.returncode == 0, done.stderr
    return store


@pytest.fixture(scope="session")
def gcc(store, needs_root):
    done = store("build", EXAMPLES / "gcc.json", timeout=LONG)
    assert done.returncode == 0, done.stderr
    return store


@pytest.fixture
def profiles(tmp_path):
    """profiles(NAME={profile}): a folder with these."""
    def make(**made):
        for path in (REPO / "profiles").glob("*.policy"):
            (tmp_path / path.name).write_text(path.read_text())
        for name, text in made.items():
            (tmp_path / f"{name}.json").write_text(json.dumps({"policy": "python", **text}))
        tmp_path.chmod(0o755)
        return {**os.environ, "BRIG_PROFILES": str(tmp_path)}
    return make


def brig(store, env, *words, program=None):
    return subprocess.run([BUILD / "bin/brig", *words], input=program, capture_output=True, text=True, timeout=host.HANG, env={**env, "BRIG_STORE": str(store.store)})


# --- another release ---

PROGRAM = """
import asyncio, ctypes, dbm.gnu, lzma, multiprocessing, sqlite3, ssl, subprocess, sys, zoneinfo
print(sys.version_info[:2], zoneinfo.ZoneInfo("US/Eastern"), len(ssl.create_default_context().get_ca_certs()) > 100)
print(subprocess.run(["sh", "-c", "ls /usr/bin/python3 | grep -c py"], capture_output=True, text=True).stdout.strip())
{"answer": 42}
"""


def test_debian12_runs_programs_and_reports_them(debian12, profiles):
    record = json.loads(brig(debian12, profiles(mine={"rootfs": "basic-debian12"}), "run", "--json", "-p", "mine", "-", program=PROGRAM).stdout)
    assert (record["exit_code"], record["stdout"], record["result"]) == (0, "(3, 11) US/Eastern True\n1\n", {"answer": 42}), record


def test_debian12_reports_an_error_as_its_python_shows_it(debian12, profiles):
    record = json.loads(brig(debian12, profiles(mine={"rootfs": "basic-debian12"}), "run", "--json", "-p", "mine", "-", program="def f():\n    1/0\nf()\n").stdout)
    assert record["exit_code"] == 1 and record["error"]["traceback"] == record["stderr"] and record["error"]["type"] == "ZeroDivisionError", record


def test_debian12_checks_programs(debian12, profiles):
    done = brig(debian12, profiles(mine={"rootfs": "basic-debian12"}), "check", "-p", "mine", "-", program="x = (\n")
    assert done.returncode == 1 and "never closed" in done.stdout + done.stderr, done


def test_debian12_forks_runs_of_a_zygote(debian12, profiles):
    env = profiles(mine={"rootfs": "basic-debian12", "warm": "ready"})
    config = {"access": [{"uid": 0, "profiles": ["mine"], "runs_per_minute": 1000}]}
    with daemons.Daemon(config, env={"BRIG_PRESETS": env["BRIG_PROFILES"], "BRIG_STORE": str(debian12.store)}) as service:
        with service.connect() as talk:
            warm.wait(talk, "mine")
            forked = talk.run(PROGRAM, profile="mine")
            assert forked.record["warm"] and forked.stdout == "(3, 11) US/Eastern True\n1\n", forked.stderr
            late = "class A:\n    def __del__(self): print('late')\ndef f():\n    a = A()\n    1/0\nf()\n"
            for cold in (False, True):
                done = talk.run(late, profile="mine", cold=cold)
                assert (done.record["warm"], done.record["exit_code"], done.stdout) == (not cold, 1, "late\n"), done.stderr


def test_debian12_takes_wheels(debian12, profiles, tmp_path):
    line = wheel(tmp_path / "folder", "greeting", {"greeting.py": "print('hello from a wheel')\n"})
    (tmp_path / "requirements.txt").write_text(line)
    sources = json.loads((REPO / "recipes/basic.json").read_text())["sources"]
    small = {"suite": "bookworm", "sources": sources, "packages": ["python3"], "omit": ["ca-certificates"], "prune": ["/etc/apt", "/usr/share/doc", "/usr/share/man", "/var"],
             "requirements": "requirements.txt", "wheels": "folder"}
    (tmp_path / "greeted.json").write_text(json.dumps(small))
    done = debian12("build", tmp_path / "greeted.json", timeout=LONG)
    assert done.returncode == 0, done.stderr
    (tmp_path / "greeted.json").unlink()
    done = brig(debian12, profiles(mine={"rootfs": "greeted"}), "run", "-p", "mine", "-", program="import greeting\n")
    assert (done.returncode, done.stdout) == (0, "hello from a wheel\n"), done.stderr


# --- a compiler ---

COMPILE = """
import subprocess
with open("/workspace/root.c", "w") as f:
    f.write('#include <math.h>\\n#include <stdio.h>\\nint main(int n, char **v) { printf("%.3f\\\\n", sqrt(n + 1.0)); return 3; }\\n')
subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", "/workspace/root", "/workspace/root.c", "-lm"], check=True)
done = subprocess.run(["/workspace/root"], capture_output=True, text=True)
print(done.returncode, done.stdout, end="")
"""


def test_a_run_compiles_and_executes_a_c_program_where_its_workspace_may_hold_programs(gcc, profiles):
    env = profiles(may={"rootfs": "gcc"}, may_not={"rootfs": "gcc", "workspace_exec": False})
    done = brig(gcc, env, "run", "-p", "may", "-", program=COMPILE)
    assert (done.returncode, done.stdout) == (0, "3 1.414\n"), done.stderr
    done = brig(gcc, env, "run", "-p", "may_not", "-", program=COMPILE)
    assert done.returncode == 1 and "PermissionError: [Errno 13] Permission denied: '/workspace/root'" in done.stderr, done


def test_exec_starts_the_compiler_and_what_it_made(gcc, profiles):
    script = "printf 'int main(void) { return 7; }' >x.c && gcc -static -o x x.c && ./x"
    done = brig(gcc, profiles(may={"rootfs": "gcc"}), "exec", "-p", "may", "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (7, "")
