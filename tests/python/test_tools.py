"""Tools of a program: what it finds inside, how it calls them, and what the caller of brig says about it. Without a jail; test_tools_jail.py has one."""
import dataclasses
import datetime
import decimal
import enum
import importlib
import json
import os
import threading
import time
import types
from typing import Dict, List, Literal, Optional

import pytest

from support import host, tool_bridge
from support.tool_bridge import Raw, brig, call


@pytest.fixture(scope="module")
def pyc(tmp_path_factory):
    return tool_bridge.pack(tmp_path_factory.mktemp("guest"))


@pytest.fixture
def program(pyc, tmp_path):
    return tool_bridge.Program(pyc, tmp_path)


def add(a: int, b: int = 5) -> int:
    """Adds two numbers.

    Both are whole.
    """
    return a + b


def search_issues(query: str, limit: int = 5, state: Literal["open", "closed"] = "open") -> List[str]:
    """Finds issues of a repository."""
    return [f"{state} {query} {i}" for i in range(limit)]


GITHUB = {"search_issues": search_issues, "get-issue": lambda number: {"number": number}}
TOOLS = {"add": add, "github": GITHUB}


# --- inside ---

def test_tools_are_there_without_import_and_called_like_functions(program):
    assert program("tools.add(a=1, b=2), tools.add(1), tools.github.search_issues('x', limit=1)", TOOLS).value == [3, 6, ["open x 0"]]


def test_a_run_without_tools_has_no_trace_of_them(program):
    shown = "import builtins, sys; [name for name in ('tools', 'json', 'ToolError', 'ToolDenied') if hasattr(builtins, name)], 'tools' in sys.modules, " \
            "[kind.__name__ for kind in object.__subclasses__() if kind.__name__ in ('Bridge', 'Waiting', 'Tool', 'Catalogue')]"
    assert program.plain(shown).value == [[], False, []]


@pytest.mark.requirement("C3")
def test_a_program_can_look_around(program):
    done = program("""
import inspect
[dir(tools.github), [name for name in dir(tools) if name[0] != "_"], tools.list(), tools.list("github"), tools.search("issues"),
 tools.describe("add")["description"], repr(tools.add), str(inspect.signature(tools.add)), tools.call("github.get-issue", {"number": 3}),
 tools["github.get-issue"](4), tools.github.get_issue(5)]
""", TOOLS).value
    assert done[0] == ["get_issue", "search_issues"]
    assert done[1] == ["ToolDenied", "ToolError", "add", "call", "describe", "github", "list", "search"]
    assert done[2:4] == [["add", "github.get-issue", "github.search_issues"], ["github.get-issue", "github.search_issues"]]
    found = done[4][0]
    assert found == {"name": "github.search_issues", "summary": "Finds issues of a repository.",
                     "signature": "github.search_issues(query: str, limit: int = 5, state: \"open\" | \"closed\" = 'open') -> list[str]"}
    assert done[5:8] == ["Adds two numbers.\n\nBoth are whole.", "<tool add(a: int, b: int = 5)>", "(a: 'int', b: 'int' = 5)"]
    assert done[8:] == [{"number": 3}, {"number": 4}, {"number": 5}]


def test_help_has_the_description_and_the_arguments(program):
    text = program("help(tools.add); help(tools)", TOOLS).out
    assert "add(a: int, b: int = 5)" in text and "Both are whole." in text and 'tools.search("words")' in text


@pytest.mark.requirement("C8")
def test_json_is_there_without_import_where_tools_are(program):
    assert program("json.loads('[1]'), json.dumps({'a': 1}), json.decoder.__name__", {}).value == [[1], '{"a": 1}', "json.decoder"]


def test_tools_can_be_imported_and_a_list_of_imports_does_not_forbid_it(program):
    assert program("import tools as t; from tools import github; [t.add(1), len(github.search_issues('x'))]", TOOLS, imports="math").value == [6, 5]


def test_a_programs_own_names_and_modules_come_first(program):
    (program.folder / "tools.py").write_text("def add(a): return 'own'")
    assert program("import sys; sys.path.insert(0, '.'); import tools; first = tools.add(1); tools = 7; first, tools", TOOLS).value == ["own", 7]


def test_a_tool_takes_the_place_of_a_helper(program):
    assert program("tools.search('x'), tools.list()", {"search": lambda words: f"found {words}"}).value == ["found x", ["search"]]


