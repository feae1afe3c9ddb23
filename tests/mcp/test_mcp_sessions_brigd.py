"""What brig-mcp asks of brigd for sessions, and what it makes of answers and of files that make no sense: looked at without a jail."""
import contextlib
import socket
import struct
import threading

import pytest

from support import fake_server, host
from support import mcp as mcp_client
from test_mcp_tools_brigd import end, served, start

ID = "0b5e55ed-0000-4000-8000-{:012}".format
END, REGULAR, EXECUTABLE, GET, LEFT, LIST = range(6)


def entry(kind, name=b"", size=0, data=b""):
    return struct.pack("=IIQ", kind, len(name), size) + name + data


def entries(data):
    """What a client has sent: (kind, name, bytes)."""
    found = []
    while data:
        kind, length, size = struct.unpack("=IIQ", data[:16])
        name, data = data[16:16 + length], data[16 + length:]
        found.append((kind, name, data[:size] if kind in (REGULAR, EXECUTABLE) else b""))
        data = data[size:] if kind in (REGULAR, EXECUTABLE) else data
    return found


class Sessions:
    """A server with sessions. asked: the requests; answer: what a request gets instead of the usual, by its op."""

    def __init__(self, **answer):
        self.asked, self.opened, self.answer, self.puts, self.open_tag, self.changed = [], 0, answer, [], None, threading.Condition()

    def __call__(self, connection, request):
        with self.changed:
            self.asked.append(request)
            self.changed.notify_all()
        if request["op"] in self.answer:
            done = self.answer[request["op"]](connection, request)
            if done is not False:
                return done
        return getattr(self, "do_" + request["op"])(connection, request)

    def ops(self):
        return [request["op"] for request in self.asked]

    def wait(self, op, count=1):
        with self.changed:
            assert self.changed.wait_for(lambda: self.ops().count(op) >= count, host.HANG), f"no {op}: {self.ops()}"

    def do_open(self, connection, request):
        self.opened += 1
        self.open_tag = request["tag"]
        connection.send({"event": "opened", "run": ID(self.opened), "session": ID(self.opened), "name": None, "idle_ms": 600000, "lifetime_ms": 3600000, "tag": request["tag"]})

    def do_run(self, connection, request, state="kept", **record):
        start(connection, request)
        end(connection, request, session={"id": request["session"], "context": "main", "state": state, "age_ms": 1, "idle_left_ms": 600000}, **record)

    def do_files(self, connection, request, reply=b"", close=False):
        ours, theirs = socket.socketpair()
        connection.send({"reply": "files", "session": request["session"], "tag": request["tag"]}, [theirs.fileno()])
        theirs.close()
        thread = threading.Thread(target=self.serve_files, args=(ours, reply, close), daemon=True)
        thread.start()

    def serve_files(self, sock, reply, close):
        data = b""
        while sum(1 for kind, _, _ in entries_until_now(data) if kind == END) < 2:
            piece = sock.recv(1 << 16)
            if not piece:
                break
            data += piece
        with self.changed:
            self.puts.append(entries(data))
            self.changed.notify_all()
        try:
            for one in reply if not isinstance(reply, bytes) else [reply]:
                sock.sendall(one)
            if not close:
                sock.sendall(entry(END))
        except OSError:
            pass # it has heard enough
        sock.close()

    def do_close(self, connection, request):
        with contextlib.suppress(BrokenPipeError): # nobody waits for it
            connection.send({"reply": "close", "session": request["session"], "tag": request["tag"]})

    def do_interrupt(self, connection, request):
        connection.send({"reply": "interrupt", "run": request["run"], "tag": request["tag"]})


def entries_until_now(data):
    """Of bytes that may not be all."""
    found = []
    while len(data) >= 16:
        kind, length, size = struct.unpack("=IIQ", data[:16])
        size = length + (size if kind in (REGULAR, EXECUTABLE) else 0)
        if len(data) < 16 + size:
            break
        found.append((kind, None, None))
        data = data[16 + size:]
    return found


