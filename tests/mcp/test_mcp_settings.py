"""Where brig-mcp is told how to work, who goes before whom, and what a mistake is answered with."""
import contextlib
import json
import os
import re
import subprocess

import pytest

from support import brig, host
from support.mcp import McpHttp, McpStdio, binary, options

OPTIONS = options()
NO_SETTINGS = ["check", "print-config", "config", "stdio", "transport"] # options that are none
TOKEN = "t0k3n-" + "0123456789abcdef" * 2


class Place:
    """A working directory and a home of a test's own, with brig-mcp in it."""

    def __init__(self, folder):
        self.home, self.work = folder / "home", folder / "work"
        (self.home / ".config/brig").mkdir(parents=True)
        self.work.mkdir()
        self.config = self.home / ".config/brig/mcp.json"
        self.config.write_text("{}") # so that none of this host is read
        self.dotenv = self.work / ".env"

    def run(self, *args, env=None, input=b"", **popen):
        popen.setdefault("cwd", self.work)
        return subprocess.run([binary(), *args], env=brig.environment({"HOME": str(self.home), **(env or {})}), input=input, capture_output=True,
                              timeout=host.HANG, **popen)

    def printed(self, *args, env=None):
        """{option: (value, who said it)}"""
        done = self.run("--print-config", *args, env=env)
        assert done.returncode == 0, done.stderr
        found = {}
        for line in done.stdout.decode().splitlines():
            option, value, said = re.split("  +", line)
            found[option] = value, said
        return found

    def refused(self, *args, env=None, status=2):
        """The one line on stderr."""
        done = self.run(*args, env=env)
        assert (done.returncode, done.stdout) == (status, b""), (done.returncode, done.stdout, done.stderr)
        (line,) = done.stderr.decode().splitlines()
        assert line.startswith("brig-mcp: ")
        return line.removeprefix("brig-mcp: ")


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


# --- printing --------------------------------------------------------------------------------------------

def test_print_config_shows_every_setting_with_its_origin(place):
    printed = place.printed()
    told = re.findall(r"^  --([a-z-]+)", place.run("--help").stdout.decode(), re.M)
    assert list(printed) == [option for option in told if option not in NO_SETTINGS] and len(printed) > 30
    assert {said for _, said in printed.values()} == {"default"}
    assert printed["timeout"] == ("30", "default") and printed["max-timeout"] == ("300", "default") and printed["port"] == ("9015", "default")


def test_help_names_every_option_and_exits_with_0(place):
    done = place.run("--help", env={"SANDBOX_TIMEOUT": "abc", "BRIG_MCP_NONSENSE": "1"})
    assert done.returncode == 0 and done.stderr == b""
    wanted = [*OPTIONS, *NO_SETTINGS, "version", "help"]
    assert [option for option in wanted if f"--{option}" not in done.stdout.decode()] == []


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version_is_one_line(place, word):
    done = place.run(word)
    assert done.returncode == 0 and re.fullmatch(rb"brig-mcp \d+\.\d+\.\d+\n", done.stdout) and done.stderr == b""


def test_a_full_disk_is_no_success(place):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([binary(), "--print-config"], stdout=full, stderr=subprocess.PIPE, cwd=place.work, timeout=host.HANG,
                              env=brig.environment({"HOME": str(place.home)}))
    assert done.returncode == 1


# --- the order -------------------------------------------------------------------------------------------

@pytest.mark.requirement("A14")
def test_options_go_before_the_environment_before_dotenv_before_the_file_before_presets(place):
    place.config.write_text(json.dumps({"timeout": 1, "max_timeout": 11, "progress": 1, "output": "1K"}))
    place.dotenv.write_text("SANDBOX_TIMEOUT=2\nSANDBOX_MAX_TIMEOUT=12\nBRIG_MCP_PROGRESS=2\n")
    printed = place.printed("--timeout", "4", env={"SANDBOX_TIMEOUT": "3", "SANDBOX_MAX_TIMEOUT": "13"})
    assert printed["timeout"] == ("4", "--timeout")
    assert printed["max-timeout"] == ("13", "SANDBOX_MAX_TIMEOUT in the environment")
    assert printed["progress"] == ("2", ".env, line 3: BRIG_MCP_PROGRESS")
    assert printed["output"] == ("1K", f"{place.config}, line 1: output")
    assert printed["yield-after"] == ("45", "default")