def test_names_that_are_no_identifiers_are_written_with_underscores(program):
    assert program("tools.my_server.get_it.now(), dir(tools.my_server)", {"my-server": {"get-it": {"now": lambda: 1}}}).value == [1, ["get_it"]]


@pytest.mark.parametrize("code, wrong", [
    ("tools.add()", "a: is missing"),
    ("tools.add('x')", 'a: expected an integer, not "x"'),
    ("tools.add(a=True)", "a: expected an integer, not true"),
    ("tools.add(1, 2, 3)", "at most 2 arguments, not 3"),
    ("tools.add(1, a=2)", "a: is given twice"),
    ("tools.add(1, c=2)", "c: no such argument; there is a, b"),
    ("tools.github.search_issues('x', state='odd')", 'state: expected one of "open", "closed", not "odd"'),
    ("tools.add(10 ** 30)", "a: an integer beyond 64 bits; send it as a string"),
    ("tools.any(x=object())", "x: object is not JSON; send strings, numbers, lists and dicts"),
    ("tools.any(x=b'1')", "x: bytes is not JSON; decode it, or send base64 text"),
    ("tools.any(x=float('nan'))", "x: nan is not JSON"),
    ("tools.any(x='\\ud800')", "half of a surrogate pair is no text"),
    ("l = []; l.append(l); tools.any(x=l)", "x: nested too deeply, or inside of itself"),
    ("tools.any(x={1: 1, '1': 2})", "x: a dict has two keys that are the same string in JSON"),
    ("tools.any(x='x' * (1 << 20))", "bytes of arguments, and a call has at most 1048576"),
])
def test_arguments_are_checked_before_they_leave_and_the_message_names_them(program, code, wrong):
    done = program(code, {**TOOLS, "any": lambda x: x})
    assert done.error.startswith("ToolError: ") and wrong in done.error, done.error
    assert done.figures["n"] == 0
    assert "/usr/lib/brig" not in done.err and "main.py" in done.err # the program's own lines only


def test_what_a_program_sends_becomes_json_where_that_is_plain(program):
    done = program("""
import dataclasses, datetime, decimal, enum, pathlib
class Colour(enum.Enum): RED = "red"
class Level(enum.IntEnum): HIGH = 3
@dataclasses.dataclass
class Point:
    x: int
    y: tuple
tools.any(x=[(1, 2), {3}, datetime.date(2026, 1, 2), decimal.Decimal("0.10"), Colour.RED, Level.HIGH, Point(1, (2,)), pathlib.Path("/a"), {1: None, True: 2}])
""", {"any": lambda x: x})
    assert done.value == [[1, 2], [3], "2026-01-02", "0.10", "red", 3, {"x": 1, "y": [2]}, "/a", {"1": 2}]


def test_none_leaves_an_argument_out_that_may_be_left_out(program):
    assert program("tools.add(1, None), tools.add(1, b=None)", TOOLS).value == [6, 6]
    assert program("tools.f(None)", {"f": lambda x=3: x}).value is None # its schema has no type