def run(mcp, **arguments):
    return mcp.data("execute_code", {"code": "1", "session": "a", **arguments})


def refuse(connection, request, code, message, field=None):
    connection.send({**fake_server.refusal(code, message, field), "tag": request["tag"]})


# --- what is asked for -----------------------------------------------------------------------------------------

def test_what_belongs_to_a_session_is_said_when_it_is_opened_and_the_rest_with_each_call():
    server = Sessions()
    with served(server) as mcp:
        run(mcp, timeout=60, memory_limit="512m", env={"K": "v"})
        run(mcp)
    opened, first, second = server.asked
    for request in server.asked:
        request.pop("tag")
    assert opened == {"op": "open", "profile": "basic", "limits": {"memory_bytes": 512 << 20}, "env": ["K=v"], "wait_ms": 60000}, "and nothing of a name, which another of this user could use"
    assert first == {"op": "run", "session": ID(1), "limits": {"wall_ms": 60000, "cpu_ms": 60000, "output_bytes": 1 << 20}}
    assert second == {**first, "limits": {"wall_ms": 30000, "cpu_ms": 30000, "output_bytes": 1 << 20}}


def test_a_preset_of_memory_need_not_be_held_and_a_missing_limit_may_be_allowed():
    server = Sessions()
    with served(server, "--allow-missing", "memory") as mcp:
        run(mcp)
    assert (server.asked[0]["limits"], server.asked[0]["allow_missing"]) == ({}, ["memory"])


def test_files_go_before_the_run_in_one_list_with_an_end_of_each():
    server = Sessions()
    with served(server) as mcp:
        run(mcp, files=[{"path": "a", "content": "x"}, {"path": "b", "base64": "AAE="}])
    assert server.ops() == ["open", "files", "run"] and server.puts == [[(REGULAR, b"a", b"x"), (REGULAR, b"b", b"\0\1"), (END, b"", b""), (END, b"", b"")]]


def test_the_end_of_a_session_is_asked_for_once_and_its_name_is_another_session_then():
    server = Sessions()
    with served(server) as mcp:
        run(mcp)
        mcp.call("end_session", {"session": "a"})
        run(mcp)
    assert server.ops() == ["open", "run", "close", "open", "run"] and (server.asked[2]["session"], server.asked[4]["session"]) == (ID(1), ID(2))


# --- a session that is gone ------------------------------------------------------------------------------------

GONE = "session 0b5e55ed has ended: its lifetime of 3600 s was over"


def test_a_call_in_a_session_that_brigd_does_not_know_is_made_in_a_new_one_with_its_files():
    def gone(connection, request):
        if request["session"] != ID(1):
            return False
        return refuse(connection, request, "not_found", GONE, "session")
    server = Sessions(run=gone)
    with served(server) as mcp:
        said = run(mcp, files=[{"path": "a", "content": "x"}])
    assert server.ops() == ["open", "files", "run", "open", "files", "run"] and server.puts[0] == server.puts[1]
    assert said["success"] is True and server.asked[5]["session"] == ID(2)


@pytest.mark.parametrize("op", ["run", "files"])
def test_a_session_that_is_never_known_is_told_and_not_asked_for_for_ever(op):
    server = Sessions(**{op: lambda connection, request: refuse(connection, request, "not_found", GONE, "session")})
    with served(server) as mcp:
        said = run(mcp, files=[{"path": "a", "content": "x"}])
    assert said["success"] is False and "its lifetime of 3600 s was over" in said["error"] and server.ops().count("open") <= 2, said


def test_the_end_of_an_idle_session_is_told_to_the_next_call_in_the_words_of_brigd():
    server = Sessions()
    with served(server) as mcp:
        run(mcp)
        def ends(connection, request):
            connection.send({**fake_server.ended(exit_reason="cancelled", session_end="it was idle for 600 s"), "run": ID(1), "tag": server.open_tag})
            return False
        server.answer["run"] = ends # while a call is asked for: that one still goes to the old session
        run(mcp)
        server.answer.pop("run")
        words = mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "x"}))
        assert host.poll(lambda: "is lost, with its variables and files: it was idle for 600 s" in mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "x"}))), words
        server.answer["run"] = lambda connection, request: server.do_run(connection, request, state="new")
        assert "the earlier one is lost, with its variables and files: it was idle for 600 s. This one is new" in run(mcp)["session"]["note"]
    assert "close" not in server.ops()


