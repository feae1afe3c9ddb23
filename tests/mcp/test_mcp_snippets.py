"""What the manual tells users to write into their clients' files is what it should be, and starts a server."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import tomllib

import pytest

from support import brig, host
from support.mcp import McpStdio, binary, options

FOLDER = host.REPO / "examples" / "mcp"
PAGE = host.build_dir() / "man" / "brig-mcp.1"
FILES = sorted(path.name for path in FOLDER.iterdir())
SERVERS = {"vscode.json": "servers", "codex.toml": "mcp_servers", "codex-http.toml": "mcp_servers"} # the others say mcpServers
NOT_CLIENTS = ["gateway.json", "mcp.json", "servers.json"]
# What each client knows of an entry (reference 4.1 to 4.3): another key would be passed over, or refused.
KNOWN = {
    "claude-code.json": {"type", "command", "args", "env", "timeout", "alwaysLoad"},
    "claude-code-http.json": {"type", "url", "headers"},
    "claude-desktop.json": {"command", "args", "env"},
    "codex.toml": {"command", "args", "env", "startup_timeout_sec", "tool_timeout_sec", "enabled_tools"},
    "codex-http.toml": {"url", "bearer_token_env_var", "startup_timeout_sec", "tool_timeout_sec", "enabled_tools"},
    "vscode.json": {"type", "command", "args", "env"},
    "cursor.json": {"command", "args", "env"},
    "gemini.json": {"command", "args", "env", "timeout", "trust", "includeTools", "excludeTools"},
}
CLIENTS = sorted(KNOWN)
OPTIONS = [f"--{option}" for option in options()]


def content(name):
    text = (FOLDER / name).read_text()
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def entry(name):
    (only,) = content(name)[SERVERS.get(name, "mcpServers")].values()
    return only


def print_config(tmp_path, *words):
    return subprocess.run([binary(), *words, "--print-config"], cwd=tmp_path, env=brig.environment({"HOME": str(tmp_path)}), capture_output=True, text=True)


STARTED = [name for name in CLIENTS if "command" in entry(name)]


def test_every_example_is_known_here():
    assert FILES == sorted([*CLIENTS, *NOT_CLIENTS])


@pytest.mark.requirement("A39")
@pytest.mark.parametrize("name", CLIENTS)
def test_an_entry_says_what_its_client_knows(name):
    said = entry(name)
    assert set(said) <= KNOWN[name] and list(content(name)) == [SERVERS.get(name, "mcpServers")]
    assert ("command" in said) != ("url" in said)
    if "url" in said:
        assert said["url"] == "http://127.0.0.1:9015/mcp"
    else:
        assert os.path.basename(said["command"]) == "brig-mcp"
        assert [word for word in said.get("args", []) if word.startswith("--") and word not in OPTIONS] == []


@pytest.mark.requirement("A39")
@pytest.mark.parametrize("name", STARTED)
def test_what_an_entry_starts_answers_and_takes_every_word(name, tmp_path):
    """As clients do it: almost no environment, a working directory of theirs (row A39: command, args, cwd)."""
    said = entry(name)
    with McpStdio(*said.get("args", []), env={"HOME": str(tmp_path), **said.get("env", {})}, cwd=tmp_path) as mcp:
        assert mcp.request("ping", revision="2025-11-25") == {}
        assert mcp.close() == 0
        assert mcp.words() == ""


@pytest.mark.requirement("A39")
def test_the_published_form_with_a_working_directory_reads_its_dotenv(tmp_path):
    """{"command": ..., "args": [...], "cwd": ...}, with the settings in the folder."""
    (tmp_path / ".env").write_text("SANDBOX_TIMEOUT=7\n")
    done = print_config(tmp_path)
    assert re.search(r"^timeout +7 +\.env, line 1: SANDBOX_TIMEOUT$", done.stdout, re.M)


def test_the_example_of_a_configuration_is_one(tmp_path):
    done = print_config(tmp_path, "--config", FOLDER / "mcp.json")
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "mcp.json, line" in line]
    assert len(said) == len(content("mcp.json")) - 1, "comment is no setting, all others are"


@pytest.mark.requirement("A16", "A50")
def test_a_gateway_is_told_with_one_object():
    """The body of POST /gateways: where we are, how we speak, who may."""
    body = content("gateway.json")
    assert set(body) == {"name", "url", "description", "transport", "auth_type", "auth_token"}
    assert body["url"] == entry("claude-code-http.json")["url"] and body["transport"] == "STREAMABLEHTTP" and body["auth_type"] == "bearer"
    assert "-d @gateway.json" in PAGE.read_text() and "http://GATEWAY/gateways" in PAGE.read_text()


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_every_example_as_it_is(name):
    assert (FOLDER / name).read_text() in PAGE.read_text()


def test_every_json_in_the_page_is_json():
    for block in re.findall(r"^\.Bd -literal -offset indent\n(\{.*?)^\.Ed", PAGE.read_text(), re.M | re.S):
        json.loads(block)
    line = re.search(r'^\{"mcpServers".*$', PAGE.read_text(), re.M)[0]
    assert json.loads(line) == {"mcpServers": {"python": {"command": "brig-mcp", "args": ["--reply", "text"]}}}
    assert line in (host.REPO / "README.md").read_text()


def test_the_page_tells_every_key_of_a_reply_and_no_other(needs_rootfs, tmp_path):
    with McpStdio(env={"HOME": str(tmp_path)}, cwd=tmp_path) as mcp:
        reply = mcp.execute("1", detail=True)
    section = PAGE.read_text().split(".Ss Replies")[1].split(".Ss ")[0]
    told = [key for line in re.findall(r"^\.It Li (.*)$", section, re.M) for key in line.split(" , ")]
    assert sorted(told) == sorted(reply)


def test_every_option_in_the_page_exists():
    text = re.sub(r"^\.Bl.*?$|^\.Bd.*?$|^\.It Fl -.*$", "", PAGE.read_text(), flags=re.M)
    other = {"--check", "--config", "--print-config", "--transport", "--help", "--version", "--user", "--now"}
    inspector = {"--cli", "--method", "--stdio", "--tool-name", "--tool-args-json", "--protocol-era", "--strict"}
    said = {f"--{word}" for word in re.findall(r"^\.Fl -([a-z-]+)", text, re.M)} | set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert sorted(said - set(OPTIONS) - other - inspector) == []


def test_every_command_of_the_page_takes_its_words(tmp_path):
    """Lines that begin with brig-mcp or end in it: what it is given are settings of its own."""
    lines = re.findall(r"^(?:\$ )?(?:SANDBOX_\w+=\S+ )?brig-mcp (--.*)$", PAGE.read_text(), re.M)
    assert len(lines) >= 3
    for line in lines:
        words = [word for word in shlex.split(line.split("|")[0]) if word not in ("--print-config", "--http")]
        (tmp_path / "token").write_text("x" * 64)
        words = [str(tmp_path / "token") if word.startswith("~") else word for word in words]
        done = print_config(tmp_path, *words)
        assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.parametrize("unit", ["packaging/systemd/brig-mcp.service.in", "packaging/systemd/user/brig-mcp.service.in"])
def test_the_units_start_it_with_words_that_it_takes(unit, tmp_path):
    (line,) = re.findall(r"^ExecStart=\S+/brig-mcp (.*)$", (host.REPO / unit).read_text(), re.M)
    token = tmp_path / "token"
    token.write_text("x" * 64)
    token.chmod(0o440) # as systemd shows credentials
    words = [str(token) if word.startswith("%") else word for word in line.split()]
    done = print_config(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^http +true +--http$", done.stdout, re.M) and re.search(r"^token-file +set \(64 characters\)", done.stdout, re.M)


@pytest.mark.requirement("A13", "A15", "A79")
def test_the_makefile_has_what_was_published():
    text = (host.REPO / "Makefile").read_text()
    targets = {name for line in re.findall(r"^([a-z][a-z -]*):(?!=)", text, re.M) for name in line.split()}
    assert {"all", "install", "dev-install", "test", "dev", "serve-http", "rootfs", "build-sandbox", "test-rootfs", "test-sandbox"} <= targets
    phony = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    assert set(phony) == targets
    done = subprocess.run(["make", "-n", "-C", host.REPO, *sorted(targets)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_dev_command_of_the_makefile_exists():
    commands = re.findall(r"^\t\./dev ([a-z]+)", (host.REPO / "Makefile").read_text(), re.M)
    known = re.findall(r"^cmd_(\w+)\(\)", (host.REPO / "dev").read_text(), re.M)
    assert commands and sorted(set(commands) - set(known)) == []
    assert pathlib.Path(host.REPO / "dev").stat().st_mode & 0o111
