"""A program that attacks the bridge to its tools, and tools that attack a program: what is broken ends the bridge, and nothing hangs or grows."""
import json
import os
import resource
import socket
import threading

import pytest

from support import host, tool_bridge
from support.tool_bridge import Raw, brig, call

MIB = 1 << 20


def add(a: int = 1, b: int = 2) -> int:
    return a + b


def deep(n, opening="[", closing="]"):
    return (opening * n + closing * n).encode()


def line(text):
    return text.encode() + b"\n"


HONEST = line('{"id": 1, "op": "call", "name": "add", "args": {"a": 1}}')
BROKEN = {
    "no JSON": line("add(1)"),
    "empty": b"\n",
    "no object": line("[1]"),
    "two objects": line('{"id": 1, "op": "names", "under": ""} {}'),
    "no UTF-8": b'{"id": 1, "op": "names", "under": "\xff"}\n',
    "half of a pair": line('{"id": 1, "op": "names", "under": "\\ud800"}'),
    "NaN": line('{"id": 1, "op": "call", "name": "add", "args": {"a": NaN}}'),
    "infinity": line('{"id": 1, "op": "call", "name": "add", "args": {"a": 1e999}}'),
    "a long number": line('{"id": 1, "op": "call", "name": "add", "args": {"a": ' + "9" * 100_000 + "}}"),
    "a key twice": line('{"id": 1, "op": "call", "name": "add", "name": "drop", "args": {}}'),
    "an argument twice": line('{"id": 1, "op": "call", "name": "add", "args": {"a": 1, "a": 2}}'),
    "deep": b'{"id": 1, "op": "call", "name": "add", "args": {"a": ' + deep(100) + b"}}\n",
    "very deep": b'{"id": 1, "op": "call", "name": "add", "args": {"a": ' + deep(200_000) + b"}}\n",
    "deep objects": line('{"id": 1, "op": "call", "name": "add", "args": ' + '{"a": ' * 100 + "1" + "}" * 100 + "}"),
    "id 0": line('{"id": 0, "op": "names", "under": ""}'),
    "a negative id": line('{"id": -1, "op": "names", "under": ""}'),
    "an id that is true": line('{"id": true, "op": "names", "under": ""}'),
    "an id with a fraction": line('{"id": 1.0, "op": "names", "under": ""}'),
    "an id that is text": line('{"id": "1", "op": "names", "under": ""}'),
    "a huge id": line('{"id": 9007199254740993, "op": "names", "under": ""}'),
    "no id": line('{"op": "names", "under": ""}'),
    "no op": line('{"id": 1}'),
    "an unknown op": line('{"id": 1, "op": "allow", "name": "add"}'),
    "an op that is a list": line('{"id": 1, "op": ["call"]}'),
    "an answer": line('{"id": 1, "result": 3}'),
    "a call with a result": line('{"id": 1, "op": "call", "name": "add", "args": {}, "result": 3}'),
    "an approval": line('{"id": 1, "op": "call", "name": "add", "args": {}, "approved": true}'),
    "arguments in a list": line('{"id": 1, "op": "call", "name": "add", "args": [1]}'),
    "no arguments": line('{"id": 1, "op": "call", "name": "add"}'),
    "a name that is none": line('{"id": 1, "op": "call", "name": 3, "args": {}}'),
    "a line of more than 1 MiB": b'{"id": 1, "op": "names", "under": "' + b"x" * MIB + b'"}\n',
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_line_ends_the_bridge_and_calls_nothing(what):
    called = []
    with Raw({"add": lambda **args: called.append(args), "drop": lambda: called.append("drop")}) as raw:
        try:
            raw.say(BROKEN[what])
        except BrokenPipeError:
            pass # it did not want the whole of it
        assert raw.hear() is None
        assert "broken" in raw.bridge.ended
    assert not called and raw.bridge.figures()["n"] == 0


def test_an_honest_line_is_answered():
    """The control of the others."""
    with Raw({"add": add}) as raw:
        assert raw.ask(HONEST) == {"id": 1, "result": 3}
        assert raw.ask(HONEST.replace(b"\n", b"\r\n")) == {"id": 1, "result": 3} # the id is free again


def test_an_id_in_use_ends_the_bridge():
    gate = threading.Event()
    with Raw({"wait": lambda: gate.wait(host.HANG)}) as raw:
        raw.say(call(1, "wait"), call(1, "wait"))
        assert raw.hear() is None and "in use" in raw.bridge.ended
        gate.set()


@pytest.mark.parametrize("name", ["add\n", "add\n{\"id\": 2, \"op\": \"call\", \"name\": \"drop\", \"args\": {}}", "", "../add", "add\0", "Add", "add ", "drop", "__class__", "x" * 5000])
def test_a_name_is_compared_as_it_is_and_what_was_not_allowed_is_not_called(name):
    called = []
    with Raw({"add": lambda: called.append("add"), "drop": lambda: called.append("drop")}, deny="drop") as raw:
        answer = raw.ask(call(1, name))
        assert answer["error"]["kind"] == ("denied" if name == "drop" else "not_found")
        listed = raw.bridge.figures()["calls"][0]["name"]
    assert not called and listed == name[:128]


def test_arguments_that_look_like_another_call_are_arguments():
    with Raw({"echo": lambda **args: args}) as raw:
        args = {"op": "call", "name": "drop", "id": 7, "args": {"approved": True}}
        assert raw.ask({"id": 1, "op": "call", "name": "echo", "args": args}) == {"id": 1, "result": args}


def test_half_a_line_that_never_ends_stops_no_clock_and_no_end():
    with Raw({"add": add}) as raw:
        raw.say(HONEST[:20])
        assert raw.bridge.oldest() is None
        raw.say(HONEST[20:])
        assert raw.hear() == {"id": 1, "result": 3}
        raw.say(b'{"id": 2')
    assert raw.bridge.ended and raw.bridge.figures()["n"] == 1


def test_a_line_of_a_hundred_megabytes_is_not_kept():
    with Raw({"add": add}) as raw:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        piece, sent = b"x" * MIB, 0
        try:
            for _ in range(100):
                raw.say(piece)
                sent += 1
        except (BrokenPipeError, ConnectionResetError):
            pass
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert sent < 10 and grown < 20 * 1024, (sent, grown)


def test_a_flood_of_calls_is_bounded_and_each_is_answered():
    limits = brig.ToolLimits(calls=50)
    with Raw({"add": add}, limits=limits) as raw:
        answers = []

        def read():
            while len(answers) < 2000:
                answers.append(raw.hear())
        reader = threading.Thread(target=read)
        reader.start()
        raw.say(b"".join(line(json.dumps(call(i + 1, "add"))) for i in range(2000)))
        reader.join(host.HANG)
        kinds = [answer.get("error", {}).get("kind", "ok") for answer in answers]
        figures = raw.bridge.figures()
    assert kinds.count("ok") == 50 and kinds.count("limit") == 1950 and sorted(answer["id"] for answer in answers) == list(range(1, 2001))
    assert (figures["n"], figures["failed"], len(figures["calls"])) == (2000, 1950, 200)


def test_a_flood_of_questions_is_bounded():
    """Each looks through all tools."""
    with Raw({f"t{i}": add for i in range(50)}, limits=brig.ToolLimits(calls=20)) as raw:
        kinds = [raw.ask({"id": i + 1, "op": "find", "words": "t"}).get("error", {}).get("kind", "ok") for i in range(30)]
    assert kinds == ["ok"] * 20 + ["limit"] * 10 and raw.bridge.figures()["n"] == 0


def test_a_flood_that_reads_no_answers_holds_a_bounded_number_of_threads():
    with Raw({"big": lambda: "x" * 500_000}, limits=brig.ToolLimits(calls=100_000, at_once=4)) as raw:
        raw.sock.settimeout(0.5)
        try:
            for i in range(100_000):
                raw.say(call(i + 1, "big"))
        except OSError: # it waits for us, as we for it
            pass
        assert sum(thread.name == "brig-tools" for thread in threading.enumerate()) <= 5
        assert raw.bridge.oldest() is None or raw.bridge.figures()["n"] < 10_000
    assert raw.bridge.ended


@pytest.mark.parametrize("way", ["in", "out"])
def test_bytes_are_bounded_each_way(way):
    limits = brig.ToolLimits(bytes=MIB, calls=1000)
    tools = {"take": lambda text="": len(text), "give": lambda: "x" * 100_000}
    with Raw(tools, limits=limits) as raw:
        for i in range(30):
            try:
                answer = raw.ask(call(i + 1, "take", text="x" * 100_000) if way == "in" else call(i + 1, "give"))
            except (BrokenPipeError, ConnectionResetError):
                answer = None
            if answer is None:
                break
        assert 5 < i < 15 and f"{MIB} bytes" in raw.bridge.ended


def test_descriptors_that_a_program_sends_are_closed():
    reading, writing = os.pipe()
    with Raw({"add": add}) as raw:
        socket.send_fds(raw.sock, [HONEST], [writing])
        os.close(writing)
        assert raw.hear() == {"id": 1, "result": 3}
        assert os.read(reading, 1) == b"" # nobody holds the other end
    os.close(reading)


def test_calls_after_the_end_go_nowhere():
    called = []
    with Raw({"add": lambda: called.append(1)}) as raw:
        raw.bridge.close()
        with pytest.raises(OSError):
            for i in range(1000):
                raw.say(call(i + 1, "add"))
        assert raw.hear() is None
    assert not called


def test_a_cancel_of_what_is_not_under_way_is_passed_over():
    with Raw({"add": add}) as raw:
        raw.say({"id": 5, "op": "cancel"}, {"id": 5, "op": "cancel"})
        assert raw.ask(HONEST) == {"id": 1, "result": 3}
        raw.say({"id": 1, "op": "cancel"})
        assert raw.ask(call(2, "add")) == {"id": 2, "result": 3}


def test_a_cancelled_call_has_one_answer_and_its_result_goes_nowhere():
    gate = threading.Event()
    with Raw({"wait": lambda: gate.wait(host.HANG), "add": add}) as raw:
        raw.say(call(1, "wait"), {"id": 1, "op": "cancel"}, {"id": 1, "op": "cancel"})
        assert raw.hear()["error"]["kind"] == "cancelled"
        raw.say(call(1, "add")) # the id is free
        assert raw.hear() == {"id": 1, "result": 3}
        gate.set()
        assert raw.ask(call(9, "add")) == {"id": 9, "result": 3}
        assert [each["verdict"] for each in raw.bridge.figures()["calls"]] == ["cancelled", "ok", "ok"]


def test_a_cancel_that_races_with_an_approval_calls_nothing_that_was_not_approved():
    asked, answer, called = threading.Event(), threading.Event(), []

    def ask(_):
        asked.set()
        return answer.wait(host.HANG)
    with Raw({"drop": lambda: called.append(1), "add": add}, ask=ask, allow="add") as raw:
        raw.say(call(1, "drop"))
        asked.wait(host.HANG)
        raw.say({"id": 1, "op": "cancel"})
        assert raw.hear()["error"]["kind"] == "cancelled"
        answer.set() # yes, but too late
        assert raw.ask(call(2, "add")) == {"id": 2, "result": 3}
    assert not called


def test_arguments_of_another_type_do_not_reach_a_function():
    called = []

    def f(a: int, b: str = ""):
        called.append((a, b))
    with Raw({"f": f}) as raw:
        for number, args in enumerate([{"a": "1"}, {"a": True}, {"a": 1, "b": 2}, {}, {"a": 1, "c": 1}, {"a": None}], 1):
            assert raw.ask({"id": number, "op": "call", "name": "f", "args": args})["error"]["kind"] == "bad_arguments", args
        assert raw.ask(call(99, "f", a=1)) == {"id": 99, "result": None}
    assert called == [(1, "")]


@pytest.mark.nightly
def test_many_names_are_told_within_a_line_or_not_at_all():
    tools = {f"{'x' * 100}{i}": add for i in range(12_000)}
    with Raw(tools) as raw:
        assert raw.ask({"id": 1, "op": "names", "under": ""})["error"]["kind"] == "limit"
        assert len(raw.ask({"id": 2, "op": "find", "words": "xxx", "max": 10 ** 9})["tools"]) == 100
        assert raw.ask({"id": 3, "op": "find", "words": "", "max": -5})["tools"] == []


# --- tools that attack a program ---

@pytest.fixture(scope="module")
def pyc(tmp_path_factory):
    return tool_bridge.pack(tmp_path_factory.mktemp("guest"))


@pytest.fixture
def program(pyc, tmp_path):
    return tool_bridge.Program(pyc, tmp_path)


TOLD = {"names": {"names": ["f"]}, "describe": {"tool": {"name": "f", "description": "F.", "inputSchema": {"type": "object"}}}}
ANSWERS = {
    "no JSON": b"yes",
    "no id": b'{"result": 1}',
    "a key twice": b'{"id": ID, "result": 1, "result": 2}',
    "NaN": b'{"id": ID, "result": NaN}',
    "deep": b'{"id": ID, "result": ' + deep(70) + b"}",
    "very deep": b'{"id": ID, "result": ' + deep(200_000) + b"}",
    "too long": b'{"id": ID, "result": "' + b"x" * MIB + b'"}',
    "no UTF-8": b'{"id": ID, "result": "\xff"}',
    "nothing": None,
    "no end": b'{"id": ID, "resu' + b"\0" * (2 * MIB),
}


def answering(answer):
    """Says who it is, and answers calls with what a test wants."""
    def outside(sock):
        for body in tool_bridge.lines_of(sock):
            told = json.dumps({"id": body["id"], **TOLD[body["op"]]}).encode() if body["op"] in TOLD else answer and answer.replace(b"ID", str(body["id"]).encode())
            if told is None:
                return sock.shutdown(socket.SHUT_RDWR)
            try:
                sock.sendall(told + b"\n")
            except OSError:
                return None
        return None
    return outside


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", ANSWERS)
def test_a_broken_answer_is_an_error_and_the_program_goes_on(program, what):
    done = program.against("kinds = []\nfor i in range(2):\n    try:\n        tools.f()\n    except ToolError as error:\n        kinds.append(error.kind)\nkinds", answering(ANSWERS[what]))
    assert done.value == ["lost", "lost"]


@pytest.mark.parametrize("answer, expect", [
    (b'{"id": ID, "result": 1}', 1),
    (b'{"id": 999, "result": 2}\n{"id": ID, "result": 1}\n{"id": ID, "result": 3}', 1),
    (b'{"id": ID, "progress": {"progress": 1}}\n' * 1000 + b'{"id": ID, "result": 1}', 1),
    (b'{"id": ID, "error": {"kind": "odd", "message": 3}}', "tool f: no reason was given"),
    (b'{"id": ID, "error": 5}', "tool f: no reason was given"),
    (b'{"id": ID, "error": {"kind": "denied", "message": "a\\u001b[31mb"}}', "denied f: a\x1b[31mb"),
    (b'{"id": ID}', "lost f: the answer has no result")])
def test_answers_that_are_odd_end_one_call_each(program, answer, expect):
    done = program.against("try:\n    found = tools.f()\nexcept ToolError as error:\n    found = f'{error.kind} {error}'\nfound", answering(answer))
    assert done.value == expect
