"""The static check: what is found in a program, what is not, and that nothing of it is executed."""
import json

import pytest

from support import tiers

KEYS = ["valid", "message", "errors", "warnings", "syntax_error", "line_count", "character_count", "estimated_complexity", "imports", "recommendations"]
CALLS = "os.system,os.popen,subprocess.*,eval,exec,compile,__import__,open,input"
BASIC = "math,json,re,collections,xml.etree,os.path"


def texts(findings):
    return [f"{finding['line']}: {finding['message']}" for finding in findings]


def check(guest, source, allowed=BASIC, calls=CALLS, listed="*"):
    """allowed: what a run may import; listed: the profile's list. "*" is any."""
    report = guest.check(source, allowed, listed, calls)
    assert list(report) == KEYS
    return report


def not_allowed(*rows):
    return [f"{line}: Import '{name}' is not allowed" for line, name in rows]


IMPORTS = {
    "an import that is not listed": ("import os", [(1, "os")]),
    "an import that is listed": ("import math, json", []),
    "below a listed package": ("import collections.abc\nfrom xml.etree import ElementTree\nfrom xml import etree", []),
    "beside a listed package": ("import xml.sax\nfrom xml import etree, dom", [(1, "xml.sax"), (2, "xml.dom")]),
    "above a listed package": ("import xml", [(1, "xml")]),
    "under another name": ("import os as math", [(1, "os")]),
    "from": ("from os import system", [(1, "os.system")]),
    "from, everything": ("from subprocess import *", [(1, "subprocess")]),
    "os.path is listed, os is not": ("import os.path\nfrom os import path\nimport os", [(3, "os")]),
    "a prefix that is no package": ("import mathematics", [(1, "mathematics")]),
    "in a function, a condition, a handler": ("def f():\n    import os\nif 0:\n    import sys\ntry:\n    1\nexcept:\n    import ctypes\n", [(2, "os"), (4, "sys"), (8, "ctypes")]),
    "by __import__": ("__import__('os').system('x')", [(1, "os")]),
    "by __import__ of builtins": ("__builtins__.__import__('os')", [(1, "os")]),
    "by importlib": ("from importlib import import_module as get\nget('os')", [(1, "importlib"), (2, "os")]),
    "by a text in two halves": ("__import__('o' + 's')", [(1, "os")]),
    "two in one line": ("import os, sys", [(1, "os"), (1, "sys")]),
    "__future__": ("from __future__ import annotations", []),
    "in a text": ("'import os'\nx = '''\nimport sys\n'''", []),
    "in a comment": ("# import os\n1", []),
}


@pytest.mark.parametrize("source, found", IMPORTS.values(), ids=IMPORTS)
def test_imports_are_held_to_the_list(guest, source, found):
    report = check(guest, source)
    assert texts(report["errors"]) == not_allowed(*found)
    assert report["valid"] == (not found)
    assert report["message"] == ("Code contains restricted operations" if found else "Code passed validation")


def test_no_list_allows_every_import(guest):
    assert check(guest, "import os, ctypes", allowed="*")["valid"] is True


def test_the_list_of_a_call_replaces_that_of_the_profile(guest):
    report = check(guest, "import math\nimport os", allowed="os", listed="json")
    assert report["errors"] == [{"line": 1, "offset": 1, "message": "Import 'math' is not allowed"}] and report["warnings"] == []
    assert len(check(guest, "import math\nimport os", allowed="")["errors"]) == 2


@pytest.mark.parametrize("source, found", IMPORTS.values(), ids=IMPORTS)
def test_what_a_run_does_not_refuse_is_a_warning(guest, source, found):
    report = check(guest, source, allowed="*", listed=BASIC, calls="")
    assert [text for text in texts(report["warnings"]) if "internals" not in text] == [f"{line}: Import '{name}' is not in the profile's list of modules; a run does not refuse it" for line, name in found]
    assert report["valid"] is True and report["errors"] == []


CALLED = {
    "by its name": ("import os\nos.system('x')", ["2: os.system"]),
    "under another name": ("import os as o\no.system('x')", ["2: os.system"]),
    "imported": ("from os import system\nsystem('x')", ["2: os.system"]),
    "imported under another name": ("from os import system as s\ns('x')", ["2: os.system"]),
    "imported with everything": ("from os import *\nsystem('x')", ["2: os.system"]),
    "assigned": ("import os\nrun = os.system\nrun('x')", ["3: os.system"]),
    "by getattr": ("import os\ngetattr(os, 'sys' + 'tem')('x')", ["2: os.system"]),
    "by __import__": ("__import__('os').system('x')", ["1: os.system", "1: __import__"]),
    "a whole module": ("import subprocess as sp\nsp.run([])\nsp.Popen([])", ["2: subprocess.run", "3: subprocess.Popen"]),
    "a builtin": ("eval('1')\nexec('1')\ncompile('1', '', 'eval')", ["1: eval", "2: exec", "3: compile"]),
    "a builtin by its module": ("import builtins\nbuiltins.eval('1')\n__builtins__.exec('1')", ["2: eval", "3: exec"]),
    "a method of the same name": ("import re\nre.compile('x')\nmodel.eval()\nurlopen('x')\nself.open()\nprofile('x')", []),
    "a function of the program of the same name": ("def open(x): return x\nopen(1)\ncompile = print\ncompile(1)", []),
    "an argument of the same name": ("def f(eval): return eval(1)", []),
    "a text that looks like it": ("'os.system(1)'\n'eval(1)'", []),
}