SCHEMAS = {
    "circle": {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    "nest": {"type": "object", "properties": {"x": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    "pattern": {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}},
    "words": {"type": ["object", 3], "properties": {"x": {"type": "quaternion", "maximum": "ten", "enum": 5}}, "required": "x", "allOf": 3},
    "no_object": "nonsense",
    "keywords": {"type": "object", "properties": {"class": {"type": "integer"}, "a b": {}}, "required": ["class"]},
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_that_makes_no_sense_stops_no_call(program, name):
    """Circles, patterns that take for ever, and words of another type: what cannot be checked here is the other side's."""
    told = {"name": name, "description": 3, "inputSchema": SCHEMAS[name]}

    def outside(sock):
        for line in tool_bridge.lines_of(sock):
            answer = {"names": {"names": [name]}, "describe": {"tool": told}, "call": {"result": line.get("args")}}[line["op"]]
            sock.sendall(json.dumps({"id": line["id"], **answer}).encode() + b"\n")
    value = "4" if name == "keywords" else "'" + "a" * 40 + "!'"
    done = program.against(f"import inspect; str(inspect.signature(tools.{name})), tools.{name}(**{{'class': 4}} if {name == 'keywords'} else {{'x': {value}}})", outside)
    assert done.value[1] == ({"class": 4} if name == "keywords" else {"x": "a" * 40 + "!"})


def test_a_value_behind_more_than_can_be_checked_is_refused_and_not_passed():
    schema = importlib.import_module("brig.schema")
    known = schema.of_function(lambda rows, mode: None)
    known["properties"] = {"rows": {"type": "array", "items": {"type": "integer"}}, "mode": {"enum": ["read"]}}
    for many in (20_001, schema.STEPS_MAX + 1):
        with pytest.raises(schema.Mismatch, match="mode: expected one of" if many < schema.STEPS_MAX else "more than 200000 values"):
            schema.check(known, {"rows": [1] * many, "mode": "DELETE"})


# --- at once ---

def test_two_hundred_calls_are_made_at_once_in_an_event_loop(program):
    """Each waits until all have come: the limit of calls under way is raised for it."""
    barrier = threading.Barrier(200)
    done = program("""
import asyncio
async def main():
    return sum(await asyncio.gather(*[tools.meet(i) for i in range(200)]))
asyncio.run(main())""", {"meet": lambda i: barrier.wait(host.HANG) and i or i}, limits=brig.ToolLimits(at_once=200))
    assert done.value == sum(range(200))


def test_threads_call_at_once(program):
    barrier = threading.Barrier(32)
    done = program("""
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(32) as pool:
    sum(pool.map(tools.meet, range(32)))""", {"meet": lambda i: barrier.wait(host.HANG) and i or i})
    assert done.report["error"] is None and done.figures["n"] == 32


def test_beyond_the_calls_under_way_a_call_waits_for_its_turn(program):
    running, most = [], []

    def work(i):
        running.append(i)
        most.append(len(running))
        time.sleep(0.001)
        running.remove(i)
        return i
    done = program("import asyncio\nasync def main(): return sum(await asyncio.gather(*[tools.work(i) for i in range(50)]))\nasyncio.run(main())",
                   {"work": work}, limits=brig.ToolLimits(at_once=3))
    assert done.value == sum(range(50)) and max(most) <= 3


def test_await_works_at_the_top_and_in_a_task_group_of_coroutines(program):
    assert program("import asyncio\na = asyncio.create_task(tools.add(1))\n[await tools.add(2), await a, await asyncio.wait_for(tools.add(3), 5)]", TOOLS).value == [7, 6, 8]


def test_threads_and_coroutines_call_beside_each_other(program):
    done = program("""
import asyncio
async def main():
    threads = [asyncio.to_thread(lambda i=i: [tools.add(i, k) for k in range(20)]) for i in range(8)]
    tasks = [tools.add(i) for i in range(100)]
    return [sum(map(sum, await asyncio.gather(*threads))), sum(await asyncio.gather(*tasks))]
asyncio.run(main())""", TOOLS)
    assert done.value == [sum(i + k for i in range(8) for k in range(20)), sum(i + 5 for i in range(100))]


def test_a_coroutine_that_is_cancelled_cancels_its_call(program):
    ended = threading.Event()

    async def hang():
        import asyncio
        try:
            await asyncio.sleep(host.HANG)
        finally:
            ended.set()
    done = program("import asyncio\ntry:\n    await asyncio.wait_for(tools.hang(), 0.05)\nexcept asyncio.TimeoutError:\n    pass\nawait tools.add(1)", {"hang": hang, **TOOLS})
    assert done.value == 6 and ended.wait(host.HANG)
    assert [each["verdict"] for each in done.figures["calls"]] == ["cancelled", "ok"]


def test_a_signal_that_interrupts_a_call_leaves_the_others_alone(program):
    gate = threading.Event()
    done = program("""
import os, signal, threading
def interrupt(*_):
    raise InterruptedError
signal.signal(signal.SIGUSR1, interrupt)
found = []
thread = threading.Thread(target=lambda: found.append(tools.wait()))
thread.start()
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    tools.wait()
except InterruptedError:
    found.append("interrupted")
tools.open_gate()
thread.join()
found + [tools.add(1)]""", {"wait": lambda: gate.wait(host.HANG) and "done", "open_gate": gate.set, **TOOLS})
    assert done.value == ["interrupted", "done", 6]


@pytest.mark.parametrize("fork", ["import os\npid = os.fork()\nif pid == 0:", "import multiprocessing, os\npid = 0\ndef child():"])
def test_a_forked_child_has_no_tools_and_disturbs_nobody(program, fork):
    run = "os.waitpid(pid, 0)" if "pid = os.fork()" in fork else "p = multiprocessing.get_context('fork').Process(target=child); p.start(); p.join()"
    done = program(f"""
tools.add(1)
{fork}
    try:
        tools.add(2)
    except ToolError as error:
        print(error.kind, error, flush=True)
    os._exit(0)
{run}
tools.add(3)""", TOOLS)
    assert done.value == 8 and "lost add: a forked process has no tools" in done.out
    assert done.figures["n"] == 2


# --- errors ---

class Odd(Exception):
    pass


def fail(how):
    if how == "own":
        raise brig.ToolError("say just this")
    if how == "exit":
        raise SystemExit(3)
    if how == "timeout":
        raise TimeoutError("its own")
    raise Odd("secret place")


@pytest.mark.requirement("C19")
@pytest.mark.parametrize("how, message", [("own", "say just this"), ("exit", "SystemExit: 3"), ("timeout", "TimeoutError: its own"), ("raise", "Odd: secret place")])
def test_an_exception_of_a_function_is_raised_inside_with_its_text(program, how, message):
    done = program(f"try:\n    tools.fail({how!r})\nexcept ToolError as error:\n    found = [error.name, error.message, error.kind, str(error), isinstance(error, ToolDenied)]\nfound",
                   {"fail": fail})
    assert done.value == ["fail", message, "tool", f"fail: {message}", False]
    assert done.figures["failed"] == 1 and done.figures["calls"][0]["verdict"] == "failed"


def test_a_traceback_is_sent_only_if_it_was_asked_for(program):
    assert "test_tools.py" not in program("tools.fail('raise')", {"fail": fail}).error
    assert "test_tools.py" in program("tools.fail('raise')", {"fail": fail}, tracebacks=True).error


@pytest.mark.requirement("C2")
@pytest.mark.parametrize("rules, expect", [
    ({}, "1111"), ({"allow": "db.*"}, "0011"), ({"deny": "db.*"}, "1100"), ({"allow": ["db.*", "add"], "deny": "db.drop"}, "0110"), ({"allow": ()}, "0000"),
    ({"ask": lambda call: call.name == "db.drop"}, "0001"), ({"ask": lambda call: call.args == {"x": 1}, "allow": "db.drop"}, "1111"),
    ({"ask": lambda call: False, "allow": "db.read"}, "0010"), ({"ask": lambda call: 1 / 0, "deny": "add"}, "0000")])
def test_each_call_is_judged_outside(program, rules, expect):
    called = []
    tools = {"one": lambda x: called.append("one"), "add": lambda x: called.append("add"), "db": {"read": lambda x: called.append("read"), "drop": lambda x: called.append("drop")}}
    done = program("""
found = ""
for name in "one", "add", "db.read", "db.drop":
    try:
        tools.call(name, {"x": 1})
        found += "1"
    except ToolDenied as error:
        found += "0"
found""", tools, **rules)
    assert done.value == expect, done.err
    assert len(called) == done.value.count("1") and done.figures["denied"] == done.value.count("0")


def test_ask_hears_of_one_call_at_a_time_and_may_be_a_coroutine(program):
    asked, at_once = [], []

    async def ask(about):
        asked.append((about.name, about.args, about.description))
        at_once.append(len(asked))
        return about.args["a"] % 2 == 0
    done = program("""
from concurrent.futures import ThreadPoolExecutor
def attempt(i):
    try:
        return tools.add(i)
    except ToolDenied as error:
        return error.message
with ThreadPoolExecutor(4) as pool:
    found = list(pool.map(attempt, range(4)))
found""", TOOLS, ask=ask)
    assert done.value == [5, "declined", 7, "declined"] and len(asked) == 4 and asked[0][0::2] == ("add", "Adds two numbers.\n\nBoth are whole.")


# --- results ---

class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


@pytest.mark.parametrize("value, expect", [
    (None, None), ({1, }, [1]), ((1, 2), [1, 2]), (Point(1, datetime.date(2026, 1, 2)), {"x": 1, "when": "2026-01-02"}), (decimal.Decimal("0.10"), "0.10"),
    (Colour.RED, "red"), (types.MappingProxyType({"a": 1}), {"a": 1}), ({1: {None: "é\n\0"}}, {"1": {"null": "é\n\0"}})])
def test_results_become_json(program, value, expect):
    assert program("tools.get()", {"get": lambda: value}).value == expect or expect == {"1": {"null": "é\n\0"}}


def deep(n):
    value = []
    for _ in range(n):
        value = [value]
    return value


@pytest.mark.parametrize("value, why", [
    (object(), "object is not JSON"), (b"x", "bytes is not JSON"), (float("nan"), "not JSON compliant"), (1 << 70, "a number beyond 64 bits"), ({(1,): 1}, "keys must be"),
    ("\ud800", "surrogates not allowed"), (deep(100), "nested deeper than"), ("x" * (1 << 20), "it has more than"), ({1: 1, "1": 2}, "a key twice")])
def test_a_result_that_is_no_json_is_refused_clearly(program, value, why):
    done = program("tools.get()", {"get": lambda: value})
    assert done.error.startswith("ToolError: get: what it returned cannot be sent: ") and why in done.error


# --- what people hand over ---

class Api:
    """An object with methods."""

    wanted = property(lambda self: pytest.fail("properties are not asked"))

    def read(self, path: str) -> str:
        """Reads."""
        return f"read {path}"

    @staticmethod
    def now():
        return "now"

    def _hidden(self):
        return "hidden"


def test_an_object_a_list_and_a_module_are_tools(program):
    assert program("tools.list(), tools.read('x'), tools.now()", Api()).value == [["now", "read"], "read x", "now"]
    assert program("tools.list()", [add, search_issues]).value == ["add", "search_issues"]
    module = types.ModuleType("mine")
    exec("import json\nfrom os.path import join\ndef own(): return 1", module.__dict__)
    assert program("tools.list()", module).value == ["own"]


def test_signatures_become_schemas():
    def many(text: str, number: float, flag: bool = True, some: Optional[List[int]] = None, table: Dict[str, int] = {}, any=3, *, only: "int", **rest):
        pass
    described = brig.Toolbox({"many": many}).describe("many")["inputSchema"]
    assert described == {"type": "object", "properties": {
        "text": {"type": "string"}, "number": {"type": "number"}, "flag": {"type": "boolean", "default": True},
        "some": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}], "default": None},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {}}, "any": {"default": 3}, "only": {"type": "integer"}},
        "required": ["text", "number", "only"], "additionalProperties": True}


