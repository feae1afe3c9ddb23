"""What people type: programs on the command line, modules, variables of their own, names of what is shown, records beside the output."""
import json
import os
import pty
import subprocess

import pytest

from support import brig as tool
from support import host

COMMANDS = "run exec session shell check ps kill stats metrics reload top packages explain doctor profile rootfs audit help".split()


def plain(*words, **kw):
    return subprocess.run([tool.binary(), *words], capture_output=True, text=True, **kw)


# --- brig itself ---

@pytest.mark.parametrize("command", COMMANDS[:-1])
def test_help_of_a_command_is_what_its_option_prints(command):
    helped, asked = plain("help", command), plain(command, "--help")
    assert (helped.returncode, helped.stdout) == (0, asked.stdout) and f"usage: brig {command}".replace(" rootfs", "-rootfs") in helped.stdout


def test_help_alone_lists_every_command():
    done = plain("help")
    assert done.returncode == 0 and [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line[2] != "-"] == COMMANDS


def test_help_of_what_is_no_command_is_an_error():
    done = plain("help", "fly")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "brig: fly: no such command; see brig --help\n")


def test_a_capital_v_says_the_version():
    assert plain("-V").stdout == plain("--version").stdout != ""


# --- programs that are no file ---

def test_c_runs_its_text_and_what_follows_are_arguments_even_options(jail):
    run = tool.run("-c", "import sys; print(sys.argv[1:])", args=["--json", "-v", "--", "-c"], json_record=False)
    assert (run.status, run.stdout) == (0, "['--json', '-v', '--', '-c']\n"), run


def test_c_takes_what_is_piped_in(jail):
    assert tool.run("-c", "print(input()[::-1])", json_record=False, input=b"jail\n").stdout == "liaj\n"


def test_c_has_a_record_with_the_value_of_its_last_expression(jail):
    assert tool.run("-c", "6 * 7").record["result"] == 42


def test_c_with_an_error_shows_its_line(jail):
    run = tool.run("-c", "a = 1\n1 / 0", json_record=False)
    assert run.status == 1 and "line 2, in <module>" in run.stderr and "ZeroDivisionError" in run.stderr, run


def test_m_runs_a_module_of_the_rootfs_as_main_with_arguments(jail):
    run = tool.run("-m", "json.tool", args=["--compact"], json_record=False, input=b'{"a": [1, 2]}')
    assert (run.status, run.stdout) == (0, '{"a":[1,2]}\n'), run


def test_m_finds_a_package_that_ro_shows(jail, tmp_path):
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import sys\nfrom . import side\nprint(__name__, __package__, side.X, sys.argv[1:])\n")
    (package / "side.py").write_text("X = 5\n")
    os.chmod(tmp_path, 0o755)
    run = tool.run("--ro", package, "-m", "parcel", args=["one"], json_record=False)
    assert (run.status, run.stdout) == (0, "__main__ parcel 5 ['one']\n"), run


@pytest.mark.parametrize("name", ["", "a b", "x'); import os; ('", "a..b", "-x", "a\nb", "../x"])
def test_m_takes_nothing_but_the_name_of_a_module(name):
    done = plain("run", "-m", name)
    assert done.returncode == 125 and "--module" in done.stderr and "no name of a module" in done.stderr, done


def test_exec_has_neither():
    for option in "-c", "-m", "--code", "--module":
        done = plain("exec", option, "x")
        assert done.returncode == 2 and f"{option}: no such option" in done.stderr, done


# --- variables ---

def test_a_variable_without_a_value_is_taken_over(jail):
    run = tool.run("-e", "COLOUR", "-e", "EMPTY", "-e", "SAID=yes", "-c", "import os; print([os.environ.get(k) for k in ('COLOUR', 'EMPTY', 'SAID', 'OTHER')])",
                   env={"COLOUR": "blue=green", "EMPTY": "", "OTHER": "x"}, json_record=False)
    assert run.stdout == "['blue=green', '', 'yes', None]\n", run


def test_a_variable_that_is_not_there_is_an_error_that_says_what_to_write():
    done = plain("run", "-e", "NO_SUCH", "-c", "pass")
    assert done.returncode == 2 and "--env NO_SUCH: there is no such variable in your environment; write --env NO_SUCH=VALUE" in done.stderr
    empty = plain("run", "-e", "", "-c", "pass")
    assert empty.returncode == 2 and "--env: the name is empty; write --env NAME or --env NAME=VALUE" in empty.stderr


# --- what is shown ---

def test_ro_shows_a_file_or_a_directory_under_another_name(jail, tmp_path):
    os.chmod(tmp_path, 0o755)
    (tmp_path / "table.csv").write_text("1,2\n")
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir/in").write_text("in\n")
    run = tool.run("--ro", f"{tmp_path}/table.csv:data", "--ro", f"{tmp_path}/dir:d", "-c", "print(open('data').read(), open('d/in').read())", json_record=False)
    assert (run.status, run.stdout) == (0, "1,2\n in\n\n"), run


def test_a_path_with_a_colon_is_itself(jail, tmp_path):
    os.chmod(tmp_path, 0o755)
    (tmp_path / "a:b").write_text("colon\n")
    run = tool.run("--ro", tmp_path / "a:b", "-c", "import os; print(os.listdir('.'))", json_record=False)
    assert "a:b" in run.stdout, run


