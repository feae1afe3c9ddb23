"""./dev says what it can do, and what to type when it cannot."""
import ast
import collections
import contextlib
import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest

from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = "setup build rootfs pypi node demo test again times vm matrix compat requirements bench lint fuzz coverage mutants install uninstall deb tarball image clean help".split()


def dev(*words, before=()):
    return subprocess.run([*before, "./dev", *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.requirement("A13", "A79")
def test_help_names_every_command():
    done = dev("help")
    named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("    ")]
    assert done.returncode == 0 and sorted(named) == sorted(COMMANDS)


def test_the_demo_shows_what_it_is_at(tmp_path):
    """In a terminal, while a stage goes on: the first one here waits until the test has seen it."""
    text = (ROOT / "dev").read_text()
    for name, body in (("setup", "echo 'step one'; read -r line <go"), ("build", "echo 'step two'; return 3")):
        text = text.replace(f"\ncmd_{name}() {{\n", f"\ncmd_{name}() {{ {body}; }}\nold_{name}() {{\n")
    (tmp_path / "dev").write_text(text)
    (tmp_path / "dev").chmod(0o755)
    os.mkfifo(tmp_path / "go")
    ours, theirs = pty.openpty()
    demo = subprocess.Popen([tmp_path / "dev", "demo"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while not re.search(rb"setup +[0-9]+ s  step one", seen):
        seen += os.read(ours, 1000)
    (tmp_path / "go").write_text("\n")
    assert demo.wait(host.HANG) != 0
    with contextlib.suppress(OSError): # the end of a terminal
        while more := os.read(ours, 1000):
            seen += more
    os.close(ours)
    assert b"step one  (" in seen and b"failed" in seen and b"step two" in seen, seen


def test_an_unknown_command_is_refused_with_the_list():
    done = dev("dmeo")
    assert done.returncode == 2 and "usage:" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["bench", "lib"], 'bench: no "lib"; there are: warm, cold, '),
    (["test", "lunch"], 'test: "lunch" is no file, and no tier; there are: gate, nightly, long, neighbours, all; '),
    (["test", "nightly", "lunch"], "after nightly: guests, arm64, fuzz, "),
    (["test", "long", "gate"], 'test: "gate" after "long": one tier'),
    (["test", "-k"], "test: -k needs words"),
    (["build", "fast"], 'build: "fast" is not known; there are: installed, asan'),
])
def test_a_word_that_it_does_not_know_is_refused_before_anything_is_built(words, said):
    done = dev(*words)
    assert done.returncode != 0 and said in done.stderr and done.stdout == "", done


@pytest.mark.parametrize("command", ["test", "bench", "install"])
def test_who_is_not_root_gets_the_line_to_type(command):
    other = ["unshare", "--user", "--map-user=1000"]
    if subprocess.run([*other, "true"], capture_output=True).returncode != 0:
        pytest.skip("missing kernel feature: user namespaces")
    done = dev(command, before=other)
    assert done.returncode == 1 and done.stderr == f"./dev: this needs root; type:  sudo ./dev {command}\n"


def test_who_cannot_install_packages_is_told_which_are_missing(tmp_path):
    other = ["unshare", "--user", "--map-user=1000"]
    if subprocess.run([*other, "true"], capture_output=True).returncode != 0:
        pytest.skip("missing kernel feature: user namespaces")
    (tmp_path / "dpkg-query").write_text("#!/bin/sh\nexit 1\n") # a machine without any of them
    (tmp_path / "dpkg-query").chmod(0o755)
    done = dev("setup", "bench", before=[*other, "env", f"PATH={tmp_path}:/usr/bin:/bin"])
    assert done.returncode == 1
    assert done.stderr == "./dev: these packages are missing: bubblewrap crun firejail mitmproxy python3-ipykernel python3-jupyter-client runc squid tinyproxy; type:  sudo ./dev setup bench\n"


def test_help_names_every_group_of_packages():
    have = dev("setup", "nonesuch").stderr.split("there are: ")[1].split()
    line = next(line for line in dev("help").stdout.splitlines() if line.split()[0] == "setup")
    assert [group for group in have if group not in line] == []


