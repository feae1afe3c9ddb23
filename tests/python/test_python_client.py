"""The package brig of Python, against a brigd of its own and a service: what a program does is a result, all else an exception that says what to do."""
import asyncio
import copy
import dataclasses
import json
import os
import pathlib
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest

from support import daemon as daemons
from support import fake_server as fake
from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import brig  # noqa: E402
from brig import exact, report  # noqa: E402

pytestmark = pytest.mark.usefixtures("jail")


@pytest.mark.parametrize("where", ["private", "service"], indirect=True)
def test_a_program_has_a_value_output_and_a_record(where):
    result = brig.run("import sys; print('out'); print('err', file=sys.stderr); 6 * 7", **where)
    assert (result.ok, result.value, result.value_repr, result.stdout, result.stderr) == (True, 42, "42", "out\n", "err\n")
    assert (result.verdict, result.status, result.record["exit_code"], result.record["stdout_bytes"]) == ("exited", 0, 0, 4)


def test_input_arguments_variables_and_files_reach_it(where, tmp_path):
    host.open_way(tmp_path)
    (tmp_path / "data").write_text("file")
    result = brig.run("import os, sys; [sys.stdin.read(), sys.argv[1:], os.environ['K'], open('named').read(), open('/workspace/data').read(), os.getcwd()]",
                      stdin="in", args=["a b"], env={"K": "v=w"}, ro={"named": tmp_path / "data", "data": str(tmp_path / "data")}, **where)
    assert result.value == ["in", ["a b"], "v=w", "file", "file", "/workspace"], result
    assert brig.run("import os; os.getcwd()", cwd="/tmp", **where).value == "/tmp"


def test_hosts_that_a_program_may_reach_are_a_list_and_all_others_are_refused():
    code = "import urllib.error, urllib.request\ntry: urllib.request.urlopen('http://b.example/')\nexcept urllib.error.HTTPError as e: told = e.code, e.read().decode()\ntold"
    result = brig.run(code, network=["a.example"], server="private")
    assert result.value[0] == 403 and "b.example is not on the list of hosts that this run may reach" in result.value[1], result
    assert [(one["name"], one["reason"]) for one in result.record["network"]["connections"]] == [("b.example", "not_allowed")], result.record
    assert brig.run("1", network=[], server="private").record["network"] is None
    with pytest.raises(TypeError, match="expected a list of hosts"):
        brig.run("1", network="a.example", server="private")


def test_a_limit_that_the_host_may_lack_is_named_as_on_the_command_line(where):
    assert brig.run("1", memory="64M", allow_missing=["memory", "cpus"], **where).ok
    with pytest.raises(brig.Refused, match="allow_missing"):
        brig.run("1", allow_missing=["pids"], **where)
    with pytest.raises(TypeError, match="expected a list of limits"):
        brig.run("1", allow_missing="memory", **where)


@pytest.mark.parametrize("host_name, says", [("a.example:0", '"0" is no port'), ("", "is no host"), ("b\u00fccher.example", "xn--")])
def test_what_is_no_host_is_an_exception_that_names_it(host_name, says):
    with pytest.raises(brig.Refused) as refused:
        brig.run("1", network=["a.example", host_name], server="private")
    assert "network[1]" in str(refused.value) and says in str(refused.value)


@pytest.mark.parametrize("where", ["private", "service"], indirect=True)
def test_what_a_program_does_is_a_result_and_never_an_exception(where):
    assert str(brig.run("1 / 0", **where).error) == "ZeroDivisionError: division by zero"
    assert brig.run("raise SystemExit(7)", **where).status == 7
    assert (brig.run("import os; os.kill(os.getpid(), 9)", **where).verdict, brig.run("def", **where).error.type) == ("signaled", "SyntaxError")
    late = brig.run("while True: pass", timeout=0.3, **where)
    assert (late.verdict, late.status, late.ok) == ("timeout_wall", 124, False)


def test_a_flood_is_ended_and_the_first_bytes_are_kept(where):
    result = brig.run("while True: print('x' * 1000)", output="10K", **where)
    assert (result.verdict, result.status, result.truncated, len(result.stdout_raw)) == ("output_limit", 153, True, 10240)


def test_large_input_to_a_program_that_does_not_read_it_does_not_hang(where):
    assert brig.run("print('done')", stdin=b"x" * (1 << 20), **where).stdout == "done\n"
    assert brig.run("import sys; len(sys.stdin.read())", stdin=b"x" * (1 << 20), **where).value == 1 << 20


