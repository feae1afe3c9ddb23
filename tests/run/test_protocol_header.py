"""The header for clients: what it names is what brigd speaks, and a client that is built with it works."""
import os
import re
import shutil
import subprocess

import pytest

from support import daemon as daemons
from support import host

HEADER = host.build_dir() / "man/protocol.h"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """examples/client/run.c, built as its first lines say, with an installed brig.pc."""
    for tool in "cmake", "pkg-config", "cc":
        if not shutil.which(tool):
            pytest.skip(f"missing program: {tool}")
    dest = tmp_path_factory.mktemp("include")
    done = subprocess.run(["cmake", "--install", host.build_dir(), "--prefix", "/usr"], env={**os.environ, "DESTDIR": str(dest)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    flags = subprocess.run(["pkg-config", "--cflags", "brig"], env={**os.environ, "PKG_CONFIG_PATH": f"{dest}/usr/share/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": str(dest)},
                           capture_output=True, text=True, check=True).stdout.split()
    program = dest / "run"
    built = subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", program, host.REPO / "examples/client/run.c", *flags, f"-I{dest}/usr/include"], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return program


def test_a_client_that_is_built_with_it_runs_a_program(client, jail):
    with daemons.Daemon() as service:
        done = subprocess.run([client, "print(6 * 7)"], env={"BRIG_SOCKET": str(service.path)}, capture_output=True, text=True, timeout=host.HANG)
    assert (done.returncode, done.stdout) == (0, "42\n") and '"exit_reason":"exited"' in done.stderr, done


def test_it_compiles_as_c_and_names_every_request_event_error_and_end():
    text = HEADER.read_text()
    kinds = {kind: re.findall(rf'^#define BRIG_{kind}_(\w+) "\1" ', text, re.M) for kind in ("REQUEST", "EVENT", "ERROR", "EXIT")}
    assert {"hello", "run", "exec", "cancel"} <= set(kinds["REQUEST"]) and kinds["EVENT"] == ["waiting", "started", "opened", "limit", "ended"]
    assert {"busy", "denied"} <= set(kinds["ERROR"]) and {"exited", "oom", "timeout_wall"} <= set(kinds["EXIT"])
    done = subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-include", HEADER, "/dev/null"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
