"""Pages are made whole from templates, fragments and tables."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SOURCES = sorted((ROOT / "man").glob("*.[1-8]*"))
PAGES = [BUILD / "man" / source.name.removesuffix(".in") for source in SOURCES]
TELLING_NOTHING = ("referenced manual not found", "outdated mandoc.db",  # about this host, not about the page
                   "operating system explicitly specified")  # the version of brig, which is no part of a system


def needs(tool):
    return pytest.mark.skipif(not shutil.which(tool), reason=f"needs the program {tool}")


def text_of(page):
    out = subprocess.run(["mandoc", "-T", "ascii", page], capture_output=True, text=True, check=True).stdout
    return re.sub(".\b", "", out)


def page(name):
    return BUILD / "man" / name


def words_of_clients(kind):
    """Of the header that is installed for them."""
    return re.findall(rf"^#define BRIG_{kind}_(\w+) ", page("protocol.h").read_text(), re.M)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
@needs("mandoc")
def test_mandoc_finds_no_flaw_of_style(path):
    said = subprocess.run(["mandoc", "-T", "lint", path], capture_output=True, text=True).stdout.splitlines()
    assert [line for line in said if not any(word in line for word in TELLING_NOTHING)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_a_page_leads_to_all_others(path):
    links = set(re.findall(r"^\.Xr (\S+) (\d)", path.read_text().split(".Sh SEE ALSO")[1], re.M))
    assert [other.name for other in PAGES if other != path and tuple(other.name.rsplit(".", 1)) not in links] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
@needs("groff")
def test_groff_finds_no_flaw(path):
    said = subprocess.run(["groff", "-mdoc", "-Tutf8", "-ww", "-z", path], capture_output=True, text=True)
    assert (said.returncode, said.stderr) == (0, "")


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_no_marker_is_left(path):
    assert "@generate" not in path.read_text() and "@include" not in path.read_text()


def test_every_fragment_and_every_table_is_in_a_page():
    named = "".join(source.read_text() for source in (*SOURCES, *(ROOT / "man").glob("*.mdoc.in")))
    fragments = {fragment.name for fragment in (ROOT / "man").glob("*.mdoc.in")}
    tables = set(subprocess.run([BUILD / "tools" / "docgen", "lists"], capture_output=True, text=True, check=True).stdout.split())
    assert fragments == set(re.findall(r"@include (\S+\.mdoc\.in)$", named, re.M)) and len(tables) > 10
    assert tables == set(re.findall(r"@generate (\S+)$", named, re.M))


@pytest.mark.parametrize("program, name", [("brig run", "brig.1"), ("brigd", "brigd.8"), ("brig-mcp", "brig-mcp.1"), ("brig-rootfs build", "brig-rootfs.1"), ("brig-rootfs import", "brig-rootfs.1"),
                                           *((f"brig session {command}", "brig.1") for command in ("open", "run", "exec", "put", "get", "files"))])
@needs("mandoc")
def test_every_option_is_in_the_page(program, name):
    first, *words = program.split()
    told = subprocess.run([BUILD / "bin" / first, *words, "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"^  (?:-\w, )?--([\w-]+)", told, re.M)) - ({"private", "fd"} if first == "brigd" else set())  # those two are brig's, not a user's
    known = text_of(page(name))
    assert options and [option for option in options if not re.search(rf"--{option}\b", known)] == []


@needs("mandoc")
def test_the_page_of_threats_can_be_read_in_a_quarter_of_an_hour():
    """What only a maintainer needs is in docs/decisions."""
    assert len(text_of(page("brig-security.7")).split()) <= 3500


@needs("mandoc")
def test_every_exit_reason_is_in_the_page():
    reasons = words_of_clients("EXIT")
    known = text_of(page("brig.1"))
    assert reasons and [reason for reason in reasons if f"{reason} (status" not in known] == []


@needs("mandoc")
def test_every_word_of_the_protocol_is_in_the_page():
    names = [name for kind in ("REQUEST", "EVENT", "ERROR") for name in words_of_clients(kind)]
    known = text_of(page("brig-protocol.7"))
    assert len(names) > 20 and [name for name in names if not re.search(rf"^ +{name}$|^ +{name}  ", known, re.M)] == []