def test_a_program_in_a_directory_under_another_name_finds_its_modules(jail, tmp_path):
    os.chmod(tmp_path, 0o755)
    (tmp_path / "main.py").write_text("import other; print(other.X, __file__)")
    (tmp_path / "other.py").write_text("X = 3")
    run = tool.run("--ro", f"{tmp_path}:proj", file=tmp_path / "main.py", json_record=False)
    assert run.stdout == "3 /workspace/proj/main.py\n", run


@pytest.mark.parametrize("name", ["", "..", "main.py", "a\tb"])
def test_a_name_that_cannot_be_shown_is_refused(jail, tmp_path, name):
    run = tool.run("--ro", f"{tmp_path}:{name}", "-c", "pass", json_record=False)
    assert run.status == 125 and "--ro" in run.stderr, run


@pytest.mark.parametrize("name", ["/etc", "../x", "a/b"])
def test_a_name_with_a_slash_behind_a_path_that_exists_is_refused_as_a_name(tmp_path, name):
    done = plain("run", "--ro", f"{tmp_path}:{name}", "-c", "pass")
    assert done.returncode == 125 and f'--ro {tmp_path}:{name}: the name after ":" is one of /workspace: it has no "/"' in done.stderr


def test_a_slash_behind_the_colon_belongs_to_a_path(tmp_path):
    done = plain("run", "--ro", f"{tmp_path}/none:/etc", "-c", "pass")
    assert done.returncode == 125 and f"--ro {tmp_path}/none:/etc: No such file or directory" in done.stderr


@pytest.mark.parametrize("path", ["/", "/:all", "/..:all", "/usr/..:all"])
def test_the_whole_host_is_not_shown_under_any_name(path):
    done = plain("run", "--ro", path, "-c", "pass")
    assert done.returncode == 125 and "not the whole host" in done.stderr, done


# --- the record beside the output ---

def test_record_writes_to_a_file_and_the_output_is_passed_on(jail, tmp_path):
    to = tmp_path / "record.json"
    to.write_text("x" * 100000)
    run = tool.run("--record", to, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", json_record=False)
    record = json.loads(to.read_text())
    assert (run.status, run.stdout, run.stderr) == (3, "out\n", "err\n") and (record["exit_reason"], record["exit_code"], record["stdout_bytes"]) == ("exited", 3, 4)


def test_record_writes_to_a_descriptor_that_the_program_does_not_have(jail):
    reader, writer = os.pipe()
    with os.fdopen(reader) as pipe:
        run = tool.run("--record", writer, "-c", f"import os; print(os.path.exists('/proc/self/fd/{writer}'))", json_record=False, popen={"pass_fds": [writer]})
        os.close(writer)
        assert run.stdout == "False\n" and json.loads(pipe.read())["exit_reason"] == "exited"


def test_record_tells_of_a_run_that_was_refused(tmp_path):
    to = tmp_path / "record.json"
    run = tool.run("--record", to, "--pids", "1000", "-c", "pass", json_record=False)
    assert run.status == 125 and json.loads(to.read_text())["exit_reason"] == "denied", run


@pytest.mark.parametrize("number", ["0", "1", "2", "77", "99999999999"])
def test_record_takes_no_stream_of_the_program_and_nothing_that_is_not_open(number):
    done = plain("run", "--record", number, "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (125, "") and f"--record {number}: " in done.stderr, done


def test_nothing_runs_when_the_record_cannot_be_kept(tmp_path):
    done = plain("run", "--record", tmp_path / "no/record", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (125, "") and "No such file or directory" in done.stderr


def test_a_record_that_cannot_be_written_is_141(jail):
    run = tool.run("--record", "/dev/full", "-c", "pass", json_record=False)
    assert run.status == 141 and "the record cannot be written: No space left on device" in run.stderr, run


# --- how much brig says ---

def test_quiet_says_nothing_of_how_a_run_ended(jail):
    run = tool.run("-q", "-v", "--timeout", "0.2", "-c", "while True: pass", json_record=False)
    assert (run.status, run.stderr) == (124, ""), run


def test_quiet_still_says_why_there_was_no_run():
    done = plain("run", "-q", "--pids", "1000", "-c", "pass")
    assert done.returncode == 125 and "--pids" in done.stderr


def in_terminal(*words, **env):
    """What a terminal is sent."""
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        child = subprocess.Popen([tool.binary(), *words], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=tool.environment(env))
        os.close(slave)
        shown = b""
        try:
            while more := screen.read(65536):
                shown += more
        except OSError: # EIO: no process has the other side any more
            pass
        assert child.wait(timeout=host.HANG) in (0, 1, 124)
    return shown


ENDED = "run", "--timeout", "0.2", "-c", "while True: pass"


@pytest.mark.parametrize("words", [ENDED, ("explain",), ("doctor", "--quiet")], ids=["a run that was ended", "explain", "doctor"])
def test_a_terminal_gets_color_and_no_color_turns_it_off(jail, words):
    assert b"\x1b[" in in_terminal(*words, TERM="xterm")
    assert b"\x1b" not in in_terminal(*words, TERM="xterm", NO_COLOR="1")
    assert b"\x1b" not in in_terminal(*words, TERM="dumb")


def test_what_is_no_terminal_gets_no_color(jail):
    for words in ENDED, ("explain", "--all"), ("doctor",):
        done = plain(*words, env=tool.environment({"TERM": "xterm"}))
        assert "\x1b" not in done.stdout + done.stderr