def test_a_call_that_comes_while_brigd_closes_its_session_is_made_in_a_new_one_that_knows_why():
    def closes(connection, request):
        if request["session"] != ID(1):
            return server.do_run(connection, request, state="new")
        refuse(connection, request, "not_found", "session 0b5e55ed is being closed", "session")
        return connection.send({**fake_server.ended(exit_reason="cancelled", session_end="its client closed it"), "run": ID(1), "tag": server.open_tag})
    server = Sessions(run=closes)
    with served(server) as mcp:
        assert "the earlier one is lost, with its variables and files: its client closed it." in run(mcp)["session"]["note"]
    assert server.ops() == ["open", "run", "open", "run"]


@pytest.mark.parametrize("code, field, words, reason", [
    ("denied", "env[0]", "env: K: no", "denied"), ("busy", None, "no", "busy"), ("above_ceiling", "limits.memory_bytes", "memory_limit: no", "denied"),
    ("missing", None, "no", "setup_failed")])
def test_a_session_that_cannot_be_opened_is_told_to_all_calls_that_wait(code, field, words, reason):
    server = Sessions(open=lambda connection, request: refuse(connection, request, code, "no", field))
    with served(server) as mcp:
        for said in (run(mcp, env={"K": "v"}), run(mcp, env={"K": "v"})):
            assert (said["error"], said["exit_reason"]) == (words, reason), said
        assert "no" in mcp_client.text_of(mcp.call("write_file", {"session": "a", "path": "x", "content": ""}))
    assert server.ops() == ["open"] * 3


def test_a_session_whose_jail_cannot_be_built_is_told():
    def fails(connection, request):
        record = fake_server.ended(exit_reason="setup_failed", exit_code=None, error={"type": "SETUP", "message": "mount: no"})
        connection.send({**record, "run": ID(1), "tag": request["tag"]})
    with served(Sessions(open=fails)) as mcp:
        said = run(mcp)
    assert said["error"] == "mount: no" and said["exit_reason"] == "setup_failed"


def test_a_context_that_is_busy_is_told():
    with served(Sessions(run=lambda connection, request: refuse(connection, request, "busy", "main is busy with call x", "context"))) as mcp:
        said = run(mcp)
    assert said["exit_reason"] == "busy" and "main is busy" in said["error"]


# --- ends ------------------------------------------------------------------------------------------------------

def held(server, **record):
    """A run goes on until it is interrupted or cancelled; "ends": the op that ends it."""
    ends = record.pop("ends")
    kept = []

    def begins(connection, request):
        start(connection, request)
        kept.append(request)

    def stop(connection, request):
        connection.send({"reply": request["op"], "run": request["run"], "tag": request["tag"]})
        if request["op"] == ends:
            end(connection, kept[-1], session={"id": ID(1), "context": "main", "state": record.pop("state"), "age_ms": 1, "idle_left_ms": 1000}, **record)
    server.answer |= {"run": begins, "interrupt": stop, "cancel": stop}
    return server


def test_a_cancelled_call_is_interrupted_and_that_is_enough():
    server = held(Sessions(), ends="interrupt", state="kept", exit_code=130)
    with served(server, "--yield-after", "0.05") as mcp:
        said = run(mcp)
        ended = mcp.data("cancel_execution", {"execution_id": said["execution_id"]})
    assert server.ops() == ["open", "run", "interrupt"] and ended["exit_reason"] == "cancelled" and ended["session"]["state"] == "kept"