@pytest.mark.parametrize("source, found", CALLED.values(), ids=CALLED)
def test_configured_calls_are_warned_about_by_what_they_are(guest, source, found):
    report = check(guest, source, allowed="*")
    expected = [f"{line}: Potentially dangerous call: '{name}'" for line, name in (row.split(": ") for row in found)]
    assert [text for text in texts(report["warnings"]) if "internals" not in text] == expected
    assert report["valid"] is True and report["errors"] == []


def test_no_configured_call_no_warning(guest):
    assert check(guest, "eval('1')\nimport os\nos.system('x')", "*", "")["warnings"] == []


ESCAPES = {
    "the classic": ("().__class__.__bases__[0].__subclasses__()", ["__subclasses__", "__bases__", "__class__"]),
    "by getattr with a text in two halves": ("getattr((), '__cla' + 'ss__')", ["__class__"]),
    "by hasattr": ("hasattr(x, '__globals__')", ["__globals__"]),
    "an assignment": ("x.__class__ = int", ["__class__"]),
    "the globals of a function": ("f.__globals__['x']", ["__globals__"]),
    "a frame": ("g.gi_frame.f_back.f_globals", ["f_globals", "f_back", "gi_frame"]),
    "builtins": ("__builtins__['eval']", ["__builtins__"]),
    "the name of a class": ("print(self.__class__.__name__, x.__doc__, A.__init__)", []),
}


@pytest.mark.parametrize("source, found", ESCAPES.values(), ids=ESCAPES)
def test_ways_into_the_interpreter_are_warned_about(guest, source, found):
    report = check(guest, source, "*", "")
    assert [finding["message"].split("'")[1] for finding in report["warnings"]] == found
    assert report["valid"] is True


BROKEN = {
    "a syntax error": ("x = 1\nif x = 2:\n    pass", "invalid syntax. Maybe you meant '==' or ':=' instead of '='?", 2, 4, "if x = 2:"),
    "an open bracket": ("f(1,\n", "'(' was never closed", 1, 2, "f(1,"),
    "an indentation": ("if 1:\nx", "expected an indented block after 'if' statement on line 1", 2, 1, "x"),
    "what only the compiler finds": ("def f():\n    x = 1\n    global x", "name 'x' is assigned to before global declaration", 3, 5, "    global x"),
    "a return outside of a function": ("return 3", "'return' outside function", 1, 1, "return 3"),
    "a NUL": (b"a\nb\0", "source code cannot contain null bytes", 2, None, None),
    "brackets, 300 deep": ("(" * 300 + ")" * 300, "too many nested parentheses", 1, 201, None),
    "a hundred blocks": ("".join(" " * i + "if 1:\n" for i in range(101)), "too many levels of indentation", None, None, None),
}


@pytest.mark.parametrize("source, message, line, offset, text", BROKEN.values(), ids=BROKEN)
def test_what_is_no_program_says_why(guest, source, message, line, offset, text):
    report = check(guest, source)
    assert report["valid"] is False and report["message"] == f"Syntax error: {message}" and report["errors"] == []
    found = report["syntax_error"]
    assert found["message"] == message
    assert line is None or (found["line"], found["offset"]) == (line, offset)
    assert text is None or found["text"] == text


BOMBS = {
    "minus signs": "-" * 90_000 + "1",
    "attributes": "a" + ".b" * 45_000,
    "terms": "1" + "+1" * 45_000,
    "calls": "f(" * 190 + ")" * 190,
    "calls of calls": "f" + "()" * 45_000,
    "subscripts": "a" + "[0]" * 30_000,
    "brackets": "[" * 90_000,
    "lambdas": "lambda: " * 11_000 + "1",
    "nots": "not " * 22_000 + "1",
    "elifs": "if 1: pass\n" + "elif 1: pass\n" * 7_000,
    "a tower of powers": "2**" * 3 + "2**(2**9)",
    "a large repetition": "'a' * 10**9 + 'b' * (2**60)",
    "a large shift": "1 << (1 << 60)",
    "a number of 90,000 digits": "1" * 90_000,
    "one long line": "x = '" + "y" * 99_000 + "'",
    "fifty thousand lines": "\n" * 99_000,
    "fifty thousand statements": "a\n" * 50_000,
    "many imports": "".join(f"import m{i}\n" for i in range(8000)),
    "an import of a long name": "import " + "a" * 90_000,
    "f-strings": "f'{" * 100,
    "a comprehension": "[" * 90 + "x" + " for x in y]" * 90,
    "decorators": "@a\n" * 33_000 + "def f(): pass",
    "a match of many": "match x:\n" + "  case 1: pass\n" * 6_000,
    "a dict of dicts": "{1:" * 150 + "1" + "}" * 150,
    "nested functions": "".join("\t" * i + "def f():\n" for i in range(95)) + "\t" * 95 + "pass",
    "a type comment": "x = [] # type: ignore\n" * 4000,
    "surrogates": "x = '\\ud800'\n'\\N{BULLET}'",
}


