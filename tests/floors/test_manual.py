"""The manual knows every option, and the formatters have nothing to complain about."""
import re
import shutil
import subprocess

import pytest

from support import host

COMMANDS = {"brig": ["", "run", "exec", "explain", "doctor", "profile", "rootfs"], "brig-rootfs": ["", "build", "list", "verify", "gc"]}


def pages():
    """Sources that stand alone, and pages that the build made."""
    built = sorted((host.build_dir() / "man").glob("*.[1-8]"))
    plain = sorted(p for p in (host.REPO / "man").glob("*.[1-8]") if p.name not in {b.name for b in built})
    return built + plain


def each_page():
    found = pages()
    return [pytest.param(p, id=p.name) for p in found] or [pytest.param(None, id="no page yet")]


@pytest.mark.parametrize("page", each_page())
def test_mandoc_is_silent(page):
    if not page or not shutil.which("mandoc"):
        pytest.skip("needs the program mandoc" if page else "there is no manual page in this build")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stdout + done.stderr


@pytest.mark.parametrize("page", each_page())
def test_groff_is_silent(page):
    if not page or not shutil.which("groff"):
        pytest.skip("needs the program groff" if page else "there is no manual page in this build")
    done = subprocess.run(["groff", "-ww", "-mdoc", "-Tutf8", "-z", page], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == "", done.stdout + done.stderr


def options_of(program, command):
    argv = [host.build_dir() / "bin" / program, *([command] if command else []), "--help"]
    text = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=10).stdout
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) | set(re.findall(r"(?<![\w-])-[a-zA-Z](?![\w-])", text))


@pytest.mark.parametrize("program", COMMANDS)
def test_every_option_of_help_is_in_the_manual(program):
    page = [p for p in pages() if p.name == f"{program}.1"]
    if not page:
        pytest.skip(f"there is no {program}.1 in this build")
    text = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=200", page[0]], capture_output=True, text=True).stdout
    text = re.sub(r".\x08", "", text).replace("\u2010", "-").replace("\u2212", "-")
    missing = {f"{program} {command}": sorted(o for o in options_of(program, command) if not re.search(re.escape(o) + r"(?![\w-])", text))
               for command in COMMANDS[program]}
    assert not any(missing.values()), {command: options for command, options in missing.items() if options}