PUBLISHED = [ # row, variable, value, option, value as printed
    ("A28", "SANDBOX_TIMEOUT", "5", "timeout", "5"),
    ("A29", "SANDBOX_MAX_OUTPUT_SIZE", "1048576", "output", "1M"),
    ("A30", "SANDBOX_ENABLE_NETWORK", "true", "profile", "network"),
    ("A31", "SANDBOX_ENABLE_FILESYSTEM", "yes", "profile", "filesystem"),
    ("A32", "SANDBOX_ENABLE_DATA_SCIENCE", "1", "profile", "data-science"),
    ("A33", "SANDBOX_ALLOWED_IMPORTS", " math , json ", "allowed-imports", "math,json"),
    ("A34", "SANDBOX_ENABLE_CONTAINER_MODE", "false", "container-mode", "false"),
    ("A35", "SANDBOX_CONTAINER_IMAGE", "python:3.12", "container-image", "python:3.12"),
    ("A36", "SANDBOX_DEFAULT_MEMORY_LIMIT", "128m", "memory", "128M"),
    ("A37", "SANDBOX_DEFAULT_TIMEOUT", "7", "timeout", "7"),
    ("A37", "SANDBOX_MAX_TIMEOUT", "60", "max-timeout", "60"),
    ("A38", "SANDBOX_API_TOKEN", TOKEN, "token-file", f"set ({len(TOKEN)} characters)"),
]


@pytest.mark.parametrize("row, variable, value, option, wanted", PUBLISHED, ids=[row[1] for row in PUBLISHED])
@pytest.mark.parametrize("source", ["environment", ".env"])
@pytest.mark.requirement("A14", "A28", "A29", "A30", "A31", "A32", "A33", "A34", "A35", "A36", "A37", "A38")
def test_a_published_variable_means_what_it_meant(place, source, row, variable, value, option, wanted):
    if source == ".env":
        place.dotenv.write_text(f'# as published\n{variable}="{value}"\n')
        place.dotenv.chmod(0o600)
    printed = place.printed(env={variable: value} if source == "environment" else None)
    assert printed[option][0] == wanted, f"{row}: {printed[option]}"


def test_every_published_variable_has_a_test():
    """The manual lists them, made from the table that the program has."""
    page = (host.build_dir() / "man/brig-mcp.1").read_text()
    assert set(re.findall(r"SANDBOX_[A-Z_]*[A-Z]", page)) == {variable for _, variable, *_ in PUBLISHED}


@pytest.mark.sample(10)
@pytest.mark.parametrize("option", [option for option in OPTIONS if option not in ("token-file", "http", "insecure-loopback")])
def test_each_setting_can_be_said_in_three_spellings(place, option):
    value = {"profile": "strict", "reply": "text", "imports": "enforce", "server": "private", "host": "127.0.0.2", "allow-origin": "http://a.example",
             "allow-host": "a.example", "allow-missing": "memory", "net": "a.example", "allowed-imports": "math", "container-image": "x", "timeout": "9", "yield-after": "9", "progress": "9",
             "output": "9K", "text-size": "9K", "memory": "9M", "allow-tools": "fs.*", "ask-tools": "fs.*", "deny-tools": "*", "other-tools": "deny"}.get(option, "true" if place.printed()[option][0] in ("true", "false") else "9")
    plain = option.replace("-", "_")
    if option == "max-timeout":
        value = "90"
    assert place.printed(f"--{option}={value}")[option] == (value, f"--{option}")
    assert place.printed(env={f"BRIG_MCP_{plain.upper()}": value})[option] == (value, f"BRIG_MCP_{plain.upper()} in the environment")
    place.config.write_text(json.dumps({plain: value}))
    assert place.printed()[option] == (value, f"{place.config}, line 1: {plain}")