@pytest.mark.parametrize("name", tiers.few(BOMBS, "calls of calls", "a tower of powers", "a number of 90,000 digits", "fifty thousand statements"))
def test_a_bomb_is_told_and_does_not_end_the_check(guest, name):
    done = guest(BOMBS[name], "check", modules=BASIC, calls=CALLS)
    assert done.status == 0 and list(done.report) == KEYS, done.err
    assert len(done.text) < 256 << 10


def test_nothing_is_executed(guest, tmp_path):
    source = f"open({str(tmp_path / 'made')!r}, 'w')\nprint('x')\nimport nothing_like_it\nclass A:\n    print('y')\n@print\ndef f(x=print('z')): pass\n1 / 0\n"
    done = guest(source, "check")
    assert (done.status, done.out, done.err) == (0, "", "") and not (tmp_path / "made").exists()
    assert done.report["valid"] is True


@pytest.mark.parametrize("source, lines, characters", [
    ("", 0, 0), ("x", 1, 1), ("x\n", 1, 2), ("x\n\n", 2, 3), ("x\r\ny\r\n", 2, 6), ("é = '\U0001f40d'\n", 1, 8),
    ("import os\nos.system('rm -rf /')", 2, 31), # the published example says 25
], ids=repr)
def test_lines_and_characters_are_counted_as_they_are(guest, source, lines, characters):
    report = check(guest, source)
    assert (report["line_count"], report["character_count"]) == (lines, characters)


def test_the_published_example(guest):
    """Row A45."""
    report = check(guest, "import os\nos.system('rm -rf /')")
    assert report["valid"] is False and texts(report["errors"]) == ["1: Import 'os' is not allowed"]
    assert report["message"] and report["estimated_complexity"] == "low" and report["recommendations"]


def test_offsets_count_characters(guest):
    assert check(guest, "'\U0001f40d\U0001f40d'; import os")["errors"][0]["offset"] == 7


@pytest.mark.parametrize("source, degree", [
    ("print(1)", "low"),
    ("for i in x:\n    for j in y:\n        pass", "medium"),
    ("def f(x):\n" + "    if x: pass\n" * 20, "medium"),
    ("x = 1\n" * 60, "medium"),
    ("x = 1\n" * 300, "high"),
    ("if x: pass\n" * 60, "high"),
    ("for a in b:\n for c in d:\n  for e in f:\n   for g in h: pass", "high"),
])
def test_complexity_is_estimated(guest, source, degree):
    assert check(guest, source)["estimated_complexity"] == degree


@pytest.mark.parametrize("source, advice", [
    ("import os", "Leave out the import of 'os'"),
    ("eval(x)", "Use ast.literal_eval"),
    ("x = input()", "Pass stdin with the run"),
    ("while True:\n    x = 1", "Line 1: this loop has no way out"),
    ("x = (", "Correct line 1"),
    ("x = 1\n" * 300, "Divide the code"),
])
def test_there_is_advice(guest, source, advice):
    assert any(text.startswith(advice) for text in check(guest, source)["recommendations"])


@pytest.mark.parametrize("source", ["while True:\n    break", "def f():\n    while True:\n        return 1", "def f():\n    while True:\n        yield from g()", "import sys\nwhile 1:\n    sys.exit()",
                                    "def g():\n    while True:\n        yield 1", "while x:\n    pass", "print(1)"])
def test_and_none_where_there_is_nothing_to_say(guest, source):
    assert check(guest, source, "*")["recommendations"] == []


def test_imports_are_listed_once_in_order(guest):
    assert check(guest, "import os.path as p\nfrom json import dumps\nimport os.path\nfrom . import x")["imports"] == ["os.path", "json"]


def test_a_relative_import_is_a_warning(guest):
    assert texts(check(guest, "from . import x\nfrom ..y import z")["warnings"]) == [
        f"{line}: Relative import: the program is in no package, so it raises ImportError" for line in (1, 2)]


def test_an_import_whose_name_is_computed_is_a_warning_where_names_are_limited(guest):
    source = "import importlib\nimportlib.import_module(name)"
    assert texts(check(guest, source, "importlib", "")["warnings"]) == ["2: Import of a name that is known only when the program runs"]
    assert check(guest, source, "*", "")["warnings"] == []


def test_await_at_the_top_is_valid(guest):
    assert check(guest, "await f()")["valid"] is True


def test_findings_are_bounded(guest):
    report = check(guest, "import os\n" * 5000)
    assert len(report["errors"]) == 100 and len(json.dumps(report)) < 64 << 10
