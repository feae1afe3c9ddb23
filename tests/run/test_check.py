"""brig check: what is against the rules of a profile, a line for each; nothing is executed, and nothing that a jail says is believed."""
import json
import os

import pytest

from support import brig as tool
from support import fake_server as fake

FOUND = {"valid": False, "message": "m", "errors": [{"line": 3, "offset": 1, "message": "bad"}], "warnings": [{"line": None, "offset": None, "message": "odd"}],
         "syntax_error": None, "line_count": 1, "character_count": 2, "estimated_complexity": "low", "imports": ["os"], "recommendations": []}
VALID = {**FOUND, "valid": True, "errors": [], "warnings": []}
STDLIB = """math cmath random statistics decimal fractions collections itertools functools operator heapq bisect copy string textwrap re difflib unicodedata base64
binascii hashlib hmac secrets json csv html html.parser xml.etree urllib.parse configparser datetime time calendar uuid dataclasses enum typing types abc
contextlib""".split()
TIERS = {"basic": [], "strict": [], "data-science": "numpy pandas scipy matplotlib seaborn sklearn statsmodels plotly sympy networkx openpyxl tabulate jinja2 lxml bs4 requests tqdm yaml PIL".split(),
         "network": "httpx requests urllib.request aiohttp websocket email smtplib ftplib".split(),
         "filesystem": "pathlib os.path tempfile shutil glob zipfile tarfile".split()}


def check(*options, text=None, **kw):
    if text is not None:
        kw.update(file="-", input=text if isinstance(text, bytes) else text.encode())
    return tool.run(*options, verb="check", json_record=False, **kw)


def told(report, *options):
    """brig check, where the checker says this."""
    def script(server):
        assert server.receive() == {"op": "run", "mode": "check", "profile": "basic", "args": [], "limits": {}, "env": [], "ro": [], "wait_ms": 60000}
        server.start("result")
        os.write(server.pipes["result"], report if isinstance(report, bytes) else json.dumps(report).encode())
        os.write(server.pipes["stdout"], b"not for the terminal")
        server.send(fake.ended())
    with fake.server(script) as env:
        return check(*options, text="pass", env=env)


# --- what is said ------------------------------------------------------------------------------------------

SAYINGS = [
    # report, status, stdout
    (VALID, 0, ""), (FOUND, 1, "stdin:3: bad\nstdin: warning: odd\n"), ({**VALID, "warnings": FOUND["warnings"]}, 0, "stdin: warning: odd\n"),
    ({**VALID, "errors": FOUND["errors"]}, 1, "stdin:3: bad\n"), ({**VALID, "valid": False}, 1, ""),
    ({**VALID, "syntax_error": {"message": "no", "line": 2, "offset": 1, "text": "("}}, 1, "stdin:2: SyntaxError: no\n"),
    ({**FOUND, "errors": [{"line": 1, "offset": 0, "message": "a\nstdin:9: b\x1b[2J\x9b"}]}, 1, "stdin:1: a?stdin:9: b?[2J??\nstdin: warning: odd\n"),
]


@pytest.mark.parametrize("report, status, text", SAYINGS)
def test_findings_are_lines(report, status, text):
    ran = told(report)
    assert (ran.status, ran.stdout, ran.stderr) == (status, text, ""), ran


def test_of_a_notebook_the_cell_and_its_line_are_named(tmp_path):
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "%matplotlib inline\nx = 1"}, {"cell_type": "markdown", "source": "# x"},
                                                         {"cell_type": "code", "source": ["y = 2\n", "import nothing_of_this_name"]}]}))
    ran = check("-p", "strict", file=file)
    assert ran.status == 0 and ran.stdout.startswith(f"{file}: cell 3, line 2: warning: "), ran
    (found,) = json.loads(check("-p", "strict", "--json", file=file).stdout)["warnings"]
    assert (found["cell"], found["line"]) == (3, 2)


def test_json_is_the_report_and_nothing_else():
    ran = told(FOUND, "--json")
    assert (ran.status, ran.stderr) == (1, "") and json.loads(ran.stdout) == FOUND, ran


NONE = [b"", b"{", b"valid", json.dumps({**VALID, "more": 1}).encode(), json.dumps({**VALID, "errors": ["x"]}).encode(), b"x" * 60000]