# --- mistakes --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("args, env, dotenv, config, wanted", [
    (["--timout", "5"], {}, None, None, "--timout: no such option; is it --timeout? see --help"),
    (["--timeout"], {}, None, None, "--timeout: needs a value: --timeout TIME"),
    (["--allow-missing", "memory,disk"], {}, None, None, '--allow-missing: "disk" is not a limit that can be missing; there are: memory, cpus'),
    ([], {}, "BRIG_MCP_ALLOW_MISSING=memory\n", None, ".env, line 1: BRIG_MCP_ALLOW_MISSING: not allowed in this file; set it as an option or in the environment"),
    ([], {}, "BRIG_MCP_NET=a.example\n", None, ".env, line 1: BRIG_MCP_NET: not allowed in this file; set it as an option or in the environment"),
    (["run"], {}, None, None, '"run" is not an option, and brig-mcp takes no other arguments; see --help'),
    (["--timeout", "abc"], {}, None, None, '--timeout: "abc" is not a time, like 30, 0.5, 90s, 5m, 1h or 1d'),
    ([], {"SANDBOX_TIMEOUT": "400000"}, None, None, "SANDBOX_TIMEOUT in the environment: 400000 is outside 0.01..86400"),
    ([], {"BRIG_MCP_REPLAY": "text"}, None, None, "BRIG_MCP_REPLAY in the environment: no such setting; is it BRIG_MCP_REPLY?"),
    ([], {}, "\nSANDBOX_TIMEOUT=abc\n", None, '.env, line 2: SANDBOX_TIMEOUT: "abc" is not a time, like 30, 0.5, 90s, 5m, 1h or 1d'),
    ([], {}, "BRIG_MCP_HTTP=1\n", None, ".env, line 1: BRIG_MCP_HTTP: not allowed in this file; set it as an option or in the environment"),
    ([], {}, None, '{\n"timout": 5}', "CONFIG, line 2: timout: no such setting; is it timeout?"),
    ([], {}, None, "{", "CONFIG: line 1, column 1: string or '}' expected near end of file"),
    ([], {}, None, '{"timeout": "abc"}', 'CONFIG, line 1: timeout: "abc" is not a time, like 30, 0.5, 90s, 5m, 1h or 1d'),
    (["--timeout", "600"], {}, None, None, "--timeout: 600 s is more than a call may ask for, 300 s; set --max-timeout to 600 or more as well"),
    (["--http", "--insecure-loopback", "--host", "0.0.0.0"], {}, None, None,
     "--insecure-loopback: 0.0.0.0 can be reached from elsewhere, which needs a token; use --host 127.0.0.1 or --token-file FILE"),
])
def test_a_mistake_is_told_with_its_place_and_what_to_write(place, args, env, dotenv, config, wanted):
    if dotenv:
        place.dotenv.write_text(dotenv)
    if config:
        place.config.write_text(config)
    assert place.refused(*args, env=env) == wanted.replace("CONFIG", str(place.config))


def test_bytes_that_are_no_text_are_refused_wherever_they_stand(place):
    assert "the text is not UTF-8" in place.refused(env={b"SANDBOX_CONTAINER_IMAGE": b"\xff"})
    assert "the text is not UTF-8" in place.refused(b"--container-image=\xff")
    place.dotenv.write_bytes(b"SANDBOX_CONTAINER_IMAGE=\xff\n")
    assert "the text is not UTF-8" in place.refused()


