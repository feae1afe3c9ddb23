"""The attacks of test_session_attacks.py where nothing holds them: in processes of this host, and against the session of its own user. They must succeed."""
import json
import os
import resource
import signal
import socket
import subprocess

import pytest

import test_session_attacks as attacks
from support import client, host, warm_load
from support import daemon as daemons
from support.sessions import open_session

USER = host.own_id(7)


@pytest.fixture(scope="module")
def service(jail):
    scratch, profiles = warm_load.only_basic("demand")
    with scratch, daemons.Daemon(attacks.USERS, env={"BRIG_PRESETS": str(profiles)}) as made:
        made.path.chmod(0o666)
        yield made


@pytest.fixture
def talk(service):
    with service.connect() as made:
        yield made


def of_user(text, folder=None, processes=200):
    """What a program prints as a user without an account, with so many processes; the test fails where it does."""
    def become():
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
    done = subprocess.run([host.PYTHON, "-I", "-c", text], capture_output=True, text=True, timeout=host.HANG, preexec_fn=become, cwd=folder or "/", check=False) # pylint: disable=subprocess-popen-preexec-fn
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.control("J1")
def test_control_a_process_that_hides_nothing_can_be_looked_into(needs_root):
    """By another one of its user, when no filter is in the way."""
    found = of_user("import os\nos.dup2(1, 3)\n" + attacks.OF_A_CHILD.replace("sorted(found)", "print(' '.join(sorted(found)))").replace("write comm", "write-comm")).split()
    assert {"mem", "environ", "fd", "cwd", "root", "exe", "ptrace", "pidfd_getfd"} <= set(found), found


@pytest.mark.control("J2")
def test_control_a_program_that_lies_where_its_user_may_write_can_be_replaced(needs_root, tmp_path):
    """By the descriptor of the file that executes, as soon as it does not execute any more."""
    tmp_path.chmod(0o777)
    text = """
import os, shutil, subprocess
shutil.copy("/bin/sleep", "program")
running = subprocess.Popen(["./program", "600"])
while not os.readlink(f"/proc/{running.pid}/exe").endswith("/program"): pass # it may be this interpreter still
held = os.open(f"/proc/{running.pid}/exe", os.O_RDONLY)
running.kill(), running.wait()
with open(os.open(f"/proc/self/fd/{held}", os.O_WRONLY | os.O_TRUNC), "wb") as file: file.write(b"#!/bin/sh\\necho replaced\\n")
os.close(held)
print(subprocess.run(["./program"], capture_output=True, text=True).stdout)
"""
    os.chmod(tmp_path.parent, 0o755)
    with open_to_others(tmp_path):
        assert of_user(text, tmp_path).strip() == "replaced"


class open_to_others:
    """pytest keeps its folders to itself."""

    def __init__(self, folder):
        self.folders = [one for one in (folder, *folder.parents) if one.stat().st_uid == os.geteuid() and not one.stat().st_mode & 0o001]

    def __enter__(self):
        self.modes = [(one, one.stat().st_mode) for one in self.folders]
        for one in self.folders:
            one.chmod(one.stat().st_mode | 0o011)

    def __exit__(self, *_):
        for one, mode in self.modes:
            one.chmod(mode & 0o7777)


@pytest.mark.control("J3")
def test_control_a_stop_and_a_kill_reach_a_parent_of_the_same_user(needs_root):
    """And it says nothing more, until another one looks."""
    said = of_user("""
import os, signal
for number in signal.SIGSTOP, signal.SIGKILL:
    parent = os.fork()
    if not parent:
        if os.fork() == 0: os.kill(os.getppid(), number); os._exit(0)
        while True: signal.pause()
    _, status = os.waitpid(parent, os.WUNTRACED)
    print(os.WIFSTOPPED(status), os.WIFSIGNALED(status))
    if os.WIFSTOPPED(status): os.kill(parent, signal.SIGKILL); os.waitpid(parent, 0)
""")
    assert said.split() == ["True", "False", "False", "True"], said


@pytest.mark.control("J4")
def test_control_processes_and_descriptors_run_out_for_others_of_the_same_user(needs_root):
    said = of_user("""
import os, signal
children = []
try:
    while len(children) < 100:
        child = os.fork()
        if not child: signal.pause()
        children.append(child)
except OSError as error: print(error.errno)
for child in children: os.kill(child, 9)
""", processes=30)
    assert said.split() == ["11"], said
    said = of_user(attacks.IN_FLIGHT + "\ntry: kept[0][0].sendmsg([b'x'], [(1, 1, array.array('i', fds[:1]))])\nexcept OSError as error: print(error.errno)")
    assert set(said.split()) <= {"109", "11", "24"} and said.split(), said


@pytest.mark.control("J5")
def test_control_a_copy_that_follows_names_leaves_its_folder(tmp_path):
    """As cp -L and shutil.copy do."""
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "root").symlink_to("/")
    os.mkfifo(tmp_path / "fifo")
    assert b"root" in (tmp_path / "link").read_bytes() and (tmp_path / "root/etc/passwd").exists() and (tmp_path / "a/../../x").parent.name == ".."
    with pytest.raises(BlockingIOError):
        os.read(os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK), 1), "who opens it to read waits"


@pytest.mark.control("J6")
def test_control_a_file_that_was_looked_at_may_be_another_when_it_is_opened(tmp_path):
    path = tmp_path / "f"
    path.write_text("z")
    assert not path.is_symlink() and path.stat().st_size == 1
    (tmp_path / "g").symlink_to("/etc/passwd")
    os.rename(tmp_path / "g", path)
    assert "root" in path.read_text()


@pytest.mark.control("J7")
def test_control_the_same_bytes_on_the_clients_own_socket_are_the_end_of_a_call():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with client.Client(ours) as talk, theirs:
        talk.takes_additions = True # so it reads only the keys that matter here
        theirs.send(json.dumps({"event": "started", "run": "R", "tag": 1, "streams": []}).encode())
        run = client.Run(talk, talk.next())
        theirs.send(json.dumps({"event": "ended", "run": "R", "tag": 1, "record": {"exit_reason": "exited", "exit_code": 0, "warm": False}}).encode())
        assert run.wait()["exit_code"] == 0


@pytest.mark.control("J8")
def test_control_the_channel_is_found_and_heard(talk):
    """What an interpreter says of its own call is believed, and of no other."""
    session = open_session(talk)
    answer = session.run(attacks.CHANNEL + attacks.ANSWER.replace("CALL", "1") + "print('after')")
    assert (answer.reason, answer.status) == ("exited", 0), answer


@pytest.mark.control("J9")
def test_control_its_own_user_sees_and_uses_a_session_over_any_connection(service):
    with service.connect_as(attacks.ANN) as ann, service.connect_as(attacks.ANN) as again:
        hers = open_session(ann, name="work", stays=True)
        hers.run("x = 7")
        assert [row["session"] for row in again.ask("list")["sessions"]] == [hers.id]
        assert type(hers)(again, None, {"session": "work"}).value("x") == 7 and hers.on(again).value("x") == 7
        again.ask("close", session="work")
        assert hers.ended()["exit_reason"] == "exited"
