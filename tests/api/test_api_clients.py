"""Real clients, unmodified: sandbox-fusion and judge0 from PyPI, piston-client from npm; and verl's and NeMo's requests with their rules of repeating."""
import functools
import json
import os
import subprocess
import sys
import threading

import pytest

from support import host, node
from support.api import TOKEN

pytestmark = pytest.mark.nightly
FOLDER = host.build_dir() / "pypi"


@functools.lru_cache(maxsize=None)
def lacks():
    """None when the packages of PyPI are there, if need be fetched just now; else the reason for a skip."""
    done = subprocess.run([host.REPO / "dev", "pypi"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return None if done.returncode == 0 else f"needs packages of PyPI: ./dev pypi said {done.stderr.strip().splitlines()[-1:]}"


def python(program, **env):
    """What a program of these packages prints, as JSON."""
    if lacks():
        pytest.skip(lacks())
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(FOLDER), **env}, capture_output=True, text=True, timeout=host.HANG, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


FUSION = """
import json, os
from sandbox_fusion import *
set_endpoint(os.environ["URL"])
one = run_code(RunCodeRequest(code="print(input()); open('o', 'w').write('x')", language="python", stdin="abc", fetch_files=["o"], run_timeout=30))
late = run_code(RunCodeRequest(code="while True: pass", language="python", run_timeout=1))
bad = run_code(RunCodeRequest(code="1/0", language="python"))
cells = run_jupyter(RunJupyterRequest(cells=["a = 1", "print(a)"]))
many = run_concurrent(run_code, args=[[RunCodeRequest(code=f"print({n})", language="python")] for n in range(16)], concurrency=8)
names = SummaryMapping(Success="ok", Failed="failed", RunTimeout="late", RunFailed="bad")
print(json.dumps({"one": [one.status, one.run_result.stdout, one.files], "cells": [c.stdout for c in cells.cells], "many": [m.run_result.stdout for m in many],
                  "words": [summary_run_code_result(r, names) for r in (one, late, bad)]}))
"""


@pytest.mark.parametrize("token", [None, TOKEN], ids=["open", "token-in-the-url"])
def test_sandbox_fusion_of_pypi(start_api, token):
    api = start_api(token=token)
    url = api.url.replace("//", f"//any:{token}@") if token else api.url
    said = python(FUSION, URL=url)
    assert said["one"] == ["Success", "abc\n", {"o": "eA=="}] and said["cells"] == ["", "1\n"]
    assert said["many"] == [f"{n}\n" for n in range(16)] and said["words"] == ["ok", "late", "bad"]


JUDGE0 = """
import json, os
import judge0
client = judge0.Client(os.environ["URL"], {"X-Auth-Token": os.environ["TOKEN"]})
tested = judge0.run(client=client, source_code="print(int(input()) + 1)", language=judge0.PYTHON, test_cases=[("1", "2"), ("2", "4")])
plain = judge0.run(client=client, source_code="import sys; print('hé'); print('e', file=sys.stderr); raise SystemExit(3)", language=judge0.PYTHON)
late = judge0.run(client=client, source_code="while True: pass", language=judge0.PYTHON, wall_time_limit=1)
many = judge0.run(client=client, submissions=[judge0.Submission(source_code=f"print({n})", language=judge0.PYTHON) for n in range(25)])
print(json.dumps({"tested": [t.status.name for t in tested], "plain": [plain.status.name, plain.stdout, plain.stderr, plain.exit_code], "late": late.status.name,
                  "many": [m.stdout for m in many], "version": client.version, "time": plain.time >= 0}))
"""


def test_judge0_of_pypi(start_api):
    api = start_api(token=TOKEN)
    said = python(JUDGE0, URL=api.url, TOKEN=TOKEN)
    assert said["tested"] == ["ACCEPTED", "WRONG_ANSWER"] and said["late"] == "TIME_LIMIT_EXCEEDED" and said["time"]
    assert said["plain"] == ["RUNTIME_ERROR_NZEC", "hé\n", "e\n", 3] and said["many"] == [f"{n}\n" for n in range(25)]


PISTON = """
import piston from "piston-client";
const client = piston({ server: process.env.URL });
const answers = [await client.runtimes(), await client.execute("python", "import sys; print(6 * 7, sys.argv[1:])"),
                 await client.execute({ language: "python", files: [{ content: "import other; print(other.x)" }, { name: "other.py", content: "x = 5" }], args: [] }),
                 await client.execute("python", "while True: pass", { runTimeout: 500 }), await client.execute("cobol", "x")];
console.log(JSON.stringify(answers));
"""


def test_piston_client_of_npm(start_api):
    if node.lacks() or not (node.FOLDER / "node_modules" / "piston-client").exists():
        pytest.skip(node.lacks() or "needs piston-client: ./dev node")
    api = start_api()
    script = node.FOLDER / "piston.mjs"
    script.write_text(PISTON)
    done = subprocess.run([node.PROGRAM, script], env={**os.environ, "URL": api.url}, capture_output=True, text=True, timeout=host.HANG, check=False)
    assert done.returncode == 0, done.stderr
    runtimes, plain, files, late, wrong = json.loads(done.stdout)
    assert {row["language"] for row in runtimes} == {"python", "bash"}
    assert plain["run"]["output"] == "42 ['1', '2', '3']\n" and files["run"]["stdout"] == "5\n"
    assert late["run"]["status"] == "TO" and late["run"]["signal"] == "SIGKILL" and "required" in wrong["message"]


# --- rules of repeating: those of verl and of NeMo-Skills --------------------------------------------------

def verl(api, code, tries=10):
    """As verl scores a program: only a 504 is sent again, with a growing pause; everything else is the program's."""
    for n in range(tries):
        answer = api.request("POST", "/run_code", {"code": code, "language": "python", "compile_timeout": 10, "run_timeout": 10})
        if answer.status != 504:
            break
        host.poll(lambda: True, every=0.1 * (n + 1))
    if answer.status != 200 or answer.json["status"] == "SandboxError":
        return -1
    result = answer.json["run_result"]
    return {"TimeLimitExceeded": -3, "Error": -2, "Finished": result["stdout"].rstrip()}[result["status"]]


def test_256_rewards_at_once_have_no_false_zero_while_places_are_few(start_api, service):
    api, found = start_api("--runs", "8", "--wait", "5", env=service().env), {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: verl(api, f"print({n})")})) for n in range(256)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: value for n, value in found.items() if value != str(n)} == {} and len(found) == 256


def test_nemo_replays_its_history_when_its_session_was_lost(start_api):
    api, history = start_api(), []

    def execute(code):
        said = api.execute(code, "s")
        if said["new_session_created"] and history:
            for old in history:
                api.execute(old, "s")
            said = api.execute(code, "s")
        history.append(code)
        return said["stdout"]
    execute("x = 1")
    assert execute("print(x)") == "1\n"
    api.ask("DELETE", "/sessions/s")
    assert execute("print(x + 1)") == "2\n"