def test_a_mistake_keeps_the_protocol_silent(place):
    """A client that waits for an answer sees the end of the stream, not noise."""
    done = place.run("--timeout", "x", input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert (done.returncode, done.stdout) == (2, b"")


# --- the token -------------------------------------------------------------------------------------------

def http_printed(place, *args, env=None):
    return place.printed("--http", *args, env=env)["token-file"]


@pytest.mark.requirement("A38")
@pytest.mark.parametrize("env, wanted", [
    ({}, "HTTP needs a token of at least 32 characters: --token-file FILE, or SANDBOX_API_TOKEN in the environment"),
    ({"SANDBOX_API_TOKEN": ""}, "HTTP needs a token of at least 32 characters"),
    ({"SANDBOX_API_TOKEN": "x" * 31}, "SANDBOX_API_TOKEN in the environment: the token has 31 characters, at least 32 are needed"),
    ({"SANDBOX_API_TOKEN": "x" * 32 + " "}, "SANDBOX_API_TOKEN in the environment: blanks and control characters cannot be sent as a token"),
], ids=["none", "empty", "short", "blank"])
def test_http_without_a_good_token_ends_with_1(place, env, wanted):
    said = place.refused("--http", env=env, status=1)
    assert said.startswith(wanted) and "openssl rand -hex 32" in said


@pytest.mark.requirement("A38")
def test_the_token_is_printed_nowhere(place):
    done = place.run("--http", "--print-config", env={"SANDBOX_API_TOKEN": TOKEN})
    assert done.returncode == 0 and TOKEN.encode() not in done.stdout + done.stderr
    assert http_printed(place, env={"SANDBOX_API_TOKEN": TOKEN}) == (f"set ({len(TOKEN)} characters)", "SANDBOX_API_TOKEN in the environment")


def test_a_token_file_is_read_without_its_newline(place):
    file = place.work / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    assert http_printed(place, "--token-file", str(file)) == (f"set ({len(TOKEN)} characters)", "--token-file")
    printed = http_printed(place, env={"BRIG_MCP_TOKEN_FILE": str(file)})
    assert printed == (f"set ({len(TOKEN)} characters)", "BRIG_MCP_TOKEN_FILE in the environment")
    file.chmod(0o640)
    assert http_printed(place, "--token-file", str(file), env={"SANDBOX_API_TOKEN": "weak"})[1] == "--token-file"


def test_a_token_file_is_not_read_where_there_is_no_http(place):
    """A configuration for all may name one that only the service can read."""
    assert place.printed("--token-file", "/absent")["token-file"] == ("in a file; read for HTTP only", "--token-file")
    assert place.run("--token-file", "/absent").returncode == 0


@pytest.mark.parametrize("mode, wanted", [(0o644, "others may read it; type: chmod 600"), (0o620, "its group may write to it")])
def test_a_token_file_that_others_may_read_is_refused(place, mode, wanted):
    file = place.work / "token"
    file.write_text(TOKEN)
    file.chmod(mode)
    assert wanted in place.refused("--http", "--token-file", str(file), status=1)


def test_a_token_file_that_is_no_file_is_refused(place):
    assert "not a regular file" in place.refused("--http", "--token-file", str(place.work), status=1)
    os.mkfifo(place.work / "fifo", 0o600)
    assert "not a regular file" in place.refused("--http", "--token-file", str(place.work / "fifo"), status=1)
    assert "No such file or directory" in place.refused("--http", "--token-file", "absent", status=1)
    (place.work / "token").write_bytes(b"\0" * 40)
    (place.work / "token").chmod(0o600)
    assert "is not text" in place.refused("--http", "--token-file", "token", status=1)


# --- files -----------------------------------------------------------------------------------------------

@pytest.mark.requirement("A14")
@pytest.mark.parametrize("mode, note", [(0o666, b"all users may write to it"), (0o664, b"its group may write to it")])
def test_a_dotenv_that_others_may_write_is_left_out_and_told(place, mode, note):
    place.dotenv.write_text("SANDBOX_TIMEOUT=5\n")
    place.dotenv.chmod(mode)
    assert place.printed()["timeout"] == ("30", "default")
    done = place.run()
    assert done.returncode == 0 and done.stderr.startswith(b"brig-mcp: .env: ") and note in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a file of somebody else")
def test_a_dotenv_of_somebody_else_is_left_out_and_told(place):
    place.dotenv.write_text("SANDBOX_TIMEOUT=5\n")
    os.chown(place.dotenv, host.own_id(0), host.own_id(0))
    assert place.printed()["timeout"] == ("30", "default")
    assert f".env: belongs to uid {host.own_id(0)}; it must be root's; not read".encode() in place.run().stderr


def test_a_dotenv_that_is_a_link_is_left_out_and_told(place):
    (place.work / "other").write_text("SANDBOX_TIMEOUT=5\n")
    place.dotenv.symlink_to("other")
    assert place.printed()["timeout"] == ("30", "default")
    assert b".env: a symbolic link; not read" in place.run().stderr


def test_a_folder_or_a_pipe_of_that_name_is_in_nobodys_way(place):
    place.dotenv.mkdir() # as a virtual environment often is
    done = place.run()
    assert (done.returncode, done.stderr) == (0, b"")
    place.dotenv.rmdir()
    os.mkfifo(place.dotenv)
    done = place.run()
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_dotenv_without_end_is_left_out_and_told(place):
    place.dotenv.write_bytes(b"SANDBOX_TIMEOUT=5\n" + b"A=1\n" * 20000)
    assert place.printed()["timeout"] == ("30", "default")
    assert b".env: more than 64 KiB; not read" in place.run().stderr


def test_a_dotenv_executes_nothing(place):
    place.dotenv.write_text("SANDBOX_CONTAINER_IMAGE=$(touch made)`touch made`$HOME\nA=$(touch made)\n")
    assert place.printed()["container-image"][0] == "$(touch made)`touch made`$HOME"
    assert not (place.work / "made").exists()


def test_the_configuration_that_was_named_must_be_there(place):
    assert place.refused("--config", "absent.json") == "--config: absent.json: No such file or directory"
    assert place.refused(env={"BRIG_MCP_CONFIG": "absent.json"}) == "BRIG_MCP_CONFIG in the environment: absent.json: No such file or directory"


def test_the_configuration_that_was_named_goes_before_the_usual_ones(place):
    place.config.write_text('{"timeout": 1}')
    (place.work / "mine.json").write_text('{"timeout": 2}')
    (place.work / "other.json").write_text('{"timeout": 3}')
    assert place.printed(env={"BRIG_MCP_CONFIG": "mine.json"})["timeout"] == ("2", "mine.json, line 1: timeout")
    assert place.printed("--config", "other.json", env={"BRIG_MCP_CONFIG": "mine.json"})["timeout"][0] == "3"
    xdg = place.work / "xdg"
    (xdg / "brig").mkdir(parents=True)
    (xdg / "brig/mcp.json").write_text('{"timeout": 4}')
    assert place.printed(env={"XDG_CONFIG_HOME": str(xdg)})["timeout"][0] == "4"


def test_without_a_home_only_the_configuration_of_the_host_is_looked_for(place):
    assert place.printed(env={"HOME": None})["timeout"][0] == "30"
    assert place.printed(env={"HOME": "relative"})["timeout"][0] == "30"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_the_home_of_another_user_is_told_and_not_read(tmp_path):
    """As su and sudo leave it."""
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    done = subprocess.run([binary(), "--print-config"], env=brig.environment({"HOME": str(closed)}), cwd="/", capture_output=True, timeout=host.HANG,
                          user=65534, group=65534, extra_groups=[])
    assert done.returncode == 0 and done.stderr.decode() == f"brig-mcp: {closed}/.config/brig/mcp.json: it is closed to this user; not read\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of somebody else")
