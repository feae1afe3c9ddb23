"""Whatever is wrong is told in one clear line, with a status that fits, and leaves nothing behind."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from support import brig as tool
from support import host, terminal

FITS = (2, 125)


def one_line(run, *words, status=FITS):
    assert run.status in (status if isinstance(status, tuple) else (status,)), str(run)
    assert run.stdout == "" and len(run.stderr.splitlines()) == 1, str(run)
    missing = [word for word in words if word.lower() not in run.stderr.lower()]
    assert not missing, f"does not say {missing}: {run}"


@pytest.fixture(autouse=True)
def same_host():
    before = host.Snapshot()
    yield
    left = before.left_since()
    left.pop("process", None) # runs of others
    assert not left, f"left behind: {left}"


# --- the program ------------------------------------------------------------------------------------------

def make(kind, tmp_path):
    path = tmp_path / "program.py"
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "directory":
        path.mkdir()
    elif kind == "huge":
        with open(path, "wb") as f:
            f.truncate(200 << 20)
    elif kind == "huge text":
        path.write_bytes(b"#" * (200 << 20))
    elif kind == "latin-1":
        path.write_bytes(b"print('\xe4')\n")
    elif kind == "binary":
        path.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe")
    elif kind == "with a NUL":
        path.write_bytes(b"print(1)\x00\n")
    elif kind == "a link to nowhere":
        path.symlink_to("nowhere")
    elif kind == "endless":
        return "/dev/zero"
    return path


PROGRAMS = [
    ("missing", ("no such file",)), ("directory", ("director",)), ("huge", ("209715200",)), ("huge text", ("209715200",)),
    ("latin-1", ("utf-8",)), ("binary", ("compiled program", "brig exec --put")), ("with a NUL", ("nul",)), ("a link to nowhere", ("no such file",)), ("endless", ()),
]


@pytest.mark.parametrize("kind, words", PROGRAMS, ids=[f"a program that is {row[0]} is refused" for row in PROGRAMS])
def test_program(jail, run_brig, tmp_path, kind, words):
    path = make(kind, tmp_path)
    one_line(run_brig(file=path, json_record=False), os.path.basename(path), *words)


@pytest.mark.parametrize("text, out", [(b"", ""), (b"# -*- coding: latin-1 -*-\nprint('caf\xe9')\n", "café\n")], ids=["empty", "with a coding"])
def test_what_python_runs_is_run(run_brig, tmp_path, text, out):
    file = tmp_path / "a.py"
    file.write_bytes(text)
    run = run_brig(file=file, json_record=False)
    assert (run.status, run.out, run.stderr) == (0, out, ""), str(run)


@pytest.mark.parametrize("name, text, advice", [
    ("tool", b"\x7fELF\x02\x01\x01", "is a compiled program, and brig run runs Python; type:  brig exec --put FILE -- ./tool"),
    ("job", b"#!/usr/bin/env -S bash -e\necho hi\n", "is a program for bash, and brig run runs Python; type:  brig exec --put FILE -- bash job"),
    ("a.ipynb", b"{}", "is no notebook of Jupyter, format 4: it has no list of cells")])
def test_a_file_that_is_no_python_is_refused_with_what_runs_it(run_brig, tmp_path, name, text, advice):
    file = tmp_path / name
    file.write_bytes(text)
    run = run_brig(file=file, json_record=False)
    assert run.status == 125 and run.stderr == f"brig: {file}: {advice.replace('FILE', str(file))}\n", str(run)


def test_a_notebook_runs_cell_by_cell_and_its_errors_name_the_cell(run_brig, tmp_path):
    cells = ["%matplotlib inline\nx = 6", ["y = 7\n", "x * y"], "print('ä\"\\\\');\nNone", "x / 0", "print('never')"]
    file = tmp_path / "a.ipynb"
    file.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "# x"}, *({"cell_type": "code", "source": text} for text in cells)]}))
    run = run_brig(file=file, json_record=False)
    assert (run.status, run.out) == (1, "42\nä\"\\\n") and 'File "cell 5", line 1' in run.stderr and "ZeroDivisionError" in run.stderr, str(run)
    cells[3] = "!pip install x"
    file.write_text(json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": text} for text in cells]}))
    assert "cell 4, line 1: !pip install x: is a command of Jupyter, and brig runs Python alone" in run_brig(file=file, json_record=False).stderr


def test_with_json_a_refused_program_still_makes_no_wrong_record(jail, run_brig, tmp_path):
    run = run_brig(file=tmp_path / "nowhere.py")
    assert run.status in FITS and (run.stdout == "" or run.reason in ("denied", "setup_failed")), str(run)
    assert "nowhere.py" in run.stdout + run.stderr, str(run)


# --- names ------------------------------------------------------------------------------------------------

@pytest.mark.private("a service tells nobody which profiles it has")
def test_a_profile_that_does_not_exist_names_those_that_do(jail, run_brig):
    one_line(run_brig("-p", "nonesuch", program="pass", json_record=False), "nonesuch", "basic", "strict", os.environ.get("BRIG_PRESETS", str(host.build_dir() / "profiles"))[:80])


def test_a_profile_given_as_a_file_is_told_how_to_name_one(jail, run_brig):
    one_line(run_brig("-p", "./own.json", program="pass", json_record=False), "./own.json", "BRIG_PROFILES", "basic")


@pytest.mark.parametrize("name", ["BRIG_PROFILES", "BRIG_PRESETS", "BRIG_STORE"])
def test_a_relative_place_is_refused_and_not_left_aside(jail, run_brig, name):
    one_line(run_brig(program="print('ran')", json_record=False, env={name: "place"}), name, '"place"', "absolute", status=125)


def test_a_folder_without_profiles_is_named(brig, tmp_path):
    done = subprocess.run([brig, "profile", "list"], env={"BRIG_PRESETS": str(tmp_path)}, capture_output=True, text=True, timeout=host.HANG)
    assert (done.returncode, done.stdout) == (1, "") and str(tmp_path) in done.stderr, done


def test_a_profile_without_a_description_is_listed_without_blanks(brig, tmp_path):
    (tmp_path / "small.json").write_text('{"rootfs":"basic","policy":"python"}')
    done = subprocess.run([brig, "profile", "list"], env={"BRIG_PRESETS": str(tmp_path)}, capture_output=True, text=True, timeout=host.HANG)
    assert (done.returncode, done.stdout) == (0, "small\n"), done


@pytest.mark.parametrize("name", ["../basic", "/etc/passwd", "", ".", "BASIC", "a" * 300, "basic\n"])
def test_profile_name(jail, run_brig, name):
    one_line(run_brig("-p", name, program="pass", json_record=False))


def test_a_store_without_the_rootfs_says_the_command_that_builds_it(jail, run_brig, tmp_path):
    (tmp_path / "store").mkdir()
    one_line(run_brig(program="pass", json_record=False, env={"BRIG_STORE": str(tmp_path / "store")}), "basic", "rootfs build basic", status=125)


def test_a_store_that_does_not_exist_says_the_same(jail, run_brig, tmp_path):
    one_line(run_brig(program="pass", json_record=False, env={"BRIG_STORE": str(tmp_path / "nowhere")}), "rootfs build basic", status=125)


BAD_PROFILES = [
    ("no JSON", "{", ("broken.json",)), ("an unknown key", '{"rootfs":"basic","policy":"python","net":1}', ("net",)),
    ("a policy that does not exist", '{"rootfs":"basic","policy":"nonesuch"}', ("nonesuch",)),
    ("a rootfs that does not exist", '{"rootfs":"nonesuch","policy":"python"}', ("nonesuch", "rootfs build nonesuch")),
    ("a default above its ceiling", '{"rootfs":"basic","policy":"python","limits":{"pids":300}}', ("pids", "300", "256")),
]


@pytest.mark.parametrize("text, words", [row[1:] for row in BAD_PROFILES], ids=[f"a profile with {row[0]} is refused" for row in BAD_PROFILES])
def test_broken_profile(jail, run_brig, tmp_path, text, words):
    shipped = host.build_dir() / "profiles"
    folder = tmp_path / "profiles"
    folder.mkdir()
    for path in shipped.glob("*.policy"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.json").write_text(text)
    one_line(run_brig("-p", "broken", program="pass", json_record=False, env={"BRIG_PRESETS": str(folder)}), *words)


# --- options ----------------------------------------------------------------------------------------------

OPTIONS = [
    ("--env", "LD_PRELOAD=x", ("LD_PRELOAD",)), ("--env", "PYTHONPATH=/tmp", ("PYTHONPATH",)), ("--env", "PYTHONSTARTUP=x", ("PYTHONSTARTUP",)),
    ("--env", "PATH=/tmp", ("PATH",)), ("--env", "GLIBC_TUNABLES=x", ("GLIBC_TUNABLES",)), ("--env", "NEWLINE=a\nb", ("NEWLINE",)),
    ("--env", "BELL=\x07", ("BELL",)), ("--env", "NOVALUE", ("NOVALUE",)), ("--env", "=x", ()), ("--env", "A B=x", ()),
    ("--memory", "64X", ("64X",)), ("--memory", "-1", ("-1",)), ("--memory", "", ()), ("--memory", "99999999999999999999", ()), ("--memory", "1K", ("memory",)),
    ("--pids", "0", ("0",)), ("--pids", "3.5", ("3.5",)), ("--timeout", "soon", ("soon",)), ("--timeout", "nan", ("nan",)), ("--cpus", "0", ()),
    ("--timeout", "100000", ("--timeout: 100000 is outside 0.01..86400",)), ("--pids", "x", ('--pids: "x" is not',)),
    ("--ro", "/nonexistent/dir", ("/nonexistent/dir",)), ("--ro", "/dev/null", ("/dev/null",)), ("--ro", "/", ()), ("--ro", "/proc", ("/proc", "host")),
    ("--ro", "/proc/self/net", ("/proc/self/net",)), ("--ro", "/sys/kernel", ("/sys/kernel",)),
    ("--stdin", "/nonexistent/file", ("/nonexistent/file",)), ("--stdin", "/etc", ("/etc",)), ("--nonesuch", None, ("nonesuch",)),
]


@pytest.mark.sample(10)
@pytest.mark.parametrize("option, value, words", OPTIONS, ids=[f"{row[0]} {row[1]!r} is refused" for row in OPTIONS])
def test_option(jail, run_brig, option, value, words):
    options = [option] if value is None else [option, value]
    one_line(run_brig(*options, program="print('ran')", json_record=False), *words)


def test_two_shown_directories_with_one_name_are_refused(jail, run_brig, tmp_path):
    for name in "ab":
        (tmp_path / name / "same").mkdir(parents=True)
    one_line(run_brig("--ro", tmp_path / "a" / "same", "--ro", tmp_path / "b" / "same", program="pass", json_record=False), "same")


def test_a_shown_directory_called_main_py_does_not_take_the_programs_place(jail, run_brig, tmp_path):
    (tmp_path / "main.py").mkdir()
    one_line(run_brig("--ro", tmp_path / "main.py", program="print('ran')", json_record=False), "main.py")


USAGE = [("no file", ["run"]), ("an unknown command", ["walk"]), ("an option without its value", ["run", "--memory"]),
         ("exec without a command", ["exec", "--"]), ("an unknown command of profile", ["profile", "walk"]),
         ("a word too many for profile list", ["profile", "list", "basic"]), ("an option of profile list", ["profile", "list", "--color"]),
         ("profile check without a name", ["profile", "check"]), ("a word for ps", ["ps", "basic"]),
         ("kill without a run", ["kill"]), ("an option that stats lacks", ["stats", "--color"]), ("an option that metrics lacks", ["metrics", "--color"]),
         ("a word for metrics", ["metrics", "basic"]), ("nowhere to listen", ["metrics", "--listen"]), ("no place to listen", ["metrics", "--listen=nowhere"]), ("an option of profile check", ["profile", "check", "--color", "basic"])]


@pytest.mark.sample(8)
@pytest.mark.parametrize("argv", [row[1] for row in USAGE], ids=[f"{row[0]} is wrong usage: 2" for row in USAGE])
def test_usage(brig, argv):
    done = subprocess.run([brig, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 2 and done.stdout == "" and 1 <= len(done.stderr.splitlines()) <= 3, done


def test_brig_alone_shows_the_commands_as_wrong_usage(brig):
    done = subprocess.run([brig], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 2 and done.stdout == "" and "usage: brig" in done.stderr and "doctor" in done.stderr, done


@pytest.mark.sample(5)
@pytest.mark.parametrize("argv", [["--help"], *([word, "--help"] for word in "run exec ps kill stats metrics explain doctor profile rootfs".split()),
                                  *(["profile", word, "--help"] for word in "list check schema".split())], ids=" ".join)
def test_help_goes_to_stdout(brig, argv):
    done = subprocess.run([brig, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 0 and "usage: brig" in done.stdout and "--help" in done.stdout and done.stderr == "", done


@pytest.mark.parametrize("file", ["basic.json", "python.policy", "groups.policy"])
def test_rules_that_everybody_may_write_are_refused(brig, tmp_path, file):
    for source in (pathlib.Path(__file__).parents[2] / "profiles").iterdir():
        (tmp_path / source.name).write_bytes(source.read_bytes())
        (tmp_path / source.name).chmod(0o644)
    (tmp_path / file).chmod(0o666)
    done = subprocess.run([brig, "profile", "check", "basic"], capture_output=True, text=True, env={"BRIG_PRESETS": str(tmp_path)})
    assert done.returncode == 1 and f"{tmp_path}/{file}: all users may write to it; type: chmod go-w" in done.stderr, done


# --- words that a terminal obeys --------------------------------------------------------------------------

WORDS = [
    # {}: what may come from somebody else
    "{}", "run {}", "run -p {} /dev/null", "run --env {} hello.py", "run --env {}=1 hello.py", "run --env LD_{}=1 hello.py", "run --{} x", "run --memory {} hello.py",
    "run --ro {} hello.py", "exec -- {}", "exec -- ./{}/x", "check {}", "explain {}", "explain --{}", "profile {}", "profile check {}", "profile list {}", "kill {}", "ps {}", "top --delay {}",
    "stats {}", "doctor {}", "audit {}", "audit --file {}", "audit --since {}", "audit --reason {}", "rootfs {}", "rootfs build {}", "rootfs verify {}", "rootfs lint {}", "rootfs gc --{}",
]


@pytest.mark.sample(8)
@pytest.mark.parametrize("words", WORDS)
def test_no_word_reaches_the_terminal_as_it_is(jail, brig, tmp_path, words):
    (tmp_path / "hello.py").write_text("pass")
    for what, name in terminal.NAMES.items():
        argv = [word.replace("{}", name) for word in words.split()]
        done = subprocess.run([brig, *argv], cwd=tmp_path, env=tool.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=host.HANG)
        assert done.returncode and done.stderr.count(b"\n") == 1 and done.stderr.endswith(b"\n") and not terminal.obeyed(done.stdout + done.stderr), f"{what}: {done}"


@pytest.mark.parametrize("words, text", [("check", "import os; x = "), ("check", "1 / 0\n"), ("run -v", "print(1)"), ("run", "raise SystemExit(3)"), ("run -v --ro {}", "pass")])
def test_no_name_of_a_file_or_directory_reaches_the_terminal_as_it_is(jail, brig, tmp_path, words, text):
    for what, name in terminal.NAMES.items():
        (tmp_path / f"{name}.py").write_text(text)
        (tmp_path / name).mkdir()
        done = subprocess.run([brig, *(word.replace("{}", name) for word in words.split()), f"{name}.py"], cwd=tmp_path, env=tool.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=host.HANG)
        assert not terminal.obeyed(done.stdout + done.stderr), f"{what}: {done}"


def test_a_profile_that_describes_itself_with_an_escape_sequence_is_neither_listed_nor_explained(brig, tmp_path):
    for name in terminal.NAMES.values():
        (tmp_path / "small.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "description": name}))
        for words in (["profile", "list"], ["profile", "check", "small"], ["explain", "small"], ["explain", "--json", "small"]):
            done = subprocess.run([brig, *words], env={"BRIG_PRESETS": str(tmp_path)}, capture_output=True, timeout=host.HANG)
            assert not terminal.obeyed(done.stdout + done.stderr) and (done.returncode == 0 or done.stderr.count(b"\n") == 1), done


# --- the standard streams ---------------------------------------------------------------------------------

def in_shell(brig, line):
    return subprocess.run(["bash", "-c", line, str(brig)], capture_output=True, text=True, timeout=host.HANG)


@pytest.mark.parametrize("words", ["--help", "--version", "run --help", "explain basic", "profile list", "profile schema"])
def test_a_full_disk_is_no_success(brig, words):
    done = in_shell(brig, f"$0 {words} > /dev/full")
    assert done.returncode == 1 and "No space left" in done.stderr, done


def test_a_record_that_cannot_be_written_is_no_success(jail, brig):
    done = in_shell(brig, "echo 'print(1)' | $0 run --json - > /dev/full")
    assert done.returncode == 141 and "record" in done.stderr and "No space left" in done.stderr, done


def test_output_that_cannot_be_written_says_why(jail, brig):
    done = in_shell(brig, "echo 'print(1)' | $0 run - > /dev/full")
    assert done.returncode == 141 and "output cannot be written: No space left" in done.stderr, done


def test_a_reader_that_has_enough_hears_nothing_more(jail, brig):
    done = in_shell(brig, "echo 'while 1: print(1)' | $0 run - | head -n 1; echo ${PIPESTATUS[1]}")
    assert (done.stdout, done.stderr) == ("1\n141\n", ""), done


@pytest.mark.parametrize("option, closed, prints", [("", ">&-", ""), ("", "2>&-", "ran\n"), ("--stdin -", "<&-", "ran\n")],
                         ids=["stdout", "stderr", "stdin"])
def test_a_closed_stream_is_not_taken_for_one_of_ours(jail, brig, tmp_path, option, closed, prints):
    (tmp_path / "x.py").write_text("import sys; print(sys.stdin.read() + 'ran')")
    done = in_shell(brig, f"$0 run {option} {tmp_path}/x.py {closed}")
    assert (done.returncode, done.stdout, done.stderr) == (0, prints, ""), done


# --- the host ---------------------------------------------------------------------------------------------

LACKS = [
    # what is missing, how it is taken away from one process, words
    ("the memory controller", ["unshare", "--mount", "sh", "-c", "umount -l /sys/fs/cgroup/memory && exec \"$@\"", "sh"], ("memory",)),
    ("the pids controller", ["unshare", "--mount", "sh", "-c", "umount -l /sys/fs/cgroup/pids && exec \"$@\"", "sh"], ("pids",)),
    ("any capability", ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"], ("CAP_SETFCAP", "as another user")),
    ("CAP_SETUID", ["setpriv", "--bounding-set", "-setuid", "--inh-caps", "-setuid"], ()),
    ("user namespaces", ["unshare", "--user", "--map-root-user", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"", "sh"], ()),
]


@pytest.mark.private("what brig's own host lacks, a service may have")
@pytest.mark.parametrize("prefix, words", [row[1:] for row in LACKS], ids=[f"a host without {row[0]} is told, with doctor" for row in LACKS])
@pytest.mark.requirement("B3")
def test_host_lacks(jail, prefix, words, tmp_path):
    argv = tool.command(program="print('ran')", folder=tmp_path, json_record=False)
    if "umount" in str(prefix) and not os.path.isdir("/sys/fs/cgroup/memory"):
        pytest.skip("needs cgroup v1, where one controller can be taken away")
    run = tool.Child([*prefix, *argv]).wait()
    one_line(run, "doctor", *words, status=125)


def test_a_fifo_in_the_place_of_a_policy_is_refused_at_once(needs_root, brig, tmp_path):
    folder = tmp_path / "profiles"
    shutil.copytree(host.build_dir() / "profiles", folder)
    (folder / "python.policy").unlink()
    os.mkfifo(folder / "python.policy")
    program = tmp_path / "program.py"
    program.write_text("print('ran')")
    done = subprocess.run([brig, "run", program], env={**os.environ, "BRIG_PRESETS": str(folder)}, capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 125 and "python.policy: not a regular file" in done.stderr and "ran" not in done.stdout, done
