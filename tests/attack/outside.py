"""The half of the escape suite that stays outside: it sends probes, runs their controls and holds the verdicts."""
import ast
import dataclasses
import inspect
import json
import pathlib
import subprocess
import tempfile

import inside
from support import host

PROBES = []
SCRATCH = """
set -e
bare_dev() { # where the host has no device worth stealing
    mount -t tmpfs dev "$1"
    cp -ax /dev/. "$1"
    mount --rbind /dev/pts "$1"/pts
    mknod "$1"/kmsg c 1 11
}
mount -t tmpfs scratch "$1"
mkdir "$1"/upper "$1"/work "$1"/root "$1"/upper-tmp "$1"/work-tmp
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1"/root
mount -t overlay -o "lowerdir=/tmp,upperdir=$1/upper-tmp,workdir=$1/work-tmp" overlay "$1"/root/tmp # it may be a tmpfs
mount -t proc proc "$1"/root/proc
mount -t sysfs sysfs "$1"/root/sys 2>/dev/null || true
mount --rbind /dev "$1"/root/dev
[ -e /dev/kmsg ] || bare_dev "$1"/root/dev
mount -t tmpfs shm "$1"/root/dev/shm
ip link set lo up && ip route add default dev lo || true
exec chroot "$1"/root %s
"""


@dataclasses.dataclass
class Probe:
    """One attack: what it does, what must come of it in a jail, and what comes of it without one."""
    id: str
    sentence: str
    attack: object            # function, shipped as text
    jail: object              # result -> True when the jail held
    free: object              # result -> True when the attack worked; None when nothing shows that
    where: str                # the control's place: user, root, scratch
    why: str                  # when there is no control
    options: tuple            # of brig run, when the probe needs a jail of its own
    needs: str                # of host.lacks(), what the attack cannot do without

    def __str__(self):
        return f"{self.id} {self.sentence}"


def probe(row, sentence, *, jail, free=None, where="scratch", why="", options=None, needs=""):
    """Registers an attack under a row of rows.py."""
    assert free or why, f"{row}: {sentence}: neither a control nor a reason for having none"

    def register(function):
        PROBES.append(Probe(row, sentence, function, jail, free, where, why, options, needs))
        return function
    return register


# --- the program that is sent -------------------------------------------------------------------------

def source_of(function):
    """The text of a function without its decorators."""
    text = inspect.getsource(function)
    node = ast.parse(text).body[0]
    return "".join(text.splitlines(keepends=True)[node.lineno - 1:])


def program(functions, given, helpers=()):
    """functions: {key: function}; the answer of each comes back under its key. They may call the helpers."""
    text = pathlib.Path(inside.__file__).read_text()
    names = {}
    for function in functions.values():
        if names.setdefault(function.__name__, function) is not function:
            raise ValueError(f"two probes are called {function.__name__}")
    text += "\n\n" + "\n\n".join(source_of(f) for f in (*helpers, *names.values()))
    pairs = ", ".join(f"({key!r}, {f.__name__})" for key, f in functions.items())
    return f"{text}\n\nmain([{pairs}], {given!r})\n"


def answers(text):
    found = {}
    for line in text.splitlines():
        try:
            row = json.loads(line)
            found[row["id"]] = row["result"]
        except (ValueError, TypeError, KeyError):
            pass
    return found


# --- the places without a jail ------------------------------------------------------------------------

def scratch_command(folder, *argv):
    """argv as root on a copy of this host: its own mounts (overlay), processes, network, ipc and uts names."""
    # --kill-child: nothing outlives the control, whatever the attack started
    return ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child",
            "bash", "-c", SCRATCH % " ".join(argv), "scratch", str(folder)]


def command(where, folder):
    python = f"{host.PYTHON} -I -"
    return {
        "root": python.split(),
        "user": ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *python.split()],
        "scratch": scratch_command(folder, python),
    }[where]


def run_free(functions, given, where="scratch", **popen):
    """The same program without a jail; {key: result}."""
    with tempfile.TemporaryDirectory(prefix="scratch-") as folder:
        done = subprocess.run(command(where, folder), input=program(functions, given).encode(),
                              capture_output=True, timeout=host.HANG, **popen)
    found = answers(done.stdout.decode(errors="replace"))
    for key in functions:
        found.setdefault(key, {"no answer": done.stderr.decode(errors="replace")[-500:], "status": done.returncode})
    return found


# --- verdicts --------------------------------------------------------------------------------------------

def holds(verdict, result):
    """A result of another shape than the verdict expects (a probe that died) is a "no"."""
    try:
        return bool(verdict(result))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return False


def values(result):
    if isinstance(result, dict):
        return list(result.values())
    return result if isinstance(result, list) else [result]


def only(*allowed):
    """Every value is one of these."""
    return lambda result: bool(values(result)) and all(v in allowed for v in values(result))


def none_of(*refusals):
    """No value is one of these: each attack got at least to where its arguments are read."""
    return lambda result: bool(values(result)) and not any(v in refusals or _broken(v) for v in values(result)) \
        and not _broken(result)


def most_not(*refusals):
    """As none_of, but a kernel may lack a third of them."""
    return lambda result: not _broken(result) and \
        sum(v not in refusals for v in values(result)) * 3 >= len(values(result)) * 2


def _broken(result):
    return isinstance(result, dict) and any(k in result for k in ("raised", "timeout", "stopped", "no answer", "ended", "signal"))


def none_ok(result):
    """Each attack was refused, whatever the kernel called it."""
    return bool(values(result)) and all(isinstance(v, str) and v != "ok" for v in values(result))


def equals(wanted):
    return lambda result: result == wanted


def signalled(name):
    return lambda result: isinstance(result, dict) and result.get("signal") == name
