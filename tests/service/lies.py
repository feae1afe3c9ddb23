"""Programs that talk to a real monitor as a server that has gone mad (mad_server.h)."""
import contextlib
import subprocess

import pytest

import left
from support import brig, host
from support import daemon as daemons

# The supervisor is an unprivileged user of this host, and the store may be below a closed directory.
WHERE_ALL_CAN_SEE = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$1" /mnt && shift && exec "$@"', "sh"]


def program(name):
    return host.build_dir() / "tests" / name


def tell(name, lie, *more):
    """What the program said of it."""
    argv = [*WHERE_ALL_CAN_SEE, str(host.store_dir()), program(name), lie, daemons.binary("monitor"), "/mnt", host.runtime_dir(), *more]
    done = subprocess.run(argv, env=brig.environment(), capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 0, f"{lie}: {done.stdout}{done.stderr}"
    return done


def listed(name):
    """Every lie that it tells; none when it was not built, so that its tests fail and not their collection."""
    return subprocess.run([program(name)], capture_output=True, text=True, check=True).stdout.splitlines() if program(name).exists() else []


@contextlib.contextmanager
def leaving_nothing(name):
    """For all of a program's lies together."""
    if not program(name).exists():
        pytest.fail(f"{program(name)} is missing: ./dev build")
    before = left.Snapshot()
    yield
    assert not left.wrong(before), left.wrong(before)