@pytest.mark.parametrize("report", NONE, ids=range(len(NONE)))
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "as JSON"])
def test_a_checker_that_is_not_understood_finds_nothing_valid(report, options):
    ran = told(report, *options)
    assert (ran.status, ran.stdout) == (125, "") and ran.stderr.startswith("brig: stdin cannot be checked: ") and ran.stderr.count("\n") == 1, ran


REFUSED = [
    # words, status, in stderr
    ((), 2, "name one file"), (("a", "b"), 2, "name one file"), (("--fast", "a"), 2, "no such option"), (("/nonexistent.py",), 125, "/nonexistent.py: No such file"),
    (("/",), 125, "is a directory"), (("-p", "nope", "-"), 125, "nope"), (("--timeout", "1", "-"), 2, "no such option"),
]


@pytest.mark.parametrize("words, status, says", REFUSED, ids=[" ".join(row[0]) or "nothing" for row in REFUSED])
def test_a_wrong_command_line_is_refused_in_one_sentence(words, status, says):
    ran = tool.run(*words, verb="check", json_record=False, popen={"stdin": None})
    assert ran.status == status and says in ran.stderr and ran.stdout == "" and ran.stderr.count("\n") == 1, ran


# --- in a jail ---------------------------------------------------------------------------------------------

def rows_of(profile):
    own = [name for tier, names in TIERS.items() for name in names if tier == profile]
    others = [name for names in TIERS.values() for name in names if name not in own]
    return own, others


@pytest.mark.parametrize("profile", TIERS)
def test_a_profile_lets_its_tier_be_imported_and_no_other(jail, profile):
    """All names in one program: each line that is not in the list is a finding; a run refuses none, so it is a warning."""
    own, others = rows_of(profile)
    names = [*STDLIB, *own, *others, "os", "sys", "subprocess", "socket", "xml.sax", "urllib"]
    ran = check("-p", profile, "--json", text="".join(f"import {name}\n" for name in names))
    said = json.loads(ran.stdout)
    found = {names[row["line"] - 1] for row in said["warnings"]}
    assert (found, said["errors"], said["valid"], ran.status) == (set(names) - set(STDLIB) - set(own), [], True, 0), ran
    assert len(STDLIB) == 40


def test_lists_in_the_profiles_are_those_of_the_tiers():
    for profile, own in TIERS.items():
        done = tool.run(profile, "--json", verb="explain", json_record=False)
        said = json.loads(done.stdout)
        assert said["modules"] == STDLIB + own and {"eval", "exec", "compile", "__import__", "os.system", "subprocess.*"} <= set(said["calls"]), profile


def test_a_file_is_named_as_it_was_written(jail, tmp_path):
    (tmp_path / "p.py").write_text("x = 1\nfrom os import path\n")
    ran = check(file=tmp_path / "p.py")
    assert (ran.status, ran.stdout.startswith(f"{tmp_path}/p.py:2: warning: Import 'os")) == (0, True), ran


def test_nothing_is_executed(jail):
    text = "print('ran')\nimport time\ntime.sleep(600)\nraise SystemExit(3)\n"
    ran = check(text=text)
    assert (ran.status, ran.stdout, ran.stderr) == (0, "", ""), ran


BOMBS = {
    "brackets": "(" * 200000, "a list in a list": "[" * 90 + "]" * 90, "a sum": "1" + "+1" * 200000, "signs": "-" * 500000 + "1", "a number": "9" * 4000000,
    "calls": "a" + "()" * 100000, "names": "a" + ".a" * 100000, "not": "not " * 100000 + "1", "lambdas": "lambda:" * 5000 + "1", "blocks": "".join(" " * n + "if 1:\n" for n in range(99)),
    "8 MB": "x = 1\n" * 1300000, "texts": "'" + "a" * 8000000 + "'", "formats": "f'{" * 300, "await": "await " * 100000 + "x", "an encoding": "# coding: utf-7\nx = 1\n",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", BOMBS)
def test_a_program_that_is_too_much_for_a_parser_ends_in_a_word(jail, name):
    ran = check(text=BOMBS[name])
    assert ran.status in (0, 1, 125), ran
    assert bool(ran.stdout) == (ran.status == 1) and bool(ran.stderr) == (ran.status == 125), ran
