"""What --ro shows can be read, and nothing else: no write, no socket, no pipe of the host behind it."""
import os
import socket

import pytest

INSIDE = """
import json, os, socket
def answer(do):
    try:
        do()
        return "did"
    except OSError as e:
        return e.strerror
def connect():
    socket.socket(socket.AF_UNIX).connect("/workspace/shown/socket")
print(json.dumps({
    "read": open("/workspace/shown/file").read(),
    "list": sorted(os.listdir("/workspace/shown")),
    "write": answer(lambda: open("/workspace/shown/file", "w")),
    "create": answer(lambda: open("/workspace/shown/new", "w")),
    "remove": answer(lambda: os.unlink("/workspace/shown/file")),
    "rename": answer(lambda: os.rename("/workspace/shown", "/workspace/moved")),
    "socket": answer(connect),
    "pipe": answer(lambda: os.open("/workspace/shown/pipe", os.O_WRONLY | os.O_NONBLOCK)),
    "execute": answer(lambda: os.execv("/workspace/shown/program", ["program"])),
}))
"""


@pytest.fixture
def shown(tmp_path):
    """A folder that everybody may do everything with, with a listener behind its socket and a reader at its pipe."""
    tmp_path.chmod(0o755)
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "file").write_text("hello")
    (folder / "program").write_text("#!/bin/sh\n")
    os.mkfifo(folder / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    listener.listen(4)
    listener.setblocking(False)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    yield folder, listener
    listener.close()
    os.close(reader)


def has_visitor(listener):
    try:
        listener.accept()[0].close()
        return True
    except BlockingIOError:
        return False


@pytest.mark.row("B19")
def test_what_is_shown_can_be_read_and_nothing_else(jail, run_brig, shown):
    import json
    folder, listener = shown
    run = run_brig("--ro", folder, program=INSIDE)
    if "missing:inert-ro" in run.record["isolation"]:
        pytest.skip("the file system of the temporary folder has no id-mapped mounts")
    said = json.loads(run.out)
    assert (said["read"], said["list"]) == ("hello", ["file", "pipe", "program", "socket"]), str(run)
    assert said["write"] == said["create"] == said["remove"] == "Read-only file system", str(run)
    assert said["rename"] in ("Device or resource busy", "Operation not permitted"), str(run)
    assert said["socket"] == said["pipe"] == said["execute"] == "Permission denied", str(run)
    assert not has_visitor(listener) and (folder / "file").read_text() == "hello"


FILE = """
import fcntl, json, os
def answer(call):
    try: return call()
    except OSError as e: return e.strerror
print(json.dumps({
    "read": open("file").read(), "list": sorted(os.listdir()), "write": answer(lambda: open("file", "w")), "remove": answer(lambda: os.unlink("file")),
    "over": answer(lambda: os.rename("main.py", "file")), "mode": answer(lambda: os.chmod("file", 0o777)), "time": answer(lambda: os.utime("file")),
    "execute": answer(lambda: os.execv("file", ["file"])), "above": answer(lambda: os.listdir("/workspace/file/..")),
}))
"""


@pytest.mark.row("B19")
def test_a_file_that_is_shown_can_be_read_and_nothing_else(jail, run_brig, shown):
    import json
    folder, _ = shown
    run = run_brig("--ro", folder / "file", program=FILE)
    said = json.loads(run.out)
    assert (said["read"], said["list"], said["above"]) == ("hello", ["file", "main.py"], "Not a directory"), str(run)
    no = {"Read-only file system", "Permission denied", "Operation not permitted"} # which of them, says the file system
    assert {said["write"], said["mode"], said["time"]} <= no and said["execute"] == "Permission denied", str(run)
    assert {said["remove"], said["over"]} <= {"Device or resource busy", "Operation not permitted"}, str(run)
    assert (folder / "file").read_text() == "hello" and run.record["exit_reason"] == "exited"


@pytest.mark.row("B19")
@pytest.mark.parametrize("name", ["pipe", "socket"])
def test_no_pipe_and_no_socket_is_shown_by_itself(jail, run_brig, shown, name):
    folder, listener = shown
    run = run_brig("--ro", folder / name, program="print('ran')")
    assert (run.status, run.out or "") == (125, "") and "is neither a directory nor a regular file" in str(run), str(run)
    assert not has_visitor(listener)


@pytest.mark.control("B19")
def test_control_the_same_socket_and_pipe_answer_without_a_jail(shown):
    folder, listener = shown
    socket.socket(socket.AF_UNIX).connect(str(folder / "socket"))
    assert has_visitor(listener)
    os.close(os.open(folder / "pipe", os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.private("strict wants it inert, which takes rights that a service's supervisor has not")
@pytest.mark.row("B19")
def test_strict_takes_no_lock_on_what_is_shown(jail, run_brig, shown):
    """A lock needs no right to write, and a process of the host may wait for it. basic allows it: a documented limit."""
    folder, _ = shown
    program = "import fcntl\ntry: fcntl.flock(open('shown/file'), fcntl.LOCK_EX); print('locked')\nexcept PermissionError: print('refused')"
    run = run_brig("-p", "strict", "--ro", folder, program=program)
    assert run.out == "refused\n", str(run)