@pytest.mark.parametrize("whose", ["file", "folder"])
@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
def test_root_starts_nothing_for_the_user_whose_home_sudo_has_left_it(place, tmp_path, variable, whose):
    """Its servers would be commands that run as root."""
    place.config.write_text(json.dumps({"servers": str(tmp_path / "servers.json")}))
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"x": {"command": "/usr/bin/touch", "args": [str(tmp_path / "started")]}}}))
    other = {"file": place.config, "folder": place.config.parent}[whose]
    os.chown(other, host.own_id(0), host.own_id(0))
    assert place.refused(env={variable: str(place.home / (".config" if variable == "XDG_CONFIG_HOME" else ""))}) == f"{other}: belongs to uid {host.own_id(0)}; it must be root's"
    assert not (tmp_path / "started").exists()


def test_what_a_dotenv_may_set_is_a_list_and_nothing_else_is_on_it(place):
    """A folder that was cloned is one's own: its owner says nothing about who wrote what is in it."""
    allowed = set()
    for option in OPTIONS:
        place.dotenv.write_text(f"BRIG_MCP_{option.upper().replace('-', '_')}=1\n")
        if b"not allowed in this file" not in place.run("--print-config").stderr:
            allowed.add(option)
    assert allowed == {"timeout", "max-timeout", "output", "memory", "max-code", "allowed-imports", "data-science", "network", "filesystem", "container-mode",
                       "container-image", "reply", "detail", "text-size", "yield-after", "progress", "echo-result"}


def test_a_configuration_that_everybody_may_write_is_refused(place):
    place.config.chmod(0o666)
    assert place.refused() == f"{place.config}: all users may write to it; type: chmod go-w {place.config}"


def test_print_config_tells_what_was_left_out(place):
    place.dotenv.write_text("SANDBOX_TIMEOUT=5\n")
    place.dotenv.chmod(0o666)
    done = place.run("--print-config")
    assert done.returncode == 0 and done.stderr == b"brig-mcp: .env: all users may write to it; type: chmod go-w .env; not read\n"


def test_a_host_that_others_reach_by_no_name_is_told(place):
    args = ("--http", "--host", "0.0.0.0", "--print-config")
    said = place.run(*args, env={"SANDBOX_API_TOKEN": TOKEN}).stderr
    assert said.startswith(b"brig-mcp: --host: requests for another host name than localhost") and b"--allow-host NAME" in said
    assert place.run(*args, "--allow-host", "a.example", env={"SANDBOX_API_TOKEN": TOKEN}).stderr == b""


# --- what follows ----------------------------------------------------------------------------------------

def test_what_is_accepted_and_not_used_is_told_on_stderr(place):
    done = place.run(env={"SANDBOX_ENABLE_CONTAINER_MODE": "false"})
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"brig-mcp: SANDBOX_ENABLE_CONTAINER_MODE in the environment: every run is jailed, whatever the value\n"