def test_output_is_handed_over_as_it_is_written(where):
    seen = []
    result = brig.run("import sys; print(1, flush=True); print(input())", stdin="2\n", on_stdout=seen.append, **where)
    assert b"".join(seen) == b"1\n2\n" == result.stdout_raw


def test_a_command_runs_and_one_that_is_not_there_is_127(where):
    assert brig.command(["echo", "a b"], **where).stdout == "a b\n"
    missing = brig.command(["no-such-command"], **where)
    assert (missing.exec_error, missing.status, missing.ok) == ("ENOENT", 127, False)
    with pytest.raises(TypeError, match="list of words"):
        brig.command("ls", **where)


@pytest.mark.parametrize("options, error, words", [
    ({"pids": 1000}, brig.Refused, "limits.pids: .*ceiling"), ({"profile": "none"}, brig.Refused, "none"), ({"cwd": "/nope"}, brig.SetupFailed, "No such file"),
    ({"env": {"LD_PRELOAD": "x"}}, brig.Refused, "env"), ({"ro": {"main.py": "/usr"}}, brig.Refused, "ro"), ({"args": ["x" * 70000]}, ValueError, "at most 65536"),
    ({"timeout": "1h"}, brig.Refused, "3600 s is above the ceiling"), ({"timeout": "soon"}, ValueError, "'soon' is not a time"),
], ids=lambda value: str(value)[:30])
def test_what_cannot_be_asked_for_is_an_exception_that_says_what(where, options, error, words):
    with pytest.raises(error, match=words):
        brig.run("1", **options, **where)


@pytest.mark.parametrize("said", ["{}", "[]", "null", "{\"result\": 1}", "x" * 3000000, "[" * 100000, "\"\\" + "\\\"" * 400000, "{\"result\": NaN}", "\xff\xfe"],
                         ids=["nothing in it", "a list", "null", "one key", "too large", "too deep", "quotes without an end", "NaN", "no text"])
def test_a_report_that_the_program_forges_is_none(where, said):
    program = f"import os\ndata = {said!r}.encode('latin-1') * {3 if len(said) > 1 << 20 else 1}\nwhile data: data = data[os.write(5, data):]\nos._exit(0)"
    result = brig.run(program, **where)
    assert result.value is None and (result.report_error or result.verdict == "output_limit"), result.report_error


REPORT = {"result": 1, "result_repr": "1", "error": None, "variables": [], "exit_code": 0, "security_event": None, "security_warnings": []}
SHOWN = {
    "two displays": ({"displays": [{"text/plain": "a\0", "image/png": "iVBORw0KGgo="}, {}]}, None),
    "a bundle of JSON": ({"bundle": {"application/json": {"result": ["\0"]}, "application/vnd.plotly.v1+json": None}, "left_out": ["s"]}, None),
    "33 displays": ({"displays": [{}] * 33}, "displays"),
    "a type of nobody's": ({"displays": [{"text/x": "x"}]}, "text/x"),
    "a display that is none": ({"displays": ["x"]}, "displays: expected an object"),
    "a picture that is none": ({"bundle": {"image/png": "iVBORw0KGgo"}}, "image/png: expected base64"),
    "no picture at all": ({"bundle": {"image/jpeg": ""}}, "image/jpeg: expected base64"),
    "base64 and a newline": ({"bundle": {"application/pdf": "AAA\n"}}, "application/pdf: expected base64"),
    "too much HTML": ({"bundle": {"text/html": "x" * ((2 << 20) + 1)}}, "text/html: expected a text of at most"),
    "too much JSON": ({"bundle": {"application/json": [{"x" * (2 << 20): 1}, "x"]}}, "application/json: more than"),
    "too large a result": ({"result": ["x" * (1 << 20), "x"]}, "result: more than"),
    "101 sentences": ({"left_out": ["s"] * 101}, "left_out"),
    "a long sentence": ({"left_out": ["s" * 1025]}, "left_out"),
}


@pytest.mark.parametrize("more, says", SHOWN.values(), ids=SHOWN)
def test_what_a_report_shows_is_looked_at(more, says):
    data = json.dumps({**REPORT, **more}).encode()
    if says:
        with pytest.raises(ValueError, match=says):
            report.read(data, report.RUN)
    else:
        assert report.read(data, report.RUN) == json.loads(json.dumps({**REPORT, **more}).replace("a\\u0000", "a\ufffd"))


