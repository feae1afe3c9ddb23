"""cmake --install puts the right files in the right places, readable by everybody, whatever the umask of the clone was."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support import host

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def expected():
    yield from ("bin/brig", "bin/brig-api", "bin/brig-mcp", "bin/brig-rootfs", "libexec/brig/brig-doctor", "libexec/brig/brig-metrics", "libexec/brig/brig-mcp-http",
                "libexec/brig/brig-mcp-remote")
    yield from (program for program in ("sbin/brigd", "libexec/brig/monitor", "libexec/brig/supervisor", "libexec/brig/proxy") if (BUILD / "bin" / os.path.basename(program)).exists())
    yield from (f"lib/systemd/{manager}/{unit}" for manager in ("system", "user") for unit in ("brigd.service", "brigd.socket", "brig-mcp.service", "brig.slice"))
    yield from ("lib/systemd/system/brig-metrics.service", "lib/systemd/system/brig-api.service")
    yield from ("lib/sysusers.d/brig.conf", "lib/tmpfiles.d/brig.conf", "share/brig/apparmor/brig")
    version = re.search(r"^PYTHON_INCLUDE:PATH=.*/(python3\.\d+)$", (BUILD / "CMakeCache.txt").read_text(), re.M)[1]
    yield from (f"lib/{version}/dist-packages/brig/{path.name}" for path in (ROOT / "python/brig").iterdir() if path.is_file())
    yield from ("include/brig/protocol.h", "share/pkgconfig/brig.pc")
    yield from ("share/bash-completion/completions/brig", "share/zsh/site-functions/_brig", "share/fish/vendor_completions.d/brig.fish")
    yield "share/brig/profile.schema.json"
    yield from ("share/doc/brig/README.md", "share/doc/brig/docs/security-model.md") # no logs, decisions, benchmarks: users do not read them
    yield from (f"share/doc/brig/{path.relative_to(ROOT)}" for folder in ("docs/guide", "docs/images", "examples") for path in (ROOT / folder).rglob("*")
                if path.is_file() and path.parent.name != "__pycache__")
    yield from (f"share/brig/guest/{path.name}" for path in (ROOT / "jail/guest").glob("*.py"))
    for name in {source.name.removesuffix(".in") for source in (ROOT / "man").glob("*.[1-8]*")}:
        yield f"share/man/man{name[-1]}/{name}"
    for kind in "profiles", "recipes":
        for path in (ROOT / kind).rglob("*"):
            if path.is_file():
                yield f"share/brig/{path.relative_to(ROOT)}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    if not shutil.which("cmake"):
        pytest.skip("missing program: cmake")
    dest = tmp_path_factory.mktemp("install")
    done = subprocess.run(["cmake", "--install", BUILD, "--prefix", "/usr"], env={**os.environ, "DESTDIR": str(dest)},
                          preexec_fn=lambda: os.umask(0o022), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dest / "usr"


@pytest.mark.requirement("A13")
def test_exactly_these_files(tree):
    assert sorted(str(p.relative_to(tree)) for p in tree.rglob("*") if not p.is_dir()) == sorted(expected())


def test_everybody_may_read_them_and_nobody_but_root_write(tree):
    wrong = [str(p) for p in tree.rglob("*")
             if p.stat().st_mode & 0o7777 not in ((0o755,) if p.is_dir() or p.parent.name in ("bin", "sbin") or p.name in ("monitor", "supervisor", "proxy", "brig-doctor", "brig-metrics", "brig-mcp-http", "brig-mcp-remote") else (0o644,))]
    assert wrong == []


def test_every_link_of_an_installed_page_leads_to_a_file_and_what_is_not_installed_is_named_by_its_path_in_the_source(tree):
    pages = list((tree / "share/doc/brig").rglob("*.md"))
    broken = [f"{page.name}: {target}" for page in pages for target in re.findall(r"\]\(([^)\s#:]+)[^)\s:]*\)", page.read_text()) if not (page.parent / target).exists()]
    assert len(pages) > 10 and broken == []
    named = {target for page in pages for target in re.findall(r"\(in the source: ([^)]+)\)", page.read_text())}
    assert {"ARCHITECTURE.md", "docs/warm.md"} <= named and [target for target in named if not (ROOT / target).exists()] == []


@pytest.mark.requirement("A97")
def test_systemd_finds_no_fault_with_the_units(tree, tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("missing program: systemd-analyze")
    for unit in (tree / "lib/systemd/system").iterdir():
        text = re.sub(r"^(Exec\w+)=.*", r"\1=/bin/true", unit.read_text(), flags=re.M) # what is not installed here
        (tmp_path / unit.name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *tmp_path.iterdir()], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.requirement("A13")
def test_the_installed_programs_start(tree):
    for name in "brig", "brig-api", "brig-mcp", "brig-rootfs":
        done = subprocess.run([tree / "bin" / name, "--version"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_no_installed_program_has_what_only_the_conformance_suite_wants(tree):
    """Its tools, prompts and resources are a program of the tests (tests/mcp/conformance): what is not shipped cannot be reached."""
    words = rb"(?i)conformance|test://|test_(simple|image|tool|elicit|sampl|trigger|mirror)|sampling/createMessage|prompts/list"
    for program in (tree / "bin/brig-mcp", tree / "libexec/brig/brig-mcp-http"):
        assert re.findall(words, program.read_bytes()) == [], program
    helped = subprocess.run([tree / "bin/brig-mcp", "--help"], capture_output=True, text=True)
    assert helped.returncode == 0 and "--max-calls" in helped.stdout and "conformance" not in helped.stdout
    refused = subprocess.run([tree / "bin/brig-mcp", "--conformance"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert refused.returncode == 2 and "--conformance" in refused.stderr and refused.stdout == ""


def test_control_those_words_are_found_where_they_are():
    assert b"test_simple_text" in (BUILD / "conformance/mcp_conformance").read_bytes()


def dev(*words, prefix, before=()):
    return subprocess.run([*before, "./dev", *words], cwd=ROOT, env={**os.environ, "PREFIX": str(prefix)}, capture_output=True, text=True)


@pytest.mark.nightly
def test_uninstall_leaves_nothing_but_what_install_did_not_put_there(tmp_path):
    prefix, other = tmp_path / "brig here", tmp_path / "brig here/share/brig/rootfs/mine"
    assert (done := dev("install", prefix=prefix)).returncode == 0, done.stderr
    assert (prefix / "bin/brig").exists()
    other.parent.mkdir(parents=True)
    other.write_text("a rootfs\n")
    assert (done := dev("uninstall", prefix=prefix)).returncode == 0, done.stderr
    assert [path for path in prefix.rglob("*") if not path.is_dir()] == [other]
    done = dev("uninstall", prefix=prefix)
    assert done.returncode == 1 and f"nothing is installed below {prefix}" in done.stderr


def test_a_user_who_installs_where_only_others_may_write_is_told_what_to_type(tmp_path, needs_root):
    host.open_way(tmp_path)
    shutil.copy(ROOT / "dev", tmp_path)
    (tmp_path / "dev").chmod(0o755)
    for command in "install", "uninstall":
        done = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "./dev", command], cwd=tmp_path,
                              env={**os.environ, "PREFIX": f"{tmp_path}/a/b"}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, f"./dev: {command}: {tmp_path} is not yours to write; type:  PREFIX=~/.local ./dev {command}\n")


def test_ctest_runs_every_unit_test():
    listed = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    assert {test["name"] for test in json.loads(listed)["tests"]} == {path.stem for path in (ROOT / "tests/unit").glob("test_*.c")}


@pytest.mark.row("E17")
def test_no_unit_has_a_core_limit_at_which_crashes_start_the_hosts_handler():
    """0 does not stop a handler behind a pipe, and no process of the unit could raise it; where there is one, the service would refuse each run."""
    for unit in (ROOT / "packaging/systemd").rglob("*.service.in"):
        assert re.findall(r"^LimitCORE=(.*)$", unit.read_text(), re.M) == ["1"], unit


HARDENING = {"x86_64": "-fcf-protection=full", "aarch64": "-mbranch-protection=standard"}


def test_everything_is_compiled_with_what_hardens_stacks_and_jumps():
    """Of the C library the programs are linked with it is the distribution that decides."""
    wanted = {"-fstack-clash-protection", HARDENING.get(os.uname().machine, "-fstack-clash-protection")}
    lacking = {row["file"]: wanted - set(row["command"].split()) for row in json.loads((BUILD / "compile_commands.json").read_text())}
    assert {file: flags for file, flags in lacking.items() if flags} == {}


def test_apparmor_lets_no_program_make_user_namespaces_that_loads_code_of_its_user():
    """What a profile attaches to by its path, whoever starts it, has no loader that reads LD_PRELOAD; brigd.service names the other one."""
    text = (ROOT / "packaging/apparmor/brig").read_text()
    profiles = dict(re.findall(r"^profile (\S+) (\S*) ?flags", text, re.M))
    assert profiles == {"brig": "/usr/{,local/}bin/brig", "brigd": ""}
    assert "\nAppArmorProfile=-brigd\n" in (ROOT / "packaging/systemd/brigd.service.in").read_text()
    if "BRIG_STATIC_CLIENT:BOOL=ON" not in host.read(BUILD / "CMakeCache.txt") or not re.search(r"BRIG_HAS_STATIC_LIBC:INTERNAL=1", host.read(BUILD / "CMakeCache.txt")):
        pytest.skip("this brig is not static")
    assert "INTERP" not in subprocess.run(["readelf", "-lW", BUILD / "bin/brig"], capture_output=True, text=True, check=True).stdout


@pytest.mark.requirement("A104")
def test_the_apparmor_profile_is_one():
    if not shutil.which("apparmor_parser"):
        pytest.skip("missing program: apparmor_parser")
    text = (ROOT / "packaging/apparmor/brig").read_text()
    if not os.path.exists("/etc/apparmor.d/abi/4.0"): # older parsers know all of it but this
        text = text.replace("abi <abi/4.0>", "abi <abi/3.0>").replace("  userns,\n", "")
    done = subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