def test_a_tool_may_bring_its_own_schema_and_arguments_without_a_name(program):
    def power(base, exponent, /):
        return base ** exponent
    tools = {"power": power, "own": brig.Tool(lambda **words: words, "Own.", {"type": "object", "properties": {"class": {"type": "string"}}, "required": ["class"]})}
    assert program("tools.power(2, exponent=3), tools.own(**{'class': 'x'}), tools.describe('own')['description']", tools).value == [8, {"class": "x"}, "Own."]


@pytest.mark.parametrize("tools, wrong", [
    ({"a\nb": add}, "is no name"), ({"": add}, "is no name"), ({"x" * 200: add}, "is no name"), ({"add": 3}, "neither a function nor"), ({"g": {}}, "neither a function nor"),
    ({"a.b": add, "a": {"b": add}}, "is there twice"), ({"least": min}, "does not know its arguments")])
def test_what_is_no_tool_is_refused_before_anything_runs(tools, wrong):
    with pytest.raises((ValueError, TypeError), match=wrong):
        brig.Toolbox(tools)


# --- bounds and the record ---

def test_what_is_beyond_the_number_of_calls_is_an_error_for_the_program(program):
    done = program("""
found = []
for i in range(4):
    try:
        found.append(tools.add(i))
    except ToolError as error:
        found.append([error.kind, error.message])
found""", TOOLS, limits=brig.ToolLimits(calls=2))
    assert done.value == [5, 6, ["limit", "a run may call tools 2 times"], ["limit", "a run may call tools 2 times"]]
    assert (done.figures["n"], done.figures["failed"]) == (4, 2)


