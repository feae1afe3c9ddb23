#!/usr/bin/python3
# pack.py - packs these files into guest.pyc, for the interpreter that executes it: pack.py [TO]; in a rootfs, installs lines.py
#
# One file, because each file that is opened costs every run time. Its code is guest.py; the other files are constants of bytes
# in it until they are needed. The hash of the source is not checked: the rootfs is read-only.
import importlib._bootstrap_external
import importlib.util
import marshal
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
MARK = "the other files, compiled; pack.py puts them here"


def compiled(path):
    return compile(path.read_bytes(), f"/usr/lib/brig/{path.name}", "exec", dont_inherit=True, optimize=2)


def pack():
    paths = sorted(set(HERE.glob("*.py")) - {HERE / "guest.py", HERE / "pack.py", HERE / "lines.py"})
    parts = {path.stem: marshal.dumps(compiled(path)) for path in paths}
    code = compiled(HERE / "guest.py")
    assert MARK in code.co_consts
    return code.replace(co_consts=tuple(parts if const == MARK else const for const in code.co_consts))


def install_lines():
    """As sitecustomize. Debian has a link of that name, to a file that does nothing in a jail; it is removed, not followed."""
    to = pathlib.Path(os.__file__).parent / "sitecustomize.py"
    to.unlink(missing_ok=True)
    to.write_bytes((HERE / "lines.py").read_bytes())


to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "guest.pyc"
source_hash = importlib.util.source_hash((HERE / "guest.py").read_bytes())
to.write_bytes(importlib._bootstrap_external._code_to_hash_pyc(pack(), source_hash, False))
if HERE == pathlib.Path("/usr/lib/brig"):
    install_lines()
