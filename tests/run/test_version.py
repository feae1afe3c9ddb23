"""The version is written in CMakeLists.txt; every program, server and manual page says that one."""
import json
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
VERSION = re.search(r"^project\(brig VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


@pytest.mark.parametrize("program", ["brig", "brigd", "brig-rootfs", "brig-mcp"])
def test_a_program_says_the_version(program):
    done = subprocess.run([BUILD / "bin" / program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{program} {VERSION}\n")


def test_the_mcp_server_says_the_version():
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    done = subprocess.run([BUILD / "bin/brig-mcp"], input=json.dumps(asked) + "\n", capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["version"] == VERSION


@pytest.mark.parametrize("source", sorted((ROOT / "man").glob("*.[1-8]*")), ids=lambda p: p.name.removesuffix(".in"))
def test_a_manual_page_says_the_version_at_its_foot(source):
    assert f".Os brig {VERSION}" in (BUILD / "man" / source.name.removesuffix(".in")).read_text().splitlines()


def test_the_changelog_begins_with_the_version():
    assert re.search(r"^## (\d\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.M)[1].rstrip(",") == VERSION


def test_the_debian_changelog_begins_with_the_version():
    assert (ROOT / "packaging/debian/changelog").read_text().startswith(f"brig ({VERSION}) ")


def test_pages_name_the_tarball_of_the_version():
    named = {(path.name, version) for path in [ROOT / "README.md", *(ROOT / "docs/guide").glob("*.md")]
             for version in re.findall(r"brig-(\d[\d.]*)-linux|docker-daemon:brig:(\d[\d.]*\d)", path.read_text()) for version in version if version}
    assert "README.md" in {name for name, _ in named} and {version for _, version in named} == {VERSION}


def test_no_source_has_a_version_of_its_own():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "common", "jail", "mcp", "rootfs-builder", "tools", "man", "packaging"], capture_output=True, text=True, check=True)
    sources = [ROOT / name for name in listed.stdout.split("\n") if name and name != "packaging/debian/changelog"] # Debian wants it there; ./dev deb compares
    assert sources and [str(path) for path in sources if path.is_file() and re.search(rf"\b{re.escape(VERSION)}\b", path.read_text(errors="replace"))] == []
