"""--workdir: a program works in the directory of its jail that was named, however it was started."""
import contextlib

import pytest

from rules import MANY
from support import brig as tool
from support import daemon as daemons, host
from support import tiers, warm_load

LOOK = "import os, sys; print(os.getcwd(), os.readlink('/proc/self/cwd'), __file__, sys.path[0] in ('', os.getcwd())); open('here', 'w').close()"
ERRORS = [("none", "No such file or directory"), ("/etc/passwd", "Not a directory"), ("main.py", "Not a directory"), ("x" * 300, "File name too long"),
          ("/proc/1/cwd", "No such file or directory"), ("/proc/1/root/etc", "No such file or directory")]


@pytest.fixture(scope="module", params=tiers.few(["never", "demand", "ready"], "never", "ready"))
def service(request, no_stock):
    scratch, profiles = warm_load.only_basic(request.param, ready=2)
    with scratch, contextlib.closing(daemons.Daemon(MANY, env={"BRIG_PRESETS": str(profiles)})) as running:
        assert request.param == "never" or warm_load.is_warm_again(running), running.words()
        yield running


def run(service, *options, **kw):
    return tool.run(*options, env={"BRIG_SOCKET": str(service.path)}, json_record=False, **kw)


@pytest.mark.parametrize("options", [(), ("--cold",), ("--private",)], ids=["as the profile says", "cold", "private"])
def test_a_program_works_where_it_was_told_to(service, options):
    done = run(service, *options, "-w", "/tmp", "-c", LOOK)
    assert (done.status, done.stdout) == (0, "/tmp /tmp /workspace/main.py False\n"), done


def test_a_command_works_where_it_was_told_to(service):
    done = run(service, "--workdir", "/usr/lib", verb="exec", args=["--", "pwd"])
    assert (done.status, done.stdout) == (0, "/usr/lib\n"), done


def test_a_path_that_is_not_absolute_begins_at_the_workspace(service, tmp_path):
    host.open_way(tmp_path)
    (tmp_path / "inner").mkdir()
    done = run(service, "--ro", f"{tmp_path}:proj", "-w", "proj/inner", "-c", "import os; print(os.getcwd())")
    assert done.stdout == "/workspace/proj/inner\n", done


def test_the_report_of_a_program_is_of_that_program(service):
    done = tool.run("-w", "/tmp", "-c", "import os\nos.getcwd()", env={"BRIG_SOCKET": str(service.path)})
    assert done.record["result"] == "/tmp" and done.record["error"] is None, done


def test_an_error_in_the_program_still_shows_its_line(service):
    done = tool.run("-w", "/tmp", "-c", "x = 1\nx / 0", env={"BRIG_SOCKET": str(service.path)})
    assert done.record["error"]["line"] == 2 and done.record["error"]["text"] == "x / 0", done


def test_m_looks_for_its_module_there_first(service, tmp_path):
    host.open_way(tmp_path)
    (tmp_path / "tool.py").write_text("print('found', __name__)")
    done = run(service, "--ro", f"{tmp_path}:proj", "-w", "proj", "-m", "tool")
    assert done.stdout == "found __main__\n", done


@pytest.mark.parametrize("options", [(), ("--cold",)], ids=["as the profile says", "cold"])
@pytest.mark.parametrize("path, why", ERRORS, ids=[row[0][:20] for row in ERRORS])
def test_a_directory_that_is_not_there_is_told_and_nothing_runs(service, path, why, options):
    done = run(service, *options, "-w", path, "-c", "print('ran')")
    assert (done.status, done.stdout) == (125, "") and f"working directory: {why} (in the jail)" in done.stderr and "doctor" not in done.stderr, done
    assert run(service, "-c", "print('next')").stdout == "next\n"


def test_nothing_of_the_host_is_a_working_directory(service, tmp_path):
    done = run(service, "-w", str(tmp_path), "-c", "print('ran')")
    assert done.status == 125 and "No such file or directory" in done.stderr, done


def test_the_report_of_a_program_beside_its_modules_is_the_same_from_elsewhere(service, tmp_path):
    host.open_way(tmp_path)
    (tmp_path / "main.py").write_text("import other, os, sys\n[other.X, os.getcwd(), __file__, sys.argv]")
    (tmp_path / "other.py").write_text("X = 3")
    done = tool.run("--ro", f"{tmp_path}:proj", "-w", "/tmp", file=tmp_path / "main.py", env={"BRIG_SOCKET": str(service.path)})
    path = "/workspace/proj/main.py"
    assert done.record["result"] == [3, "/tmp", path, [path]], done