SIGNS_IN_TEXTS = {
    "one long text": ['"' + "[" * (8 << 20)], "one without escapes": ["[" * (8 << 19)], "backslashes": ["\\" * (8 << 19), "[" * 40],
    "quotes": ['"' * (8 << 19), "[" * 40], "many short texts": ["[" * 8] * 200_000,
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("texts", SIGNS_IN_TEXTS.values(), ids=SIGNS_IN_TEXTS)
def test_a_report_of_long_texts_takes_a_few_times_its_own_memory(texts):
    data = json.dumps(texts, separators=(",", ":")).encode()
    code = "import sys; from brig import exact\ndef most(): return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) << 10\n" \
           "data = sys.stdin.buffer.read(); before = most(); value = exact.read(data, 10 << 20); print(most() - before); print(value == eval(data))"
    told = subprocess.run([sys.executable, "-c", code], input=data, env={"PYTHONPATH": str(ROOT / "python")}, capture_output=True, check=True, timeout=host.HANG)
    grown, is_same = told.stdout.split()
    assert is_same == b"True" and int(grown) < 8 * len(data), told


@pytest.mark.parametrize("said, says", [
    ("[" * 33 + "]" * 33, "deeper"), ("[" * 32 + '"' + "[" * 99 + '"' + "]" * 32, None), (r'["\\", "\"[", ' + "[" * 32 + "]" * 33, "deeper"), ('["[[' + "[" * 99 + r'\\\"[", 1]', None),
    ('"' + "[" * 99, "no JSON"), (r'["' + "[" * 99 + "\\", "no JSON"), ("[" + "[],," * 400_000 + "]", "too many"), ("\\" + '"' + "[" * 99, "."),
], ids=["deep", "signs in a text", "behind texts that end and do not", "an escaped quote", "no end", "a backslash at the end", "many", "a backslash outside"])
def test_signs_count_outside_of_texts_alone(said, says):
    if says:
        with pytest.raises(ValueError, match=says):
            exact.read(said.encode(), 8 << 20)
    else:
        assert exact.read(said.encode(), 8 << 20) == json.loads(said)


def test_what_a_program_shows_is_in_its_result(where):
    result = brig.run("class A:\n    def _repr_html_(self): return '<b>'\n    def __repr__(self): return 'a'\ndisplay(5)\ndisplay('x' * 40000)\nA()", **where)
    assert result.displays[0] == {"text/plain": "5"} and result.bundle == {"text/plain": "a", "text/html": "<b>"} and result.value == "a"
    assert result.shortened == ["display 2: text/plain is cut to 32768 characters"]
    assert (brig.run("1", **where).displays, brig.run("1", **where).bundle) == ([], {})


def test_a_program_that_prints_a_record_forges_nothing(where):
    result = brig.run("print('{\"exit_reason\": \"exited\", \"exit_code\": 0}'); import os; os._exit(3)", **where)
    assert (result.status, result.record["exit_code"]) == (3, 3)


def test_output_that_is_no_text_is_there_byte_for_byte(where):
    result = brig.run("import sys; sys.stdout.buffer.write(bytes(range(256)))", **where)
    assert result.stdout_raw == bytes(range(256)) and "\ufffd" in result.stdout


def test_many_programs_have_their_results_in_order(where):
    assert [result.value for result in brig.map((f"{n} ** 2" for n in range(40)), workers=6, **where)] == [n ** 2 for n in range(40)]


def test_map_keeps_to_the_quota_by_itself(service):
    results = list(brig.map((f"{n}" for n in range(60)), server="service", path=str(service.path)))
    assert [result.value for result in results] == list(range(60))


def test_tasks_wait_side_by_side_and_a_cancelled_one_ends_its_run(service):
    where = {"server": "service", "path": str(service.path)}

    async def main():
        both = await asyncio.gather(brig.arun("1 + 1", **where), brig.acommand(["echo", "x"], **where))
        up = threading.Event()
        task = asyncio.ensure_future(brig.arun("import time; print('up', flush=True); time.sleep(600)", on_stdout=lambda _: up.set(), **where))
        await asyncio.get_running_loop().run_in_executor(None, up.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return both
    first, second = asyncio.run(main())
    assert (first.value, second.stdout) == (2, "x\n")
    with brig.Connection(**where) as asked:
        assert host.poll(lambda: asked.ask("list")["runs"] == [])


@pytest.mark.parametrize("where", ["private", "service"], indirect=True)
def test_one_connection_serves_many_runs(where):
    with brig.Connection(where["server"], where.get("path")) as connection:
        assert [brig.run(f"{n}", connection=connection).value for n in range(3)] == [0, 1, 2]
        assert connection.ask("hello")["version"] == 1


def test_nothing_stays_open_after_runs_good_and_bad(where):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))
    brig.run("1", **where)
    before = descriptors()
    for code in "1", "1 / 0", "import os; os._exit(1)":
        brig.run(code, **where)
    for options in {"pids": 1000}, {"cwd": "/nope"}, {"ro": ["/usr", "/nope"]}:
        with pytest.raises((brig.BrigError, OSError)):
            brig.run("1", **options, **where)
    assert descriptors() == before


