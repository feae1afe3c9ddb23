"""brig session against a real brigd, as people type it. tests/run/test_sessions.py asks one that lies."""
import json
import os
import signal
import subprocess

import pytest

from support import brig as tool
from support import host

UUID = "00000000-0000-4000-8000-000000000000"


class Brig:
    """brig session of one service; sessions that it opened are closed at the end."""

    def __init__(self, service, cwd):
        self.env, self.cwd, self.opened = tool.environment({"BRIG_SOCKET": str(service.path)}), cwd, []

    def __call__(self, *words, **more):
        return subprocess.run([tool.binary(), "session", *map(str, words)], capture_output=True, text=True, errors="surrogateescape", timeout=host.HANG, check=False, env=self.env,
                              cwd=self.cwd, **(more or {"stdin": subprocess.DEVNULL}))

    def start(self, *words):
        return subprocess.Popen([tool.binary(), "session", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
                                cwd=self.cwd)

    def open(self, *words):
        done = self("open", *words)
        assert (done.returncode, done.stderr) == (0, ""), done
        self.opened.append(done.stdout.strip())
        return self.opened[-1]

    def run(self, session, code, *options):
        return self("run", session, *options, "-c", code)

    def value(self, session, code, *options):
        done = self.run(session, code, *options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def record(self, session, code, *options):
        return json.loads(self("run", session, "--json", *options, "-c", code).stdout)

    def exec(self, session, *words):
        return self("exec", session, *words)

    def listed(self):
        return json.loads(self("list", "--json").stdout)["sessions"]


@pytest.fixture
def session(daemon, tmp_path):
    made = Brig(daemon, tmp_path)
    yield made
    for name in made.opened:
        made("close", name)
    assert host.poll(lambda: not made.listed())


# --- open, list, close ---

def test_a_session_is_called_by_its_name_or_its_id(session):
    assert session.open("work") == "work" and len(session.open()) == len(UUID)
    rows = session.listed()
    assert [(row["name"], row["profile"], row["stays"], row["mine"]) for row in rows] == [("work", "basic", True, True), (None, "basic", True, True)]
    assert session.value(rows[0]["session"], "1") == session.value("work", "1") == session.value(session.opened[1], "1") == "1\n"


def test_stat_mkdir_mv_and_rm_do_what_their_names_are_in_a_shell(session):
    session.open("work")
    assert session("mkdir", "work", "a/b", "/workspace/c").stderr == "" and session.value("work", "open('a/f', 'w').write('text')") == "4\n"
    done = session("stat", "work", "--json", "a/f", "./c/", "none")
    rows = json.loads(done.stdout)
    assert [(row["name"], row["type"], row["bytes"], row["target"]) for row in rows][:1] == [("a/f", "file", 4, None)] and [row["name"] for row in rows] == ["a/f", "c"], rows
    assert done.returncode == 74 and done.stderr == "brig: not found: none: there is no such file or directory\n", done
    assert session("stat", "work", ".").stdout.splitlines()[1].split()[::5] == ["directory", "."]
    assert session("mv", "work", "a/f", "c/g").returncode == 0 and session("rm", "work", "a/b").returncode == 0
    assert session("rm", "work", "c").stderr == "brig: not removed: c: it is a directory that is not empty; rm --recursive removes one with all that is in it\n"
    assert session("rm", "-r", "work", "a", "c").returncode == 0 and session.value("work", "import os; os.listdir()") == "[]\n"
    for words, why in (("rm", "work", "."), "is /workspace itself"), (("rm", "-r", "work", "../x"), "has . or .. in it"), (("mv", "work", "a"), "write two paths"), (("stat", "work", "/etc/passwd"), "begins with a slash"):
        done = session(*words)
        assert done.returncode == 2 and why in done.stderr, done


def test_renew_moves_the_end_of_a_session_and_refuses_what_is_no_time_for_it(session):
    session.open("work")
    done = session("renew", "work", "2m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and 100000 < session.listed()[0]["lifetime_left_ms"] <= 120000
    assert 60000 <= json.loads(session("renew", "--json", "work", "1m").stdout)["lifetime_ms"] < 60000 + host.HANG * 1000
    for time, why in ("2d", "172800 s from now on are above the ceiling of profile basic: a session lives for at most 86400 s"), ("-1", "TIME"), ("9" * 30, "TIME"), ("x", "TIME"), ("0", "TIME"):
        done = session("renew", "--", "work", time)
        assert done.returncode and done.stderr.startswith("brig session renew: ") and why in done.stderr, done


def test_options_of_open_are_those_of_its_calls_and_its_cell(session):
    session.open("work", "--timeout", "0.2", "--memory", "64M", "--idle", "9", "--lifetime", "20", "-e", "COLOUR=blue")
    row, = session.listed()
    assert 8000 <= row["idle_left_ms"] <= 9000 and 10000 < row["lifetime_left_ms"] <= 20000
    assert session.value("work", "import os; os.environ['COLOUR']") == "'blue'\n" and session.exec("work", "sh", "-c", "echo $COLOUR").stdout == "blue\n"
    assert session.run("work", "while True: pass").returncode == 124
    assert session.run("work", "while True: pass", "--timeout", "0.1").returncode == 124


@pytest.mark.parametrize("words, status, says", [(("a b",), 125, 'brig: a b: "a b" is no name'), ((UUID,), 125, f'brig: {UUID}: "{UUID}" is no name'),
                                                 (("-p", "nothing"), 125, "nothing"), (("--idle", "30x"), 2, "--idle"), (("--idle", "200000"), 125, "brig: --idle"),
                                                 (("--memory", "900G"), 125, "brig: --memory")], ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_what_cannot_be_opened_says_why(session, words, status, says):
    done = session("open", *words)
    assert (done.returncode, done.stdout) == (status, "") and says in done.stderr and not session.listed(), done


def test_a_name_is_used_once_and_is_free_again_at_once_when_its_session_is_closed(session):
    session.open("work")
    again = session("open", "work")
    assert again.returncode == 125 and "work" in again.stderr
    for n in range(10):
        assert session("close", "work").returncode == 0
        session.open("work")
        assert session.value("work", f"x = {n}; x") == f"{n}\n"


def test_a_session_that_has_ended_is_told_with_the_reason(session):
    session.open("work")
    session("close", "work")
    for words, status in (("run", "work", "-c", "1"), 125), (("exec", "work", "true"), 125), (("files", "work"), 1), (("get", "work", "a"), 1), (("close", "work"), 1):
        done = session(*words)
        assert done.returncode == status and ("is being closed" in done.stderr or "session work has ended: its client closed it" in done.stderr), done
    assert 'you have no session "other"' in session("close", "other").stderr


def test_without_a_service_nothing_is_opened(built, tmp_path):
    done = subprocess.run([tool.binary(), "session", "open"], capture_output=True, text=True, env=tool.environment({"BRIG_SOCKET": None}), cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (125, "") and "systemctl enable --now brigd.socket" in done.stderr


# --- run ---

def test_variables_output_and_values_are_those_of_a_notebook(session):
    session.open("work")
    cells = [("x = 6", ""), ("x * 7", "42\n"), ("print('a'); x", "a\n6\n"), ("None", ""), ("import asyncio; await asyncio.sleep(0, 'later')", "'later'\n"),
             ("def f(n): return n + x", ""), ("f(1)", "7\n"), ("display('one'); display([2]); 3", "'one'\n[2]\n3\n"), ("'é\\n'", "'é\\n'\n")]
    assert [session.value("work", code) for code, _ in cells] == [printed for _, printed in cells]


def test_contexts_are_apart(session):
    session.open("work")
    assert session.value("work", "x = 1; x") == "1\n" and session.value("work", "'x' in globals()", "--context", "other") == "False\n"
    assert session.listed()[0]["contexts"] == ["main", "other"]


def test_a_file_and_standard_input_are_run_in_the_context(session, tmp_path):
    session.open("work")
    (tmp_path / "p.py").write_text("y = 5\ny")
    assert session("run", "work", "p.py").stdout == "5\n"
    with open(tmp_path / "p.py") as program:
        assert session("run", "work", "-", stdin=program).stdout == "5\n"
    assert session.value("work", "y + 1") == "6\n"


def test_an_error_has_its_traceback_and_status_and_loses_nothing(session):
    session.open("work")
    session.value("work", "def f():\n    return 1 / 0\nx = 3")
    done = session.run("work", "f()")
    assert (done.returncode, done.stdout) == (1, "") and "return 1 / 0" in done.stderr and done.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert session.value("work", "x") == "3\n" and session.run("work", "import sys; sys.exit(7)").returncode == 7 and session.value("work", "x") == "3\n"


def test_each_call_has_a_record_with_its_session(session, tmp_path):
    session.open("work")
    first, second = session.record("work", "1"), session.record("work", "2", "--context", "main")
    assert (first["session"]["state"], second["session"]["state"], second["session"]["context"]) == ("new", "kept", "main")
    assert first["session"]["id"] == second["session"]["id"] == session.listed()[0]["session"] and first["run_id"] != second["run_id"]
    assert (second["result"], second["exit_reason"], second["memory_peak_bytes"]) == (2, "exited", None)
    done = session("run", "work", "--record", "r.json", "-c", "3")
    assert done.stdout == "3\n" and json.loads((tmp_path / "r.json").read_text())["session"]["state"] == "kept"


def test_a_context_that_is_lost_is_told_and_files_stay(session):
    session.open("work")
    session.value("work", "open('f', 'w').write('kept'); x = 1; None")
    lost = session.run("work", "import os; os._exit(3)")
    assert (lost.returncode, lost.stderr) == (3, "brig: the interpreter of context main has ended, and its variables are lost\n")
    again = session.run("work", "'x' in globals(), open('f').read()")
    assert (again.stdout, again.stderr) == ("(False, 'kept')\n", "brig: context main has a new interpreter: the variables of earlier calls are lost\n")
    assert session.run("work", "1").stderr == ""


def test_a_call_that_is_out_of_time_keeps_its_variables(session):
    session.open("work")
    session.value("work", "x = 5")
    done = session.run("work", "print('begun', flush=True)\nwhile True: pass", "--timeout", "0.2")
    assert (done.returncode, done.stdout) == (124, "begun\n") and "KeyboardInterrupt" in done.stderr and "timeout_wall (--timeout 0.2)" in done.stderr
    assert session.value("work", "x") == "5\n"


def test_too_much_output_ends_the_call_alone(session):
    session.open("work")
    done = session.run("work", "while True: print('x' * 1000)", "--output", "1K")
    assert done.returncode == 153 and len(done.stdout) == 1024 and "output_limit (--output 1K)" in done.stderr
    assert session.exec("work", "true").returncode == 0


def test_ctrl_c_interrupts_the_call_and_its_variables_stay(session):
    session.open("work")
    child = session.start("run", "work", "-c", "x = 8\nprint('begun', flush=True)\nwhile True: pass")
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=host.HANG)
    assert (child.returncode, out) == (130, "") and "KeyboardInterrupt" in err
    assert session.value("work", "x") == "8\n"


def test_a_brig_that_is_killed_takes_its_call_along_and_not_the_session(session):
    session.open("work")
    session.value("work", "x = 8", "--context", "other")
    child = session.start("run", "work", "-c", "print('begun', flush=True)\nwhile True: pass")
    assert child.stdout.readline() == "begun\n"
    child.kill()
    child.communicate()
    assert host.poll(lambda: session.listed()[0]["running"] == [])
    assert session.value("work", "x", "--context", "other") == "8\n" and session.run("work", "1").stdout == "1\n"


def test_a_context_that_is_busy_refuses_a_second_call(session):
    session.open("work")
    child = session.start("run", "work", "-c", "print('begun', flush=True)\nwhile True: pass")
    assert child.stdout.readline() == "begun\n"
    done = session.run("work", "1")
    assert done.returncode == 75 and done.stderr.startswith("brig: --context: main is busy with call ")
    assert session.value("work", "1", "--context", "b") == "1\n"
    assert session("interrupt", "work").returncode == 0 and child.wait(host.HANG) == 130
    child.communicate()


# --- interrupt ---

def test_interrupt_reaches_one_call_or_all_of_a_session(session):
    session.open("work")
    loop = "print('begun', flush=True)\nwhile True: pass"
    children = [session.start("run", "work", "--context", name, "-c", loop) for name in "abc"]
    assert [child.stdout.readline() for child in children] == ["begun\n"] * 3
    running = session.listed()[0]["running"]
    assert len(running) == 3 and session("interrupt", running[0]).returncode == 0
    assert host.poll(lambda: [child.poll() for child in children].count(130) == 1)
    assert session("interrupt", "work").returncode == 0
    assert [child.wait(host.HANG) for child in children] == [130] * 3 and session("interrupt", "work").stderr == "brig session interrupt: work: no call is under way\n"
    for child in children:
        child.communicate()
    gone = session("interrupt", running[0])
    assert gone.returncode == 1 and "you have no call" in gone.stderr


# --- exec ---

def test_a_command_has_its_environment_directory_input_and_status(session):
    session.open("work")
    session.exec("work", "mkdir", "sub")
    done = session("exec", "work", "-w", "sub", "-e", "A=b", "--", "sh", "-c", "pwd; echo $A; cat; echo err >&2; exit 3", input="typed\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "/workspace/sub\nb\ntyped\n", "err\n")


def test_a_command_that_is_not_there_is_told_as_always(session):
    session.open("work")
    done = session.exec("work", "--", "nothing-here")
    assert done.returncode == 127 and done.stderr == "brig: nothing-here (in the rootfs): No such file or directory\n"


def test_commands_and_contexts_share_the_workspace(session):
    session.open("work")
    session.value("work", "open('a', 'w').write('from python'); None")
    assert session.exec("work", "cat", "a").stdout == "from python"


@pytest.mark.parametrize("detach", [True, False])
def test_what_a_command_started_goes_on_if_that_was_asked(session, detach):
    session.open("work")
    started = session.exec("work", *(["--detach"] if detach else []), "--", "sh", "-c", "sleep 1000 & echo $!")
    assert started.returncode == 0
    pid = int(started.stdout)
    assert session.value("work", f"import os; os.path.exists('/proc/{pid}')") == f"{detach}\n"


def test_ctrl_c_of_a_command_is_a_signal_to_it(session):
    session.open("work")
    child = session.start("exec", "work", "--", "sh", "-c", "trap 'echo caught; exit 9' INT; echo begun; while :; do sleep 0.01; done")
    assert child.stdout.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=host.HANG)[0] == "caught\n" and child.returncode == 9


# --- files ---

def test_files_go_in_and_out_and_are_listed(session, tmp_path):
    session.open("work")
    (tmp_path / "table.csv").write_text("a,b\n")
    (tmp_path / "src/deep").mkdir(parents=True)
    (tmp_path / "src/deep/one").write_bytes(bytes(range(256)) * 5000)
    assert session("put", "work", "table.csv", "src:data/in").returncode == 0
    session.value("work", "open('table.csv', 'a').write('1,2\\n'); import os; os.mkdir('out'); open('out/r', 'w').write('r'); None")
    listed = session("files", "work")
    assert listed.returncode == 0 and [line.split() for line in listed.stdout.splitlines()] == [["BYTES", "NAME"], ["1280000", "data/in/deep/one"], ["1", "out/r"], ["8", "table.csv"]]
    assert [row["name"] for row in json.loads(session("files", "work", "--json", "out/*").stdout)] == ["out/r"]
    done = session("get", "work", "table.csv:new.csv", "data/in:back", "out")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert (tmp_path / "new.csv").read_text() == "a,b\n1,2\n" and (tmp_path / "back/deep/one").read_bytes() == bytes(range(256)) * 5000 and (tmp_path / "out/r").read_text() == "r"


def test_put_replaces_what_is_there_and_keeps_what_is_executable(session, tmp_path):
    session.open("work")
    (tmp_path / "tool").write_text("#!/bin/sh\necho one\n")
    (tmp_path / "tool").chmod(0o755)
    session("put", "work", "tool")
    (tmp_path / "tool").write_text("#!/bin/sh\necho two\n")
    assert session("put", "work", "tool").returncode == 0 and session.exec("work", "./tool").stdout == "two\n"


def test_put_that_finds_no_room_is_told(session, tmp_path):
    session.open("work", "--workspace-size", "1M")
    (tmp_path / "big").write_bytes(bytes(2 << 20))
    (tmp_path / "small").write_text("s")
    done = session("put", "work", "big", "small")
    assert (done.returncode, done.stderr) == (74, "brig: not put: big: there is no room for it in /workspace\n")
    assert session.exec("work", "cat", "small").stdout == "s"


def test_links_and_special_files_do_not_come_out(session, tmp_path):
    session.open("work")
    session.exec("work", "sh", "-c", "ln -s /etc/passwd l; mkfifo p; ln -s / d; echo x > f")
    done = session("get", "work", "*")
    assert done.returncode == 74 and [path.name for path in tmp_path.iterdir()] == ["f"], done
    assert {line.split(": ")[2] for line in done.stderr.splitlines()} == {"l", "p", "d"}


def test_get_brings_what_other_programs_obey_only_by_its_name(session, tmp_path):
    session.open("work")
    session.exec("work", "sh", "-c", "mkdir .git; echo x > .git/config; echo x > f")
    done = session("get", "work", "*")
    assert done.returncode == 0 and [path.name for path in tmp_path.iterdir()] == ["f"] and done.stderr.startswith("brig: not saved: .git: its name begins with a dot"), done
    assert session("get", "work", ".git").returncode == 0 and (tmp_path / ".git/config").exists()


def test_names_of_programs_are_bytes_and_a_terminal_obeys_none(session, tmp_path):
    session.open("work")
    session.value("work", "import os\nfor name in (b'\\xff', b'a\\nb', b'\\x1b[2J', 'é'.encode(), b'n' * 255): os.close(os.open(name, os.O_CREAT | os.O_WRONLY))")
    listed = session("files", "work").stdout.splitlines()[1:]
    assert {line.split(None, 1)[1] for line in listed} == {"\ufffd", '"a\\nb"', '"\\u001B[2J"', "é", "n" * 255}
    done = session("get", "work", "*")
    assert done.returncode == 0 and {os.fsencode(path.name) for path in tmp_path.iterdir()} == {b"\xff", b"a\nb", b"\x1b[2J", "é".encode(), b"n" * 255}


def test_get_does_not_overwrite_and_says_what_is_missing(session, tmp_path):
    session.open("work")
    session.exec("work", "sh", "-c", "echo new > a; echo new > b")
    for name in "ab":
        (tmp_path / name).write_text("mine")
    done = session("get", "work", "a", "[b]", "none")
    assert done.returncode == 74 and (tmp_path / "a").read_text() == "new\n" and (tmp_path / "b").read_text() == "mine"
    assert done.stderr.splitlines() == ["brig: not saved: b: there is a file of this name already", "brig: not saved: none: there is no such file in /workspace"]


def test_a_sparse_file_larger_than_the_workspace_is_left_out(session, tmp_path):
    session.open("work")
    session.exec("work", "truncate", "-s", "1T", "hole")
    done = session("get", "work", "hole")
    assert (done.returncode, done.stderr) == (74, "brig: not saved: hole: it is larger than /workspace\n") and not list(tmp_path.iterdir())


# --- a program that ends all that it can ---

@pytest.mark.parametrize("words", [("exec", "work", "--", "sh", "-c", "kill -9 -1"), ("run", "work", "-c", "import os; os.kill(-1, 9)")], ids=["command", "context"])
def test_a_program_can_end_its_session_and_everybody_hears_it(session, words):
    session.open("work")
    done = session(*words)
    assert done.returncode == 143 and " lost\n" in done.stderr or "brig: the session has ended, with all that was in it\n" in done.stderr, done
    for again in ("files", "work"), ("run", "work", "-c", "1"), ("put", "work", __file__):
        assert "brig: session work has ended: it was ended by something in it" in session(*again).stderr.replace(f"brig session {again[0]}", "brig")


def test_a_call_whose_session_is_closed_says_so(session):
    session.open("work")
    child = session.start("run", "work", "-c", "print('begun', flush=True)\nwhile True: pass")
    assert child.stdout.readline() == "begun\n" and session("close", "work").returncode == 0
    assert "brig: the session has ended, with all that was in it\n" in child.communicate(timeout=host.HANG)[1] and child.returncode == 143


# --- other commands ---

def test_ps_and_top_show_a_session_as_a_run(session):
    session.open("work")
    for verb in ("ps",), ("top", "--once"):
        done = subprocess.run([tool.binary(), *verb], capture_output=True, text=True, env=session.env, check=False)
        assert done.returncode == 0 and session.listed()[0]["session"] in done.stdout, done


# --- pictures ---

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 4])\nplt.show()"


def test_a_figure_becomes_a_file_where_a_directory_is_named(session, tmp_path):
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)
    session.open("work", "-p", "data-science")
    told = session.run("work", PLOT, "--timeout", "60")
    assert told.returncode == 0 and told.stderr.splitlines()[-1] == "brig: the call shows 1 picture; with --artifacts DIR it becomes a file", told
    done = session.run("work", PLOT, "--artifacts", "shown", "--timeout", "60")
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "brig: picture: shown/call-1-1.png", done
    assert (tmp_path / "shown/call-1-1.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    frame = session.value("work", "import pandas; pandas.DataFrame({'a': [1, 2]})", "--timeout", "60")
    assert frame.splitlines()[0].strip() == "a" and len(frame.splitlines()) == 3


def test_contexts_of_a_session_draw_other_random_numbers_of_numpys(session):
    """numpy was imported before the session began, and seeds its legacy generator at import."""
    lack = host.lacks("rootfs:data-science")
    if lack:
        pytest.skip(lack)
    session.open("work", "-p", "data-science")
    drawn = [session.value("work", "import numpy; numpy.random.rand()", "--context", name, "--timeout", "60") for name in ("main", "a", "b")]
    assert len(set(drawn)) == 3, drawn