@pytest.mark.parametrize("command, remedy", [("build", "clean all"), ("clean", "clean"), ("clean all", "clean all")])
def test_who_cannot_write_into_what_root_has_built_is_told_what_removes_it(tmp_path, command, remedy, needs_root):
    tmp_path.chmod(0o755)
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "dev").chmod(0o755)
    (tmp_path / "build").mkdir()
    (tmp_path / "build").chmod(0o700)
    done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "./dev", *command.split()], cwd=tmp_path, capture_output=True, text=True)
    said = f"./dev: {command.split()[0]}: build belongs to root; type:  sudo ./dev {remedy}\n"
    assert done.returncode == 1 and done.stderr == said


def test_every_row_of_what_covers_a_change_names_files_that_are_there():
    done = subprocess.run(["/usr/bin/python3", "-c", "import runpy, sys; sys.path[:0] = ['tools']; import changed; print(*changed.COVERED, sep='\\n')"],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    missing = [path for start, tests in rows for path in tests if not (ROOT / path).exists()]
    assert rows and not missing
    assert not [start for start, _ in rows if not list(ROOT.glob(f"{start}*"))]


def test_each_folder_of_sources_has_tests_that_cover_a_change():
    listed = subprocess.run(["git", "ls-files", "*.c"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    done = subprocess.run(["/usr/bin/python3", "-c", "import sys; sys.path[:0] = ['tools']; import changed\n"
                           "for path in sys.argv[1:]: print(path, *changed.covering(path))", *listed], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if len(line.split()) < 2] == []


def test_clean_refuses_a_word_it_does_not_know():
    built = ROOT / "build/build.ninja"
    had = built.exists()
    done = dev("clean", "store")
    assert done.returncode == 1 and '"store"' in done.stderr and built.exists() == had


def test_setup_refuses_a_group_it_does_not_know():
    done = dev("setup", "nonesuch")
    assert done.returncode == 1 and '"nonesuch"' in done.stderr and "bench" in done.stderr and done.stdout == ""


def test_an_unknown_fuzz_target_is_refused_with_the_list():
    done = dev("fuzz", "nonesuch")
    assert done.returncode == 1 and '"nonesuch"' in done.stderr and "profile" in done.stderr and "all" in done.stderr


@pytest.fixture
def left(request):
    """left(TEST...): the last run of a tier of its own has left these as failed."""
    path = ROOT / "build/failed-nonesuch"
    request.addfinalizer(lambda: path.unlink(missing_ok=True))
    return lambda *names: path.write_text("".join(f"{name}\n" for name in names))


GOOD = "tests/run/test_dev.py::test_an_unknown_command_is_refused_with_the_list"


@pytest.mark.nightly
def test_what_failed_is_run_again_three_times_and_named_when_it_passes(left):
    left(GOOD)
    done = dev("again", "nonesuch")
    assert done.returncode == 0 and done.stdout.count("1 passed") == 3, done
    assert re.fullmatch(rf"UNSTEADY \| \d{{4}}-\d\d-\d\d \| \S+ \| `{re.escape(GOOD)}` \|", done.stdout.splitlines()[-1])


def test_a_row_that_is_unsteady_for_the_third_time_is_mended_or_removed():
    """docs/unsteady.md: each row of its table is a test that failed once and then passed."""
    rows = re.findall(r"^\| \d{4}-\d\d-\d\d \| \S+ \| `([^`]+)`", (ROOT / "docs/unsteady.md").read_text(), re.MULTILINE)
    assert [name for name, times in collections.Counter(rows).items() if times >= 3] == []


@pytest.mark.sample(0, "none", "many")
@pytest.mark.parametrize("names, says", [((), "no test failed"), ((GOOD,) * 4, "4 tests failed"), (("tests/run/test_dev.py::no_such_test",), "fails alone, too")], ids=["none", "many", "one that is not there"])
def test_what_failed_for_no_reason_of_chance_is_not_run_away(left, names, says):
    left(*names)
    done = dev("again", "nonesuch")
    assert done.returncode == 1 and says in done.stderr and "UNSTEADY" not in done.stdout, done


def test_ci_runs_the_gate_that_the_readme_names_and_nothing_that_takes_hours():
    readme, ci = ((ROOT / name).read_text() for name in ("README.md", ".ci/run"))
    for command in ("./dev test", "./dev test gate"):
        assert f"\n{command} || ./dev again {command.split()[-1]}\n" in ci and f"\n{command}  " in readme
    assert "\n./dev lint\n" in ci and not {"nightly", "long", "neighbours"} & set(ci.split())
