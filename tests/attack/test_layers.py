"""Builds of brig that leave one layer out: which attacks another layer still stops. docs/security-model.md has the table."""
import collections
import contextlib
import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest

import layer_attacks
import outside
from support import brig, host

sys.path.append(str(host.REPO / "tools"))
import mutants

TREE = host.build_dir() / "layers"
PAGE = host.REPO / "docs" / "security-model.md"
BINARIES = ("bin/brig", "bin/brigd", "bin/brig-init")

ENTER = "jail/child/child_enter.c", "	return child_sys(setns(c->fork.cell_pidfd, CLONE_NEWUSER | ", "	return child_sys(setns(c->fork.cell_pidfd, "
CELL = "jail/cell/cell.c"
pytestmark = [pytest.mark.nightly, pytest.mark.private("the builds have no service"),
              pytest.mark.skipif(host.landlock_abi() < 6, reason="missing kernel feature: Landlock with scopes, Linux 6.12"),
              pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="missing program: cmake, ninja")]


def empty(file, function):
    """The step does nothing."""
    head = f"{function}(struct child_ctx *c)\n{{\n"
    return file, head, head + "	if (c)\n		return 0;\n"


PROGRAM = "jail/child/child_program.c"
Layer = collections.namedtuple("Layer", "name edits")
LAYERS = [Layer(*row) for row in (
    ("seccomp", [empty(PROGRAM, "program_install_filter")]),
    ("landlock", [("jail/child/landlock.c", "		r = child_sys(landlock_restrict_self(rules, quiet));", "		r = 0;")]),
    # every capability in the cell's user namespace, which an exec keeps
    ("no-caps", [empty(PROGRAM, "child_empty_bounding_set"),
                 (PROGRAM, "PR_SET_SECUREBITS, SECBIT_NOROOT |", "PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) + 0 * (SECBIT_NOROOT |"),
                 (PROGRAM, "SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED, 0, 0, 0));", "SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED));"),
                 (PROGRAM, "	return child_sys(syscall(SYS_capset, &head, none));",
                  "	if (syscall(SYS_capget, &head, none) < 0)\n		return -errno;\n"
                  "	for (int i = 0; i < 2; i++)\n		none[i].inheritable = none[i].effective = none[i].permitted;\n"
                  "	if (syscall(SYS_capset, &head, none) < 0)\n		return -errno;\n"
                  "	for (int cap = 0; cap < 41; cap++)\n		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);\n	return 0;")]),
    # the kernel wants it, or CAP_SYS_ADMIN, of whoever installs a filter or applies Landlock's rules: the exec takes that away
    ("no-new-privs", [empty(PROGRAM, "program_set_no_new_privs"),
                      (PROGRAM, "	return child_sys(syscall(SYS_capset, &head, none));",
                       "	none[0].effective = none[0].permitted = 1u << CAP_SYS_ADMIN;\n	return child_sys(syscall(SYS_capset, &head, none));")]),
    ("user-ns", [ENTER, empty("jail/child/child_cell.c", "cell_enter_user_namespace")]),
    # the host's tree is at /run/proc-3
    ("mount-ns", [("jail/cell/base_mounts.c", "pivot_root(\".\", \".\") < 0 || umount2(\".\", MNT_DETACH) < 0 || chdir", "pivot_root(\".\", \"proc-3\") < 0 || chdir"),
                  ("jail/child/child_cell.c", "pivot_root(\".\", \".\") < 0 || umount2(\".\", MNT_DETACH) < 0)", "pivot_root(\".\", \"run\") < 0)")]),
    ("ro-rootfs", [("jail/spec/model/mount_plan.c", "{ MOUNT_ROOT,   \"\",             MF_RO | MF_NODEV, ", "{ MOUNT_ROOT,   \"\",             MF_NODEV, ")]),
    ("proc-subset", [("jail/child/child_cell.c", "{ { \"hidepid\", \"invisible\" }, { \"subset\", \"pid\" }, ", "{ ")]),
    ("pid-ns", [(CELL, "CLONE_NEWNS | CLONE_NEWPID | ", "CLONE_NEWNS | ")]),
    ("net-ns", [("jail/cell/net.c", "	if (unshare(CLONE_NEWNET) < 0)\n		return err_sys(e, \"set-up step net-namespace\");\n	return limit_tcp_memory(e)",
                 "	if (e)\n		return 0;\n	return limit_tcp_memory(e)")]),
    ("ipc-ns", [(CELL, "CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD", "CLONE_NEWUTS | CLONE_PIDFD")]),
    ("uts-ns", [(CELL, "CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD", "CLONE_NEWIPC | CLONE_PIDFD"), empty("jail/child/child_cell.c", "cell_set_hostname")]),
)]

