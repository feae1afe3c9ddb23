#!/usr/bin/python3
# pack.py - makes guest.pyc of these files, for the interpreter that runs it: pack.py [TO]; in a rootfs, lines.py its sitecustomize
#
# One file, because each one that is opened costs every run its time. guest.py is its code; the others lie in it as bytes
# until they are needed. An unchecked hash: where it is used nothing is ever written to.
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
    """Debian has a link there, to a file that does nothing in a jail."""
    to = pathlib.Path(os.__file__).parent / "sitecustomize.py"
    to.unlink(missing_ok=True)
    to.write_bytes((HERE / "lines.py").read_bytes())


to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "guest.pyc"
source_hash = importlib.util.source_hash((HERE / "guest.py").read_bytes())
to.write_bytes(importlib._bootstrap_external._code_to_hash_pyc(pack(), source_hash, False))
if HERE == pathlib.Path("/usr/lib/brig"):
    install_lines()