def test_a_call_that_an_interrupt_does_not_end_is_cancelled():
    server = held(Sessions(), ends="cancel", state="lost", exit_reason="cancelled", exit_code=None)
    with served(server, "--yield-after", "0.05") as mcp:
        said = run(mcp)
        ended = mcp.data("cancel_execution", {"execution_id": said["execution_id"]})
    assert server.ops() == ["open", "run", "interrupt", "cancel"] and server.asked[3]["reason"] == "cancelled"
    assert ended["session"]["note"] == "Session 'a': lost: the interpreter ended (it was cancelled); variables are gone; files are still there."


def test_a_call_that_ended_by_itself_just_then_has_ended_by_itself():
    server = held(Sessions(), ends="interrupt", state="kept", exit_code=0)
    with served(server, "--yield-after", "0.05") as mcp:
        said = run(mcp)
        assert mcp.data("cancel_execution", {"execution_id": said["execution_id"]})["exit_reason"] == "exited"


# --- files that make no sense ----------------------------------------------------------------------------------

def moved(reply, close=False):
    server = Sessions()
    server.answer["files"] = lambda connection, request: server.do_files(connection, request, reply, close) or True
    return server


BROKEN = {
    "a kind that nobody knows": entry(7, b"a"), "one that a client alone sends": entry(GET, b"a"), "a name that climbs": entry(LIST, b"../a"), "an absolute name": entry(LIST, b"/a"),
    "an empty name": entry(LIST, b""), "a NUL in a name": entry(LIST, b"a\0b"), "an end with a name": entry(END, b"a"), "a name that is too long": struct.pack("=IIQ", LIST, 1025, 0) + b"a" * 1025,
    "a name of four gigabytes": struct.pack("=IIQ", LIST, 0xffffffff, 0),
}


@pytest.mark.parametrize("tool", ["list_files", "read_file", "write_file", "execute_code"])
@pytest.mark.parametrize("what", BROKEN)
def test_entries_that_make_no_sense_end_the_list(what, tool):
    arguments = {"list_files": {}, "read_file": {"path": "a"}, "write_file": {"path": "a", "content": "x"}, "execute_code": {"code": "1", "files": [{"path": "a", "content": "x"}]}}[tool]
    with served(moved(BROKEN[what])) as mcp:
        if tool != "execute_code":
            run(mcp)
        result = mcp.call(tool, {"session": "a", **arguments})
        assert result["isError"] is True and "invalid" in mcp_client.text_of(result) or "has a name" in mcp_client.text_of(result), result
        assert mcp.call("end_session", {"session": "a"})["isError"] is False


@pytest.mark.parametrize("reply", [b"", entry(LIST, b"a", 5), entry(REGULAR, b"a", 100, b"short"), entry(LIST, b"a", 5)[:-1]])
def test_a_list_without_an_end_is_told(reply):
    with served(moved(reply, close=True)) as mcp:
        run(mcp)
        for tool, arguments in (("list_files", {}), ("read_file", {"path": "a"}))[:1 if entry(LIST, b"a", 5) == reply else 2]:
            result = mcp.call(tool, {"session": "a", **arguments})
            assert result["isError"] is True and mcp_client.text_of(result) == "files: they ended in the middle"


def test_a_list_without_end_is_cut():
    forever = (entry(LIST, b"a/" + str(n).encode(), n) * 50 for n in range(1_000_000_000))
    with served(moved(forever)) as mcp:
        run(mcp)
        said = mcp.data("list_files", {"session": "a"})
    assert len(said["files"]) == 1000 and said["left_out"] == 1


def test_a_file_that_says_it_is_huge_is_bounded_and_what_comes_unasked_is_not_taken():
    many = [entry(REGULAR, b"a", 1 << 20), *([b"x" * 65536] * 16), entry(REGULAR, b"b", 1 << 60)]
    with served(moved(many)) as mcp:
        run(mcp)
        said = mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "a"}))
        assert said.startswith("xxx") and "1048576 bytes in all" in said and len(said) <= 8192
    with served(moved(entry(REGULAR, b"other", 3, b"abc"))) as mcp:
        run(mcp)
        assert mcp.call("read_file", {"session": "a", "path": "a"})["isError"] is True