PAIRS = [ # Landlock shows itself by no other way: what it refuses is refused by another layer, too
    ("mount-ns", "landlock", "write to a file that everybody on the host may write"),
    ("net-ns", "landlock", "reach an abstract socket of the host"),
    ("pid-ns", "proc-subset", "see a process of the host"),
    ("seccomp", "ipc-ns", "attach shared memory of the host"),
    ("seccomp", "no-caps", "become another user"),
]


# --- the host -------------------------------------------------------------------------------------------

def add_key(name):
    """In a session keyring of its own: preexec_fn."""
    libc = ctypes.CDLL(None)
    libc.syscall(250, 1, None) # keyctl: KEYCTL_JOIN_SESSION_KEYRING
    libc.syscall(248, b"user", name.encode(), b"secret", 6, -3) # add_key, to KEY_SPEC_SESSION_KEYRING


@contextlib.contextmanager
def shared_memory():
    libc = ctypes.CDLL(None)
    key = secrets.randbelow(1 << 30) + 1
    number = libc.shmget(key, 4096, 0o1666)
    try:
        yield key
    finally:
        libc.shmctl(number, 0, None)


@pytest.fixture(scope="module")
def given():
    """What the attacks look for."""
    token = f"layers-{secrets.token_hex(8)}"
    with tempfile.TemporaryDirectory(prefix="layers-") as folder, socket.create_server(("127.0.0.1", 0)) as tcp, \
            socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named, shared_memory() as key, \
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", token]) as bystander, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o777)
        for name, mode in (("open", 0o666), ("secret", 0o600)):
            with open(f"{folder}/{name}", "w") as f:
                f.write(token)
            os.chmod(f"{folder}/{name}", mode)
        for name in ("usr", "etc"): # for the control
            os.mkdir(f"{folder}/{name}")
        shutil.copy(f"{folder}/secret", f"{folder}/etc/passwd")
        abstract.bind("\0" + token)
        named.bind(f"{folder}/socket")
        os.chmod(f"{folder}/socket", 0o777)
        for listener in (abstract, named):
            listener.listen(64)
        stack.callback(bystander.kill)
        yield {"token": token, "folder": folder, "open file": f"{folder}/open", "secret file": f"{folder}/secret", "socket": f"{folder}/socket",
               "pid": bystander.pid, "port": tcp.getsockname()[1], "shm": key,
               "namespaces": {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "pid", "net", "ipc", "uts")}}
        assert bystander.poll() is None, "a process of the host was killed"


FUNCTIONS = {**{sentence: function for sentence, _, function in layer_attacks.ATTACKS}, "signs": layer_attacks.signs}


HELPERS = layer_attacks.status, layer_attacks.same_namespace


def worked(answers):
    return {sentence for sentence, _, _ in layer_attacks.ATTACKS if "ok" in outside.values(answers.get(sentence))}


# --- the builds -----------------------------------------------------------------------------------------

@contextlib.contextmanager
def without(layer):
    """The tree is built without it, and is as it was afterwards."""
    texts = {TREE / file: (TREE / file).read_text() for file, _, _ in layer.edits}
    try:
        for file, old, new in layer.edits:
            path = TREE / file
            path.write_text(path.read_text().replace(old, new))
        said = mutants.build(TREE, BINARIES)
        assert said is None, f"without {layer.name}: {said}"
        yield
    finally:
        for path, text in texts.items():
            path.write_text(text)


