"""tools/coverage.py: what is counted, and where it is added up."""
import json
import pathlib
import signal
import subprocess
import sys

import pytest

from support import host

sys.path.insert(0, str(host.REPO / "tools")) # before a package of that name, which a host may have
import coverage

WAYS = """
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <linux/seccomp.h>
#include <unistd.h>

static int killed(void) { return kill(getpid(), SIGKILL); }
static void forked(void) { _exit(0); }
static int confined(void)
{
    if (chroot("/proc/self") < 0)
        return 1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}
static int never(void) { return 2; }

int main(int argc, char **argv)
{
    if (fork() == 0)
        forked();
    wait(NULL);
    if (confined() == 0)
        killed();
    return argc > 5 ? never() : argv[0] == NULL;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory, needs_root):
    """A program of a coverage build, and the file in which it counts."""
    for tool in ("clang", "llvm-profdata", "llvm-cov"):
        if host.lacks(f"tool:{tool}"):
            pytest.skip(host.lacks(f"tool:{tool}"))
    folder, parts = tmp_path_factory.mktemp("counts"), host.REPO / "tools" / "coverage"
    (folder / "ways.c").write_text(WAYS)
    for name in ("count", "program"):
        subprocess.run(["clang", "-c", f'-DCOVERAGE_FILE="{folder}/counters"', "-o", folder / f"{name}.o", parts / f"{name}.c"], check=True)
    subprocess.run(["clang", "-fprofile-instr-generate", "-fcoverage-mapping", "-mllvm", "-runtime-counter-relocation", "-o", folder / "ways",
                    folder / "ways.c", folder / "count.o", folder / "program.o"], check=True)
    return folder / "ways", folder / "counters"


def test_what_is_killed_confined_or_left_without_a_word_is_counted(program):
    ways, counters = program
    counters.touch()
    for _ in range(2):
        assert subprocess.run([ways]).returncode == -signal.SIGKILL
    subprocess.run(["llvm-profdata", "merge", "-o", f"{ways}.profile", counters], check=True)
    found = json.loads(subprocess.run(["llvm-cov", "export", ways, f"-instr-profile={ways}.profile"], capture_output=True, text=True, check=True).stdout)
    times = {row["name"].rpartition(":")[2]: row["count"] for row in found["data"][0]["functions"]}
    assert times == {"main": 2, "forked": 2, "confined": 2, "killed": 2, "never": 0}


def test_a_file_of_another_build_is_left_as_it_is(program):
    ways, counters = program
    counters.write_bytes(b"another")
    subprocess.run([ways])
    assert counters.read_bytes() == b"another"


def test_every_folder_with_c_files_is_an_area_or_said_to_be_uncounted():
    tops = ("common", "jail", "rootfs-builder", "mcp")
    sources = [path.relative_to(host.REPO) for top in tops for path in (host.REPO / top).rglob("*.c")]
    assert {str(path.parent) for path in sources if not coverage.area_of(path)} == set(coverage.UNCOUNTED)


def test_what_is_ours_and_no_part_of_brig_has_no_area():
    assert [coverage.area_of(pathlib.Path(path)) for path in ("tests/unit/test_quota.c", "bench/orders.c", "tools/docgen.c")] == [None] * 3
