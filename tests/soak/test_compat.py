"""What CPython's own tests say of a jail is what they say of the same tree without one; what differs is in accepted.json, with its reason."""
import json
import re
import subprocess
import tokenize

import pytest

from support import cpython, host

PURE = """test_codecs test_collections test_copy test_csv test_dataclasses test_datetime test_generators test_json test_random test_re test_struct test_types""".split()
JAIL = """test_ctypes test_epoll test_fcntl test_fileio test_mmap test_os test_posix test_select""".split()


@pytest.mark.nightly
@pytest.mark.parametrize("module", PURE + JAIL)
def test_a_warm_jail_is_no_other_place(service, module):
    """In a fork that stood ready; tests/soak/test_cpython.py has those on demand, and cold runs."""
    found = cpython.measure(service, module, inside_ways=["warm"])
    assert found.outcomes["warm"].warm is True, "the zygote did not fork it"
    assert found.outcomes["outside"].passed(), found.outcomes["outside"]
    assert found.unknown() == {}


LANGUAGE = """test_grammar test_syntax test_unicode_identifiers test_source_encoding""".split()
TAIL = "\n'the value of the last line'\n"


def verdicts(stderr):
    """unittest's lines: each method with what became of it, how many there were, and the last word."""
    return re.findall(r"^(test_\w+ \(.*\)) ?\.\.\. (\w+)|^(Ran \d+ tests)|^(OK.*|FAILED.*)", stderr, re.M)


@pytest.mark.nightly
@pytest.mark.parametrize("module", LANGUAGE)
def test_programs_about_the_language_itself_do_what_they_do_without_the_runner(service, module):
    """CPython's own files as programs: the runner parses them, cuts off what may be the last expression, and looks at every name."""
    with tokenize.open(cpython.tree() / f"usr/lib/python3.11/test/{module}.py") as file: # one is in koi8-r; a program is sent as UTF-8
        source = file.read().replace("koi8-r", "utf-8", 1).replace("unittest.main()", "unittest.main(exit=False)") + TAIL
    with service.connect(timeout=host.HANG) as talk:
        runs = [talk.start(source, profile=cpython.NAME, mode=mode, args=["-v"]) for mode in ("script", "report")]
        plain, told = (run.finish() for run in runs)
    assert (told.reason, told.status, told.stdout) == (plain.reason, plain.status, plain.stdout) == ("exited", 0, plain.stdout), plain.stderr[-3000:]
    assert verdicts(told.stderr) == verdicts(plain.stderr) != []
    assert [word for _, word, _, _ in verdicts(plain.stderr)].count("ok") > 1, plain.stderr[-3000:]
    report = json.loads(bytes(runs[1].text["result"]))
    assert (report["result"], report["error"]) == ("the value of the last line", None)


@pytest.mark.nightly
def test_the_list_of_modules_is_what_their_sources_say(service):
    done = subprocess.run([host.PYTHON, cpython.FOLDER / "scan.py", "--check", cpython.tree()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_accepted_has_a_reason_of_its_own():
    known = {module for modules in cpython.groups().values() for module in modules}
    for row in cpython.accepted():
        assert row["module"] in known and row["methods"] and row["inside"] in (*cpython.RANK, "absent"), row
        assert len(row["why"].split()) >= 5, f"no reason: {row}"
        assert not any(pattern.strip("*") == "" for pattern in row["methods"]), f"a module is not accepted as a whole: {row}"


# --- the comparison itself --------------------------------------------------------------------------------

def outcome(text, word="Passed", last=""):
    return cpython.Outcome("test_x", word, {name: [was, ""] for name, was in (pair.split() for pair in text.splitlines())}, None, last, 0.0)


COMPARED = {
    # outside, inside, what differs: (method, outside, inside)
    "the same": (outcome("a pass\nb skip"), outcome("a pass\nb skip"), set()),
    "a failure": (outcome("a pass"), outcome("a fail", "Failed"), {("a", "pass", "fail")}),
    "a skip": (outcome("a pass"), outcome("a skip"), {("a", "pass", "skip")}),
    "one that is better inside": (outcome("a fail", "Failed"), outcome("a pass"), {("a", "fail", "pass")}),
    "a method that is missing": (outcome("a pass\nb pass"), outcome("a pass"), {("b", "pass", "absent")}),
    "an end in between": (outcome("a pass\nb pass"), outcome("a pass", "ended early: oom 137", "b"), {("", "Passed", "ended early: oom 137")}),
    "an end in between that hides nothing": (outcome("a pass\nb pass"), outcome("a fail", "ended early: oom 137", "b"),
                                            {("", "Passed", "ended early: oom 137"), ("a", "pass", "fail")}),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_differs_is_found(name):
    there, here, expected = COMPARED[name]
    assert {(one.method, one.outside, one.inside) for one in cpython.differences(there, here)} == expected


def test_the_worst_counts_when_a_method_is_told_twice_and_noise_is_none():
    rows = [{"begin": "a"}, {"id": "a", "was": "fail", "why": "x"}, {"id": "a", "was": "pass", "why": ""}, {"begin": "b"}]
    text = "noise\n" + "\n".join(cpython.MARK + json.dumps(row) for row in rows) + f"\n{cpython.MARK}{{not json\n"
    found = cpython.read("test_x", text, "oom 137", True, 1.0)
    assert found.methods == {"a": ["fail", "x"]} and found.word == "ended early: oom 137" and found.last == "b"


def test_the_page_tells_what_the_files_say():
    done = subprocess.run([host.PYTHON, host.REPO / "tools" / "compatibility.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