def test_a_service_that_goes_away_in_the_middle_is_told(tmp_path):
    with daemons.Daemon() as mortal:
        up = threading.Event()
        killer = threading.Thread(target=lambda: (up.wait(host.HANG), os.kill(mortal.pid if hasattr(mortal, "pid") else mortal.process.pid, signal.SIGKILL)))
        killer.start()
        with pytest.raises(brig.ServiceLost, match="brigd was killed"):
            brig.run("import time; print('up', flush=True); time.sleep(600)", on_stdout=lambda _: up.set(), server="service", path=str(mortal.path))
        killer.join()


def test_no_service_is_an_exception_that_says_what_to_do(tmp_path):
    with pytest.raises(brig.ServiceUnavailable, match="start brigd, or use server=\"private\""):
        brig.run("1", server="service", path=str(tmp_path / "none.sock"))


@pytest.mark.parametrize("answer", [b"no json", b"[]", b"{}", b'{"event":"ended"}', b'{"event":"started","run":"x","streams":["stdout"],"output_bytes":1}'],
                         ids=["no JSON", "a list", "nothing", "an end without a record", "a start without its streams"])
def test_a_service_that_talks_nonsense_is_one_that_is_broken(answer):
    def script(server):
        server.receive()
        server.sock.send(answer)
    with fake.server(script) as env, pytest.raises((brig.ProtocolError, brig.ServiceLost)):
        brig.run("1", server="service", path=env["BRIG_SOCKET"])


@pytest.mark.parametrize("is_over", [False, True], ids=["goes on", "has ended"])
def test_a_program_that_takes_back_its_output_makes_nobody_wait(is_over):
    stolen, done, seen, readers = threading.Event(), threading.Event(), [], {}

    def script(server):
        tag = server.receive()["tag"]
        ends = [os.pipe() for _ in range(2)]
        for name, (reading, writing) in zip(("stdout", "stderr"), ends):
            os.write(writing, b"x")
            readers[name] = os.open(f"/proc/self/fd/{writing}", os.O_RDONLY) # as a program does it
            server.pipes[name] = writing
        server.send({**fake.STARTED, "tag": tag}, [reading for reading, _ in ends])
        for reading, _ in ends:
            os.close(reading)
        assert is_over or stolen.wait(host.HANG)
        server.send({**fake.ended(), "tag": tag})
        assert done.wait(host.HANG), "the client still waits for a byte"

    def thief(of):
        def take(data): # between the poll that has seen both streams and the read of the other one
            seen.append(data)
            os.read(readers[of], 1)
            stolen.set()
        return take
    with fake.server(script) as env:
        result = brig.run("1", on_stdout=thief("stderr"), on_stderr=thief("stdout"), server="service", path=env["BRIG_SOCKET"])
        done.set()
    for fd in readers.values():
        os.close(fd)
    assert (result.verdict, seen, result.stdout_raw + result.stderr_raw) == ("exited", [b"x"], b"x")


@pytest.mark.parametrize("options, words", [({"code": "x = '\ud83d'"}, "code: .* half a character"), ({"stdin": "\ud83d"}, "stdin: "), ({"args": ["\ud83d"]}, "args: "), ({"args": ["a\0b"]}, "args: .*NUL"),
                                            ({"env": {"A": "\ud83d"}}, "env: "), ({"env": {"A=B": "x"}}, "env: 'A=B'"), ({"env": {"": "x"}}, "env: ")])
def test_a_value_that_no_program_can_have_is_a_valueerror_that_names_the_argument(options, words):
    with pytest.raises(ValueError, match=words):
        brig.run(**{"code": "1", **options})


