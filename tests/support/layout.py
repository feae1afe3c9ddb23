"""Structs that brig's own processes send each other, as this build lays them out (layouts.c), for tests that are one of these processes."""
import ctypes
import functools
import json
import re
import subprocess

import pytest

from support import host

PLAIN = {"char": ctypes.c_char, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "i32": ctypes.c_int32,
         "i64": ctypes.c_int64, "f64": ctypes.c_double}
PROGRAM = host.build_dir() / "tests" / "layouts"


@functools.cache
def told():
    return json.loads(subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout) if PROGRAM.exists() else None


class NotBuilt:
    """For a struct, so that tests fail and not their collection."""

    def __init__(self, *_, **__):
        pytest.fail(f"{PROGRAM} is missing: ./dev build")


def type_of(text):
    name, *counts = re.split(r"\[|\]\[|\]$", text.removesuffix("]"))
    made = PLAIN.get(name) or struct(name)
    for count in counts:
        made *= int(count)
    return made


@functools.cache
def struct(name):
    """A class of ctypes."""
    if not told():
        return NotBuilt
    said = told()["structs"][name]
    made = type(name, (ctypes.Structure,), {"_fields_": [(field, type_of(text)) for field, _, text in said["fields"]]})
    assert ctypes.sizeof(made) == said["size"] and all(getattr(made, field).offset == at for field, at, _ in said["fields"]), name
    return made


def number(name):
    return told()["numbers"][name] if told() else 0


def words(name):
    return told()[name] if told() else []
