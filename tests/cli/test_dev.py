"""./dev says what it can do, and what to type when it cannot."""
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = "setup build rootfs node demo test vm matrix compat requirements bench lint fuzz install clean help".split()


def dev(*words, before=()):
    return subprocess.run([*before, "./dev", *words], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.requirement("A13", "A79")
def test_help_names_every_command():
    done = dev("help")
    named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("    ")]
    assert done.returncode == 0 and sorted(named) == sorted(COMMANDS)


def test_an_unknown_command_is_refused_with_the_list():
    done = dev("dmeo")
    assert done.returncode == 2 and "usage:" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["bench", "lib"], 'bench: no "lib"; there are: warm, cold, '),
    (["test", "lunch"], 'test: no tier "lunch"; there are: long, vm, all; '),
    (["test", "long", "--warm"], 'test: "--warm" after "long": one tier; before it, --warm, --ready or --cold'),
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
    assert done.stderr == "./dev: these packages are missing: bubblewrap crun firejail runc; type:  sudo ./dev setup bench\n"


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


def test_an_unknown_tier_is_refused():
    assert "there are: long, vm, all" in dev("test", "short").stderr


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


def test_ci_calls_what_the_readme_says():
    assert "./dev test" in (ROOT / ".ci/run").read_text() and "    ./dev test" in (ROOT / "README.md").read_text()