def run_jail(given):
    env = {name: value for name, value in os.environ.items() if not name.startswith("BRIG_")}
    done = subprocess.run([TREE / "build" / "bin" / "brig", "run", "--json", "--private", "--timeout", "60", "-"],
                          input=outside.program(FUNCTIONS, given, HELPERS).encode(), env=env, capture_output=True, timeout=host.HANG, preexec_fn=lambda: add_key(given["token"]))
    record = brig.parse(done.stdout.decode())
    assert record and record["exit_reason"] == "exited", done.stdout.decode()[-3000:] + done.stderr.decode()[-3000:]
    answers = outside.answers(record["stdout"])
    assert set(answers) == set(FUNCTIONS), record
    return answers


@pytest.fixture(scope="module")
def whole(needs_root, given):
    mutants.copy_tree(TREE)
    said = mutants.build(TREE, BINARIES)
    assert said is None, said
    mutants.copy_store(TREE)
    return run_jail(given)


@pytest.fixture(scope="module")
def left_out(whole, given):
    """{layer: the answers of the attacks in a jail without it}"""
    found = {}
    for layer in LAYERS:
        with without(layer):
            found[layer.name] = run_jail(given)
    return found


def test_the_text_of_a_layer_is_in_its_file_once():
    rows = [mutants.Mutant(layer.name, *edit, "", []) for layer in LAYERS for edit in layer.edits]
    assert mutants.check_rows(rows) == []

# --- what is told ---------------------------------------------------------------------------------------

MARK = "<!-- tests/attack/test_layers.py -->"


def names(layers):
    return ", ".join(f"`{layer}`" for layer in layers)


def table(left_out):
    """What the page says, of the attacks as they went."""
    rows = ["| attack | stopped by each of | works without |", "|---|---|---|"]
    for sentence, guards, _ in layer_attacks.ATTACKS:
        through = [layer for layer, answers in left_out.items() if sentence in worked(answers)]
        rows.append(f"| {sentence} | {names(guards)} | {names(through) or '-'} |")
    return "\n".join(rows)


def test_every_attack_works_without_a_jail(needs_root, given):
    done = subprocess.run(["unshare", "--mount", host.PYTHON, "-I", "-"], input=outside.program(FUNCTIONS, given, HELPERS).encode(),
                          capture_output=True, timeout=host.HANG, preexec_fn=lambda: add_key(given["token"]))
    answers = outside.answers(done.stdout.decode())
    assert {sentence: answers.get(sentence) for sentence, _, _ in layer_attacks.ATTACKS if sentence not in worked(answers)} == {}, done.stderr.decode()


def test_every_attack_is_stopped_by_the_whole_jail(whole):
    assert worked(whole) == set() and not any(whole["signs"].values()), whole


@pytest.mark.parametrize("layer", [layer.name for layer in LAYERS if layer.name != "landlock"])
def test_exactly_this_layer_is_out(layer, left_out):
    assert [name for name, out in left_out[layer]["signs"].items() if out] == [layer]


@pytest.mark.parametrize("first, second, sentence", [pytest.param(*pair, id=f"{pair[0]}, {pair[1]}") for pair in PAIRS])
def test_what_two_layers_stop_works_without_both(first, second, sentence, whole, left_out, given):
    edits = [edit for layer in LAYERS if layer.name in (first, second) for edit in layer.edits]
    with without(Layer(f"{first} and {second}", edits)):
        assert sentence in worked(run_jail(given))
    assert sentence not in worked(left_out[first]) | worked(left_out[second])


@pytest.mark.requirement("A2", "B32")
@pytest.mark.parametrize("sentence, guards", [pytest.param(sentence, guards, id=sentence) for sentence, guards, _ in layer_attacks.ATTACKS])
def test_an_attack_with_two_guards_is_stopped_when_any_layer_is_out(sentence, guards, left_out):
    through = {layer for layer, answers in left_out.items() if sentence in worked(answers)}
    assert through == (set(guards) if len(guards) == 1 else set())


def test_the_page_says_so(left_out):
    told = PAGE.read_text().split(MARK)[1].strip()
    assert told == table(left_out), f"the table of {PAGE.name} should be:\n{table(left_out)}"
