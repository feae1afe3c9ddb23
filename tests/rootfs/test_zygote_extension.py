"""What a zygote loads fits the Python and the C library of every rootfs: it is built on the host, and carried in the monitor."""
import re
import subprocess

import pytest

from support import host

EXTENSION = host.build_dir() / "zygote" / "zygote.abi3.so"


def symbols(path, *options):
    return subprocess.run(["nm", "-D", *options, path], capture_output=True, text=True, check=True).stdout.split("\n")


def versions(lines):
    return {match[1] for line in lines if (match := re.search(r"@+(GLIBC_[0-9.]+)$", line))}


def tree(name):
    if not host.has_rootfs(name):
        pytest.skip(f"needs the rootfs {name}: ./dev rootfs {name}")
    return (host.store_dir() / "names" / name).resolve() / "tree"


@pytest.mark.parametrize("name", ["basic", "data-science", "network"])
def test_the_c_library_of_the_rootfs_has_every_version_that_is_needed(name):
    libc = next(tree(name).glob("usr/lib/*/libc.so.6"), None)
    assert libc, f"{name} has no C library"
    needed = versions(symbols(EXTENSION, "--undefined-only"))
    assert needed and not needed - versions(symbols(libc, "--defined-only"))


@pytest.mark.parametrize("name", ["basic", "data-science", "network"])
def test_the_python_of_the_rootfs_has_every_function_that_is_needed(name):
    python = (tree(name) / "usr/bin/python3").resolve()
    needed = {line.split()[-1] for line in symbols(EXTENSION, "--undefined-only") if re.search(r" _?Py", line)}
    assert needed and not needed - {line.split()[-1] for line in symbols(python, "--defined-only") if line}


def test_no_format_of_it_depends_on_the_headers_that_it_was_built_with():
    """Built with headers of 3.13, a call with "y#" is one that Python 3.11 refuses: there were no warm runs."""
    sources = [path.read_text() for path in (host.REPO / "jail/zygote/module").glob("*.c")]
    formats = [given for text in sources for given in re.findall(r"(?:ParseTuple|BuildValue|CallFunction|CallMethod)\([^\"]*\"([^\"]*)\"", text)]
    assert formats and not [given for given in formats if "#" in given]


def test_only_its_way_in_is_shown():
    assert {line.split()[-1] for line in symbols(EXTENSION, "--defined-only") if line} == {"PyInit_zygote"}