def test_a_rate_and_a_time_can_be_set(program):
    async def hang():
        import asyncio
        await asyncio.sleep(host.HANG)
    done = program("kinds = []\nfor i in range(30):\n    try:\n        tools.add(i)\n    except ToolError as error:\n        kinds.append(error.kind)\nset(kinds)", TOOLS,
                   limits=brig.ToolLimits(per_second=10))
    assert done.value == ["limit"] or done.report["result"] == "{'limit'}"
    done = program("tools.hang()", {"hang": hang}, limits=brig.ToolLimits(seconds=0.05))
    assert done.error == "ToolError: hang: no answer within 0.05 s"


@pytest.mark.requirement("C20")
def test_calls_are_counted_and_listed(program):
    done = program("tools.add(1)\ntry:\n    tools.fail('own')\nexcept ToolError:\n    pass\ntry:\n    tools.github.search_issues('x')\nexcept ToolDenied:\n    pass",
                   {**TOOLS, "fail": fail}, deny="github.*").figures
    assert (done["n"], done["failed"], done["denied"]) == (3, 1, 1) and done["bytes"] > 300 and done["wait_ms"] > 0
    assert [(each["name"], each["verdict"]) for each in done["calls"]] == [("add", "ok"), ("fail", "failed"), ("github.search_issues", "denied")]
    assert all(each["ms"] >= 0 for each in done["calls"])