def test_stdio_has_no_value(place):
    assert place.refused("--stdio=yes") == "--stdio takes no value"


@pytest.mark.requirement("A15")
@pytest.mark.parametrize("words", [["--transport", "stdio"], ["--stdio"]], ids=["published", "short"])
def test_the_published_way_to_ask_for_stdio_serves_it(place, words):
    with McpStdio(*words, cwd=place.work, env={"HOME": str(place.home)}) as mcp:
        assert mcp.request("ping", revision="2025-11-25") == {}


@pytest.mark.requirement("A13", "A15")
def test_make_dev_serves_on_stdin_and_stdout():
    with McpStdio("-s", "-C", host.REPO, "dev", program="/usr/bin/make", env={"PATH": os.environ["PATH"]}) as mcp:
        assert mcp.request("ping", revision="2025-11-25") == {}


@contextlib.contextmanager
def http_server(argv, env, cwd):
    """The URL of a server that was started like this."""
    given = brig.environment({"PATH": os.environ["PATH"], **env})
    with subprocess.Popen(argv, env=given, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"serving (http://\S+)", line):
                    yield found[1], process.pid
                    break
            else:
                raise AssertionError("".join(said))
        finally:
            process.terminate()
            process.communicate(timeout=host.HANG)


@pytest.mark.requirement("A15", "A38")
def test_make_serve_http_serves_whoever_knows_the_token(place):
    argv = ["make", "-s", "-C", host.REPO, "serve-http", "MCP=--port 0"]
    with http_server(argv, {"HOME": str(place.home), "SANDBOX_API_TOKEN": TOKEN}, "/") as (url, _):
        with McpHttp(url, headers={"Authorization": f"Bearer {TOKEN}"}) as mcp:
            assert mcp.request("ping", revision="2025-11-25") == {}
            assert mcp.raw(b"{}", {"Authorization": "Bearer other"})[0] == 401


@pytest.mark.requirement("A14", "A38")
def test_the_published_way_to_serve_http_with_a_dotenv(place):
    """--transport http --host --port, and SANDBOX_API_TOKEN in the file of the working directory."""
    place.dotenv.write_text(f"SANDBOX_API_TOKEN={TOKEN}\n")
    place.dotenv.chmod(0o600)
    argv = [binary(), "--transport", "http", "--host", "127.0.0.1", "--port", "0"]
    with http_server(argv, {"HOME": str(place.home)}, place.work) as (url, _):
        with McpHttp(url, headers={"Authorization": f"Bearer {TOKEN}"}) as mcp:
            assert mcp.request("ping", revision="2025-11-25") == {}


def test_a_token_of_a_dotenv_lets_nobody_in_where_the_configuration_names_another(place):
    """The directory may be a stranger's."""
    theirs = "of-whoever-wrote-the-file-dotenv-" + "x" * 32
    (place.work / "mine").write_text(TOKEN)
    (place.work / "mine").chmod(0o600)
    place.dotenv.write_text(f"SANDBOX_API_TOKEN={theirs}\n")
    place.dotenv.chmod(0o600)
    place.config.write_text(json.dumps({"token_file": str(place.work / "mine")}))
    assert place.printed()["token-file"] == ("in a file; read for HTTP only", f"{place.config}, line 1: token_file")
    with http_server([binary(), "--http", "--port", "0"], {"HOME": str(place.home)}, place.work) as (url, _):
        with McpHttp(url, headers={"Authorization": f"Bearer {TOKEN}"}) as mcp:
            assert mcp.request("ping", revision="2025-11-25") == {}
            assert mcp.raw(b"{}", {"Authorization": f"Bearer {theirs}"})[0] == 401


@pytest.mark.private("the private brigd is looked at")
@pytest.mark.requirement("A38")
def test_no_program_sees_the_token_nor_does_a_private_brigd(place, needs_rootfs):
    with http_server([binary(), "--http", "--port", "0"], {"HOME": str(place.home), "SANDBOX_API_TOKEN": TOKEN}, place.work) as (url, pid):
        with McpHttp(url, headers={"Authorization": f"Bearer {TOKEN}"}) as mcp:
            reply = mcp.execute("import os\nprint(dict(os.environ), open('/proc/self/environ').read())")
            assert reply["success"], reply
            assert TOKEN not in json.dumps(reply)
            below = host.children(pid)
            assert below, "there is no private brigd to look at"
            assert [child for child in below if TOKEN in host.read(f"/proc/{child}/environ")] == []
