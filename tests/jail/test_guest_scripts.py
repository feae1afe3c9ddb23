"""A thousand real files, run as programs: with the runner they do what they do without it."""
import re

import pytest

from support import client, host

pytestmark = pytest.mark.nightly
PARTS = 8
# what is another one each time: addresses, times, names of temporary files; and frames, of which the runner has a few more
CHANGES = re.compile(r"0x[0-9a-f]{6,}|\d{6,}|\d+\.\d+|tmp\w{8}|\b\d{4}-\d\d-\d\d\b|\d\d:\d\d:\d\d")
LEFT_OUT = {
    "compileall.py", "timeit.py", "cProfile.py", "profile.py", "trace.py", "pstats.py", # measure
    "pdb.py", "bdb.py", "tracemalloc.py", "inspect.py", "pydoc.py", "doctest.py", # look at frames and at __main__
    "random.py", "uuid.py", "secrets.py", "platform.py", "sysconfig.py", # draw, or tell of the process
}


FOLDERS = {"basic": "usr/lib/python3.13", "data-science": "usr/lib/python3/dist-packages/numpy"}


def folder_of(rootfs):
    return (host.store_dir() / "names" / rootfs).resolve() / "tree" / FOLDERS[rootfs]


def scripts(folder):
    """Large ones take their time, and packages are not run by a file of theirs that begins with a dot."""
    found = [path for path in sorted(folder.rglob("*.py")) if path.name not in LEFT_OUT and 0 < path.stat().st_size < 60000]
    return [path for path in found if re.search(rb"^[ \t]*from \.", path.read_bytes(), re.M) is None]


def ended(caller, source, mode, profile):
    run = caller.start(source, profile=profile, mode=mode, limits={"wall_ms": 10000})
    done = run.finish()
    return done.reason, done.status, CHANGES.sub("#", done.stdout), CHANGES.sub("#", done.stderr)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("rootfs", ["basic", "data-science"], ids=["the standard library", "numpy"])
def test_files_of_a_library_end_as_they_do_without_the_runner(service, rootfs, part):
    if host.lacks(f"rootfs:{rootfs}"):
        pytest.skip(host.lacks(f"rootfs:{rootfs}"))
    differ = []
    with client.Client.at(service.path) as caller:
        for path in scripts(folder_of(rootfs))[part::PARTS]:
            source = path.read_bytes()
            plain, reported = (ended(caller, source, mode, rootfs) for mode in ("script", "report"))
            if plain != reported:
                differ.append((str(path).split("/tree/")[1], plain, reported))
    assert not differ, "\n".join(f"{name}\n  {plain}\n  {reported}" for name, plain, reported in differ)[:6000]