def test_a_result_is_a_plain_dict_for_who_wants_one():
    result = brig.run("1", get=["*"], files={"a": "1"})
    assert dataclasses.asdict(result)["files"] == {"a": b"1"} and copy.deepcopy(result).files == pickle.loads(pickle.dumps(result)).files == {"a": b"1"}


def test_a_file_of_proc_is_put_with_what_is_read_from_it():
    assert brig.run("open('version').read()", files={"version": pathlib.Path("/proc/version")}).value == pathlib.Path("/proc/version").read_text()


def test_files_that_no_pattern_of_a_run_names_are_not_in_its_result():
    def script(server):
        tag = server.receive()["tag"]
        with socket.socket(fileno=os.dup(server.fds[-1])) as files:
            for _ in range(4): # as a jail does: first what the client has to send, an end, two patterns and an end
                length = struct.unpack("=IIQ", files.recv(16, socket.MSG_WAITALL))[1]
                files.recv(length, socket.MSG_WAITALL)
            files.sendall(b"".join(struct.pack("=IIQ", 1, len(name), 1) + name + b"1" for name in (b".bashrc", b"a*", b"ab", b"out/b.csv", b"out/c")) + bytes(16))
        server.start(tag=tag)
        server.send({**fake.ended(), "tag": tag})
    with fake.server(script) as env:
        result = brig.run("1", get=["out/*.csv", r"a\*"], server="service", path=env["BRIG_SOCKET"])
    assert (result.files, result.left_out) == ({"a*": b"1", "out/b.csv": b"1"}, {})


@pytest.mark.sample(1)
@pytest.mark.parametrize("guide", ["python", "tools"])
def test_the_guide_works_as_written(guide):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / f"docs/guide/{guide}.md").read_text(), re.M | re.S)
    done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=ROOT, capture_output=True, text=True, timeout=host.HANG,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "BRIG_SOCKET": ""})
    assert len(blocks) >= 4 and done.returncode == 0, done.stderr


def test_the_examples_with_tools_say_what_the_guide_says():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "BRIG_SOCKET": ""}
    done = subprocess.run([sys.executable, ROOT / "examples/tools/orders.py"], capture_output=True, text=True, timeout=host.HANG, env=env)
    assert "shop.remind: denied by this run's rules\n62 calls, 1 denied" in done.stdout, done
    one_by_one, code = re.search(r"read and write (\d+) characters; with code, (\d+)", done.stdout).groups()
    guide = (ROOT / "docs/guide/tools.md").read_text()
    assert f"one by one | {one_by_one} |" in guide and f"what it prints | {code} |" in guide
    for answer, said in (("y\n", "three bottles"), ("", "notes.write: declined")):
        done = subprocess.run([sys.executable, ROOT / "examples/tools/approve.py"], input=answer, capture_output=True, text=True, timeout=host.HANG, env=env)
        assert said in done.stdout and "notes.delete: denied by this run's rules" in done.stdout, done


def test_its_statuses_are_those_that_the_manual_tells_of_brig_run():
    from brig import result
    said = dict(re.findall(r"^\.It Cm (\w+) Pq status: (\d+)$", (host.build_dir() / "man/brig.1").read_text(), re.M))
    assert {name: str(status) for name, status in result._STATUS.items()} == {name: said[name] for name in result._STATUS}


def test_a_connection_is_used_again_and_one_that_was_closed_is_not(monkeypatch):
    """In a service of this test's own, which is started anew in between."""
    with daemons.Daemon() as running:
        where = {"server": "service", "path": str(running.path)}

        def connected():
            return running.connect().ask("stats")["connected"]
        before = connected()
        assert [brig.run(f"{n}", **where).value for n in range(5)] == list(range(5))
        assert connected() - before == 2 # one, and ours
        with pytest.raises(brig.Refused):
            brig.run("1", profile="none", **where)
        assert brig.run("1 / 0", **where).status == 1
        running.stop()
        running.start()
        assert brig.run("7", **where).value == 7


def test_a_fork_of_the_caller_has_connections_of_its_own(where):
    assert brig.run("1", **where).value == 1
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, b"%d" % brig.run("2", **where).value)
        finally:
            os._exit(0)
    os.close(writing)
    assert brig.run("3", **where).value == 3 and os.read(reading, 10) == b"2"
    os.waitpid(pid, 0)
    os.close(reading)
