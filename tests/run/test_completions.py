"""What Tab offers in bash, zsh and fish: the commands and options of this brig, profiles, runs and files."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys

import pytest

from support import brig as tool
from support import fake_server, host

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPLETIONS = ROOT / "packaging/completions"
COMMANDS = set(re.findall(r"^  ([a-z]+) ", subprocess.run([tool.binary(), "--help"], capture_output=True, text=True).stdout, re.M))
OPTIONS = set(re.findall(r"(--[a-z-]+)", "\n".join(re.findall(r"^  \S.*?(?:  |$)", subprocess.run([tool.binary(), "run", "--help"], capture_output=True, text=True).stdout, re.M))))


def environment():
    return tool.environment({"PATH": f"{tool.binary().parent}:{os.environ['PATH']}", "TERM": "dumb", "HOME": os.environ.get("HOME", "/")})


def in_bash(typed, cwd):
    script = '''source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _brig; printf "%s\\n" "${COMPREPLY[@]}"'''
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", COMPLETIONS / "brig", *typed], capture_output=True, text=True, env=environment(), cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done
    return set(filter(None, done.stdout.split("\n")))


def in_fish(typed, cwd):
    done = subprocess.run(["fish", "--no-config", "-c", f"source {COMPLETIONS / 'brig.fish'}; complete -C \"$argv\"", "--", " ".join(typed)],
                          capture_output=True, text=True, env={**environment(), "XDG_DATA_HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd)}, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


def in_zsh(typed, cwd):
    """zsh completes at a terminal only: its list is printed there between two marks, and the line is never run."""
    script = f'''
fpath=({COMPLETIONS} $fpath); autoload -Uz compinit; compinit -u -D
zstyle ':completion:*' verbose no; LISTMAX=0
compadd () {{ if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a found; builtin compadd -A found "$@"; print -rl -- $found; builtin compadd "$@" }}
show () {{ print -r "<<<"; zle complete-word; print -r ">>>"; exit }}
zle -N show; bindkey '^I' show; zle -C complete-word complete-word _main_complete
PS1=ready; print -z -- ''
'''
    rc = cwd / ".zshrc"
    rc.write_text(script)
    master, slave = pty.openpty()
    child = subprocess.Popen(["zsh", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, cwd=cwd, env={**environment(), "ZDOTDIR": str(cwd)})
    os.close(slave)
    seen = b""
    typed_at = False
    try:
        while b">>>" not in seen:
            assert select.select([master], [], [], host.HANG)[0], seen
            seen += os.read(master, 65536)
            if not typed_at and b"ready" in seen:
                os.write(master, " ".join(typed).encode() + b"\t")
                typed_at = True
    finally:
        child.kill()
        child.wait()
        os.close(master)
    return set(seen.decode().split("<<<")[1].split(">>>")[0].split())


SHELLS = {"bash": in_bash, "fish": in_fish, "zsh": in_zsh}


@pytest.fixture(params=sorted(SHELLS))
def complete(request, tmp_path):
    if not shutil.which(request.param):
        pytest.skip(f"missing program: {request.param}")
    (tmp_path / "program.py").write_text("")
    return lambda *typed: SHELLS[request.param](typed, tmp_path)


def test_the_first_word_is_a_command(complete):
    assert complete("brig", "") >= COMMANDS and "explain" in complete("brig", "ex")


def test_a_dash_brings_the_options_of_the_command(complete):
    assert OPTIONS > {"--timeout", "--ro", "--record"} and complete("brig", "run", "--") >= OPTIONS
    assert "--module" not in complete("brig", "exec", "--m") and "--memory" in complete("brig", "exec", "--m")


@pytest.mark.sample(1)
def test_behind_profile_come_the_profiles(complete):
    assert complete("brig", "run", "--profile", "") >= {"basic", "strict"} and "basic" in complete("brig", "run", "-p", "ba")
    assert "strict" in complete("brig", "explain", "str")


@pytest.mark.sample(1)
def test_commands_of_rootfs_and_their_options_are_known(complete):
    assert complete("brig", "rootfs", "") >= {"build", "verify", "gc"} and "--dry-run" in complete("brig", "rootfs", "gc", "--")


SESSIONS = [{"session": f"0d5e6f0c-0000-4000-8000-00000000000{n}", "name": name, "profile": "basic", "uid": 0, "age_ms": 0, "idle_ms": 0, "idle_left_ms": 0, "lifetime_left_ms": 0,
             "stays": True, "calls": 0, "running": [], "contexts": ["second"], "mine": True} for n, name in enumerate(("work", None))]


@pytest.fixture
def sessions(monkeypatch):
    """Of a service that is asked once for each test."""
    def script(server):
        server.receive()
        server.send({"reply": "list", "runs": [], "left_out": 0, "sessions": SESSIONS})
    with fake_server.server(script) as env:
        monkeypatch.setattr(sys.modules[__name__], "environment", lambda before=environment: {**before(), **env})
        yield {"work", SESSIONS[1]["session"]}


@pytest.mark.sample(1)
def test_commands_of_session_and_their_options_are_known(complete):
    assert complete("brig", "session", "") >= {"open", "run", "interrupt", "list"} and complete("brig", "session", "op") == {"open"}
    assert {"--context", "--artifacts"} <= complete("brig", "session", "run", "--") and "--lifetime" in complete("brig", "session", "open", "--li")


@pytest.mark.sample(3)
@pytest.mark.parametrize("command", ["run", "exec", "put", "get", "files", "interrupt", "close"])
def test_sessions_are_completed_by_their_names(complete, sessions, command):
    assert complete("brig", "session", command, "") >= sessions


@pytest.mark.sample(1)
def test_sessions_are_completed_for_a_shell(complete, sessions):
    assert complete("brig", "shell", "wo") == {"work"}


@pytest.mark.sample(1)
def test_sessions_are_completed_behind_options(complete, sessions):
    assert complete("brig", "session", "run", "--context", "b", "wo") == {"work"}


@pytest.mark.sample(1)
def test_behind_a_session_come_files(complete, sessions, request):
    done = complete("brig", "session", "put", "work", "pro")
    assert done == (set() if request.node.callspec.params["complete"] == "bash" else {"program.py"})


@pytest.mark.sample(1)
def test_trees_are_completed_for_rootfs_verify(complete, jail):
    assert "basic" in complete("brig", "rootfs", "verify", "")


@pytest.mark.sample(1)
def test_help_completes_commands(complete):
    assert "doctor" in complete("brig", "help", "doc")


@pytest.mark.sample(1)
def test_an_option_that_was_given_its_value_is_followed_by_options_again(complete):
    assert "--timeout" in complete("brig", "run", "--memory", "64M", "--time")


@pytest.mark.sample(1)
def test_a_file_can_be_named_where_a_program_is_expected(complete, request):
    if request.node.callspec.params["complete"] == "bash":
        assert complete("brig", "run", "pro") == set()  # bash then completes files itself: complete -o default
        assert "-o default" in (COMPLETIONS / "brig").read_text()
    else:
        assert "program.py" in complete("brig", "run", "pro")