@pytest.mark.parametrize("why, words", enumerate(["is a link", "is no regular file", "is larger than /workspace", "cannot be read", "has a path that is too long", "has no room in /workspace",
                                                  "cannot be written", "was changed while it was read", "cannot be had"]))
def test_each_reason_to_leave_a_file_out_has_words(why, words):
    why = why if why < 8 else 1 << 40
    with served(moved(entry(LEFT, b"a", why))) as mcp:
        run(mcp)
        assert mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "a"})) == f'path: "a" {words}'
        assert mcp_client.text_of(mcp.call("write_file", {"session": "a", "path": "a", "content": ""})) == f'path: "a" {words}'
        assert run(mcp, files=[{"path": "a", "content": ""}])["error"] == f"files: a {words}"


def test_a_program_that_replaces_the_end_of_a_picture_has_it_not_shown():
    with served(moved(entry(REGULAR, b"a", 12, b"\x89PNG\r\n\x1a\n\0\0\0\0"))) as mcp:
        run(mcp)
        result = mcp.call("read_file", {"session": "a", "path": "a"})
        assert result["content"][1]["type"] == "image"
    with served(moved(entry(REGULAR, b"a", 12, b"\x89PNG\r\n????\0\0"))) as mcp:
        run(mcp)
        assert [block["type"] for block in mcp.call("read_file", {"session": "a", "path": "a"})["content"]] == ["text"]


def test_a_call_is_cancelled_while_its_files_are_put():
    server = Sessions()
    held_open = []

    def never(connection, request):
        ours, theirs = socket.socketpair()
        held_open.append(ours)
        connection.send({"reply": "files", "session": request["session"], "tag": request["tag"]}, [theirs.fileno()])
        theirs.close()
    server.answer["files"] = never
    with served(server) as mcp:
        call = mcp.begin_call("execute_code", {"code": "1", "session": "a", "files": [{"path": "a", "content": "x"}]})
        server.wait("files")
        call.cancel()
        assert run(mcp)["success"] is True and server.ops() == ["open", "files", "run"]
        while held_open[0].recv(1 << 16):
            pass # until the socket is closed


def test_a_brigd_without_sessions_is_told_of():
    """As a service of an older release answers."""
    with served(Sessions(open=lambda connection, request: refuse(connection, request, "unknown_request", '"open" is no request', "op"))) as mcp:
        said = run(mcp)
    assert said["error"] == "session: there are none here: the brigd that serves is of an older release; leave the argument out" and said["exit_reason"] == "denied"


def test_who_waits_for_a_session_to_open_waits_for_no_other_call():
    """The time of its turn is that of other calls in the session: to open one may take longer than a call may."""
    server, held_back = Sessions(), []
    server.answer["open"] = lambda connection, request: held_back.append((connection, request)) or True
    with served(server, "--progress", "0.25") as mcp:
        call = mcp.begin_call("execute_code", {"code": "1", "session": "a", "timeout": 0.05}, token="t")
        call.wait_progress()
        server.do_open(*held_back[0])
        assert mcp_client.data_of(call.result())["success"] is True


def test_a_file_that_was_changed_while_it_was_read_is_not_shown():
    """Half of it may be older than the other."""
    with served(moved(entry(REGULAR, b"a", 3, b"abc") + entry(LEFT, b"a", 7))) as mcp:
        run(mcp)
        result = mcp.call("read_file", {"session": "a", "path": "a"})
        assert result["isError"] is True
        assert mcp_client.text_of(result) == 'path: "a" was changed while it was read; read it again when the program that writes it is done'


def test_a_sound_is_not_told_as_a_picture():
    sound = b"RIFF\x10\0\0\0WAVEfmt \0" + bytes(20)
    with served(moved(entry(REGULAR, b"a", len(sound), sound))) as mcp:
        run(mcp)
        assert mcp_client.text_of(mcp.call("read_file", {"session": "a", "path": "a"})) == f"[binary, {len(sound)} bytes, not shown: read it with execute_code]"