def test_the_audit_is_told_each_call_once_with_the_digest_of_its_arguments():
    with Raw(TOOLS) as raw:
        raw.ask(call(1, "add", b=2, a=1))
        told = raw.bridge.told(10)
        assert raw.bridge.told(10) == []
    import hashlib
    assert told == [{"name": "add", "verdict": "ok", "args_sha256": hashlib.sha256(b'{"a":1,"b":2}').hexdigest()}]


def test_a_function_that_hangs_does_not_keep_the_end_of_the_run_waiting(program):
    begun, gate = threading.Event(), threading.Event()
    done = program("import os, threading\nthreading.Thread(target=tools.hang, daemon=True).start()\ntools.has_begun()\nos._exit(0)",
                   {"hang": lambda: (begun.set(), gate.wait(host.HANG)), "has_begun": lambda: begun.wait(host.HANG)})
    gate.set()
    assert done.status == 0 and "lost" in [each["verdict"] for each in done.figures["calls"]]


def test_no_thread_and_no_descriptor_is_left_of_a_run(program):
    program("tools.add(1)", TOOLS)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        program("import asyncio\nasync def main(): await asyncio.gather(*[tools.f() for _ in range(20)])\nasyncio.run(main())", {"f": a_coroutine})
    end = time.monotonic() + host.HANG
    while any(thread.name.startswith("brig-tools") for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("brig-tools")] and len(os.listdir("/proc/self/fd")) <= before


async def a_coroutine():
    return 1


class Callable:
    def __call__(self, a: int, b: "Nowhere" = None) -> "List[int]": # noqa: F821
        return [a]


def test_types_are_found_in_whatever_can_be_called(program):
    import functools
    box = brig.Toolbox({"object": Callable(), "part": functools.partial(add, b=2), "method": Api().read})
    assert box.describe("object")["inputSchema"]["properties"] == {"a": {"type": "integer"}, "b": {"default": None}}
    assert box.describe("object")["outputSchema"] == {"type": "array", "items": {"type": "integer"}}
    assert box.describe("part")["inputSchema"]["properties"]["a"] == {"type": "integer"}
    assert program("tools.object(1), tools.part(1), tools.method('x')", box).value == [[1], 3, "read x"]


def test_the_end_may_be_said_twice():
    with Raw({"f": a_coroutine}) as raw:
        assert raw.ask(call(1, "f")) == {"id": 1, "result": 1}
        raw.bridge.close()
        end = time.monotonic() + host.HANG
        while any(thread.name == "brig-tools-loop" for thread in threading.enumerate()) and time.monotonic() < end:
            time.sleep(0.001)
        raw.bridge.close()


def test_a_function_that_was_quick_and_then_hangs_holds_up_no_other_call(program):
    gate, times = threading.Event(), []

    def sometimes():
        times.append(1)
        return gate.wait(host.HANG) if len(times) > 20 else "quick"
    done = program("""
import threading
quick = [tools.sometimes() for _ in range(20)]
thread = threading.Thread(target=tools.sometimes)
thread.start()
for _ in range(20):
    tools.add(1)
tools.open_gate()
thread.join()
quick[-1], tools.add(2)""", {"sometimes": sometimes, "open_gate": gate.set, **TOOLS})
    assert done.value == ["quick", 7]
