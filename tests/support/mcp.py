"""A client of MCP over stdio and HTTP: the standard library, and none of brig's own code.

Every message that the server sends is validated against the official schema of its revision (mcp_schema.py); the first that is not
valid fails whoever waits, and close().

    with McpStdio("--reply", "json") as mcp:
        mcp.request("tools/list")                                   # the result, of the newest revision; Refused when it is an error
        mcp.request("tools/list", revision="2025-06-18")            # the handshake is made where it is wanted
        asked = mcp.begin("tools/call", {...}, token="t")           # does not wait
        asked.progress(), asked.result(), asked.cancel()
        mcp.execute("print(1)")                                     # the object that execute_code answers with
        mcp.send(b"{]"), mcp.stray()                                # any bytes; what came that nobody had asked for
"""
import contextlib
import http.client
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import urllib.parse

from support import brig, host, mcp_schema
from support.mcp_schema import LEGACY, MODERN, REVISIONS, Invalid # noqa: F401  for those who import this

META = "io.modelcontextprotocol/"
CLIENT = {"name": "brig-tests", "version": "1"}


def binary(name="brig-mcp"):
    return host.build_dir() / "bin" / name


def conformance():
    """A server with what the official conformance suite wants, on stdio or with --http: it is not installed (tests/mcp/conformance)."""
    return host.build_dir() / "conformance" / "mcp_conformance"


def options():
    """Every setting's, as the program that was built prints them; none where there is no such program, so that only its tests fail."""
    if not binary().exists():
        return []
    done = subprocess.run([binary(), "--print-config"], env=brig.environment({"HOME": "/"}), cwd="/", capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines()]


class Refused(Exception):
    """An error of JSON-RPC in the place of a result."""

    def __init__(self, error):
        super().__init__(json.dumps(error)[:1000])
        self.error, self.code, self.data = error, error["code"], error.get("data")


class Silent(Exception):
    """No answer came in time."""


class Gone(Exception):
    """The server has closed the connection."""


def key_of(request_id):
    """1 and "1" are two ids."""
    return json.dumps(request_id)


class Asked:
    """A request that was sent. Its answer, its progress and what else came with it."""

    def __init__(self, client, message, revision):
        self.client, self.message, self.revision = client, message, revision
        self.id, self.method = message["id"], message["method"]
        self.token = params_of(message).get("_meta", {}).get("progressToken") if isinstance(params_of(message).get("_meta"), dict) else None
        self.reply, self.notifications, self.questions = None, [], []
        self.cancelled = False
        self.status = None # of HTTP
        self.close = lambda: None # of HTTP: the client goes away

    def progress(self):
        return [said["params"] for said in self.notifications if said["method"] == "notifications/progress"]

    def wait(self, timeout=host.HANG):
        """The whole message. Silent, Gone, or Invalid when there is none."""
        self.client.until(lambda: self.reply is not None or self.status is not None, timeout, f"an answer to {self.method} {key_of(self.id)}")
        return self.reply

    def result(self, timeout=host.HANG):
        reply = self.wait(timeout)
        if reply is None:
            raise Gone(f"HTTP status {self.status} without an answer to {self.method}")
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["result"]

    def refused(self, timeout=host.HANG):
        """The error that must come."""
        reply = self.wait(timeout)
        assert reply is not None and "error" in reply, f"{self.method} was not refused: {json.dumps(reply)[:1000]}"
        return reply["error"]

    def wait_progress(self, count=1, timeout=host.HANG):
        self.client.until(lambda: len(self.progress()) >= count or self.reply is not None, timeout, f"progress {count} of {self.method}")
        return self.progress()

    def wait_question(self, count=1, timeout=host.HANG):
        self.client.until(lambda: len(self.questions) >= count or self.reply is not None, timeout, f"question {count} of {self.method}")
        return self.questions[count - 1]

    def cancel(self, reason="the test does not want it any more"):
        self.cancelled = True
        self.client.notify("notifications/cancelled", {"requestId": self.id, "reason": reason}, revision=self.revision)


def params_of(message):
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def revision_of(message, legacy):
    """The revision in which a message asks to be answered."""
    meta = params_of(message).get("_meta")
    said = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    if said is not None or message.get("method") == "server/discover":
        return MODERN # one that nobody knows is answered in the newest form
    return legacy or LEGACY[-1]


class Client:
    """What both ways have in common."""

    def __init__(self, revision):
        self.revision = revision # of requests that name none
        self.legacy = None       # what initialize agreed on
        self.ids = itertools.count(1)
        self.changed = threading.Condition()
        self.broken = None       # the first message that was not valid
        self.ended = False
        self.asked = {}          # {key of id: [Asked]} that have no answer
        self.strays, self.notifications, self.tools = [], [], {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.close() if kind is None else self.abandon()

    # --- asking ---

    def envelope(self, params, revision, meta=None, token=None, capabilities=None):
        """The params as the revision wants them; None where a legacy request has none."""
        own = dict(params or {})
        said = {**({"progressToken": token} if token is not None else {}), **(meta or {}), **own.pop("_meta", {})}
        if revision == MODERN:
            said = {META + "protocolVersion": MODERN, META + "clientInfo": CLIENT, META + "clientCapabilities": capabilities or {}, **said}
        if said:
            own["_meta"] = said
        return own if own or params is not None else None

    def begin(self, method, params=None, *, revision=None, id=None, token=None, meta=None, capabilities=None):
        """Sends a request and does not wait."""
        revision = revision or self.revision
        if revision != MODERN and method != "initialize" and self.legacy != revision:
            self.initialize(revision, capabilities)
        message = {"jsonrpc": "2.0", "id": next(self.ids) if id is None else id, "method": method}
        body = self.envelope(params, revision, meta, token, capabilities)
        if body is not None:
            message["params"] = body
        return self.ask(message, revision)

    def request(self, method, params=None, *, timeout=host.HANG, **kw):
        """The result; Refused when it is an error."""
        return self.begin(method, params, **kw).result(timeout)

    def notify(self, method, params=None, *, revision=None):
        revision = revision or self.revision
        message = {"jsonrpc": "2.0", "method": method}
        body = self.envelope(params, revision) if revision == MODERN else params
        self.send({**message, "params": body} if body is not None else message)

    def initialize(self, revision=LEGACY[-1], capabilities=None, timeout=host.HANG):
        """The handshake of the legacy eras; what initialize said."""
        params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": CLIENT}
        said = self.begin("initialize", params, revision=revision if revision in LEGACY else LEGACY[-1]).result(timeout)
        self.legacy = said["protocolVersion"]
        self.notify("notifications/initialized", revision=self.legacy)
        return said

    def answer(self, question, result):
        """To a request of the server (legacy)."""
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    # --- tools ---

    def list_tools(self, **kw):
        return {tool["name"]: tool for tool in self.request("tools/list", **kw)["tools"]}

    def begin_call(self, tool, arguments=None, **kw):
        params = {"name": tool} if arguments is None else {"name": tool, "arguments": arguments}
        return self.begin("tools/call", params, **kw)

    def call(self, tool, arguments=None, *, timeout=host.HANG, **kw):
        """The result of tools/call."""
        return self.begin_call(tool, arguments, **kw).result(timeout)

    def data(self, tool, arguments=None, **kw):
        """The object in the text of a tool's result."""
        return data_of(self.call(tool, arguments, **kw))

    def execute(self, code, /, *, timeout_s=None, revision=None, wait=host.HANG, **arguments):
        """execute_code with format json: its object, all of it."""
        if timeout_s is not None:
            arguments["timeout"] = timeout_s
        return self.data("execute_code", {"code": code, "detail": True, **arguments}, revision=revision, timeout=wait)

    # --- what comes ---

    def took(self, data, revision=None, only=None):
        """One message of the server. revision, only: of HTTP, where each request has an answer of its own."""
        try:
            message = mcp_schema.parse(data)
            for one in message if isinstance(message, list) else [message]:
                if not isinstance(one, dict) or one.get("jsonrpc") != "2.0":
                    raise Invalid(f"no message of JSON-RPC: {data[:300]!r}")
                self.sort(one, revision, only)
        except Exception as e: # pylint: disable=broad-except
            with self.changed:
                self.broken = self.broken or e
                self.changed.notify_all()

    def sort(self, message, revision, only):
        if "method" in message:
            return self.sort_method(message, revision, only)
        with self.changed:
            waiting = self.asked.get(key_of(message["id"]), []) if "id" in message else []
        # Of two with one id the server refuses the second.
        asked = only or (waiting[-1 if message.get("error", {}).get("code") == -32600 else 0] if waiting else None)
        if asked is None:
            spoken = MODERN if isinstance(message.get("result"), dict) and "resultType" in message["result"] else self.legacy or LEGACY[-1]
            mcp_schema.check_response(message, revision or spoken, None)
            with self.changed:
                self.strays.append(message)
                self.changed.notify_all()
            return None
        if only and "id" in message and key_of(message["id"]) != key_of(only.id):
            raise Invalid(f"the answer to {key_of(only.id)} has the id {key_of(message['id'])}")
        mcp_schema.check_response(message, asked.revision, asked.method)
        if "result" in message:
            self.check_promises(message["result"], asked)
        with self.changed:
            asked.reply = message
            if asked in waiting:
                waiting.remove(asked)
            self.changed.notify_all()
        return None

    def check_promises(self, result, asked):
        if asked.method == "tools/list":
            mcp_schema.check_tools(result["tools"])
            self.tools[asked.revision] = {tool["name"]: tool for tool in result["tools"]}
        elif asked.method == "tools/call":
            name = params_of(asked.message).get("name")
            mcp_schema.check_structured(result, self.tools.get(asked.revision, {}).get(name if isinstance(name, str) else None))

    def sort_method(self, message, revision, only):
        params = params_of(message)
        token = params.get("progressToken")
        with self.changed:
            everybody = [asked for row in self.asked.values() for asked in row]
        about = only if only else None
        if message["method"] == "notifications/progress":
            about = next((asked for asked in everybody + ([only] if only else []) if asked.token is not None and key_of(asked.token) == key_of(token)), None)
            if about is None:
                raise Invalid(f"progress for {token!r}, which nobody waits for")
            before = about.progress()
            if before and params.get("progress") <= before[-1]["progress"]:
                raise Invalid(f"progress went from {before[-1]} to {params}")
        subscription = params.get("_meta", {}).get(META + "subscriptionId") if isinstance(params.get("_meta"), dict) else None
        if subscription is not None:
            about = next((asked for asked in everybody if key_of(asked.id) == key_of(subscription)), about)
        spoken = about.revision if about else revision or self.legacy or MODERN
        if "id" in message:
            about = about or next((asked for asked in reversed(everybody) if asked.revision != MODERN), None)
            mcp_schema.check_question(message, about.revision if about else spoken)
        else:
            mcp_schema.check_notification(message, spoken)
        with self.changed:
            self.notifications.append(message)
            if about:
                (about.questions if "id" in message else about.notifications).append(message)
            self.changed.notify_all()

    def until(self, there, timeout, what):
        end = time.monotonic() + timeout
        with self.changed:
            while True:
                self.check()
                if there():
                    return
                if self.ended:
                    raise Gone(f"the server has gone without {what}\n{self.words()}")
                left = end - time.monotonic()
                if left <= 0:
                    raise Silent(f"no {what} after {timeout:g} s\n{self.words()}")
                self.changed.wait(left)

    def check(self):
        if self.broken:
            raise self.broken

    def stray(self, timeout=host.HANG):
        """The next message that answers nothing of begin(): to raw bytes, or with an id that nobody has."""
        self.until(lambda: self.strays, timeout, "message")
        with self.changed:
            return self.strays.pop(0)

    def words(self):
        return ""

    def enter(self, message, revision):
        asked = Asked(self, message, revision)
        with self.changed:
            self.asked.setdefault(key_of(asked.id), []).append(asked)
        return asked


class McpStdio(Client):
    """A server of our own, spoken to through its standard input and output."""

    def __init__(self, *args, program=None, env=None, cwd=None, revision=MODERN, stderr=None, popen=None):
        super().__init__(revision)
        self.argv = [str(word) for word in [program or binary(), *args]]
        self.stderr, self.writing = bytearray(), threading.Lock()
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr or subprocess.PIPE, cwd=cwd,
                                        env=brig.environment(env), **(popen or {}))
        self.pid, self.status = self.process.pid, None
        self.threads = [threading.Thread(target=self.read, daemon=True)]
        if stderr is None:
            self.threads.append(threading.Thread(target=self.read_stderr, daemon=True))
        for thread in self.threads:
            thread.start()

    # --- sending ---

    def ask(self, message, revision):
        asked = self.enter(message, revision)
        self.write(json.dumps(message).encode() + b"\n")
        return asked

    def send(self, message):
        """Bytes as they are, or an object as one line. An object that is a request can be waited for."""
        if isinstance(message, bytes):
            return self.write(message)
        if isinstance(message, dict) and "method" in message and "id" in message:
            return self.ask(message, revision_of(message, self.legacy))
        return self.write(json.dumps(message).encode() + b"\n")

    def write(self, data):
        with self.writing:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except BrokenPipeError as e:
                raise Gone(f"the server does not read any more\n{self.words()}") from e

    # --- reading ---

    def read(self):
        rest, fd = bytearray(), self.process.stdout.fileno()
        for data in iter(lambda: os.read(fd, 1 << 20), b""):
            rest += data
            if b"\n" in data:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self.took(bytes(line))
        with self.changed:
            if rest:
                self.broken = self.broken or Invalid(f"it ended inside of a line: {bytes(rest[:300])!r}")
            self.ended = True
            self.changed.notify_all()

    def read_stderr(self):
        for data in iter(lambda: os.read(self.process.stderr.fileno(), 65536), b""):
            self.stderr += data

    def words(self):
        return self.stderr.decode(errors="replace")[-3000:]

    # --- ending ---

    def end_input(self):
        with self.writing, contextlib.suppress(OSError):
            self.process.stdin.close()

    def wait(self, timeout=host.HANG):
        """Its status; Silent when it does not end."""
        try:
            self.status = self.process.wait(timeout)
        except subprocess.TimeoutExpired as e:
            raise Silent(f"brig-mcp is still there after {timeout:g} s\n{self.words()}") from e
        for thread in self.threads:
            thread.join(host.HANG)
        return self.status

    def close(self, timeout=host.HANG):
        """End of input, as a client goes: waits, and returns the status. Raises when any message was not valid."""
        self.end_input()
        try:
            self.wait(timeout)
        finally:
            self.abandon()
        self.check()
        return self.status

    def kill(self, number=signal.SIGKILL):
        """The server dies."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def abandon(self):
        """Ends it in any case."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.end_input()
        for thread in self.threads:
            thread.join(host.HANG)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()


class McpHttp(Client):
    """A server at an URL. Each request has a connection of its own, so that closing it says: gone."""

    def __init__(self, url, headers=None, revision=MODERN):
        super().__init__(revision)
        self.url = urllib.parse.urlsplit(url)
        self.headers = dict(headers or {})
        self.session = None
        self.threads = []

    def connection(self, timeout=host.HANG):
        return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=timeout)

    def own_headers(self, message, revision):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self.headers}
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        if revision == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message.get("method", "")}
            name = params_of(message).get("name", params_of(message).get("uri"))
            if message.get("method") in ("tools/call", "prompts/get", "resources/read") and isinstance(name, str):
                headers["Mcp-Name"] = name
        elif message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = revision
        return headers

    def raw(self, body=b"", headers=None, method="POST", path=None, own=False, timeout=host.HANG):
        """Any request: (status, headers, body). own: with the headers of this client."""
        connection = self.connection(timeout)
        try:
            given = {**(self.headers if own else {}), **(headers or {})}
            connection.request(method, path or self.url.path, body if isinstance(body, bytes) else json.dumps(body).encode(), given)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def ask(self, message, revision):
        asked = self.enter(message, revision)
        connection = self.connection()
        opened = queue.Queue()
        thread = threading.Thread(target=self.post, args=(connection, message, revision, asked, opened), daemon=True)
        self.threads.append(thread)
        thread.start()
        opened.get(timeout=host.HANG)

        def gone():
            asked.cancelled = True
            with contextlib.suppress(OSError):
                connection.sock and connection.sock.shutdown(2) # the thread that reads closes it
        asked.close = gone
        return asked

    def send(self, message):
        """A notification, a response, or a request that can be waited for."""
        if isinstance(message, dict) and "method" in message and "id" in message:
            return self.ask(message, revision_of(message, self.legacy))
        revision = revision_of(message, self.legacy) if self.legacy else MODERN
        status, _, body = self.raw(message, self.own_headers(message, revision))
        if status != 202 or body:
            raise Invalid(f"{message.get('method', 'a response')} was answered with {status} {body[:300]!r}")
        return None

    def post(self, connection, message, revision, asked, opened):
        try:
            try:
                connection.request("POST", self.url.path, json.dumps(message).encode(), self.own_headers(message, revision))
            finally:
                opened.put(None)
            reply = connection.getresponse()
            if reply.headers.get("Mcp-Session-Id") and message["method"] == "initialize":
                self.session = reply.headers["Mcp-Session-Id"]
            self.read(reply, asked)
            with self.changed:
                asked.status = reply.status
                self.changed.notify_all()
        except Exception as e: # pylint: disable=broad-except
            with self.changed:
                asked.status = asked.status or 0
                if not asked.cancelled:
                    self.broken = self.broken or (e if isinstance(e, AssertionError) else Gone(f"{asked.method}: {e!r}"))
                self.changed.notify_all()
        finally:
            connection.close()

    def read(self, reply, asked):
        kind = (reply.headers.get("Content-Type") or "").partition(";")[0].strip()
        if kind == "application/json":
            body = reply.read()
            if reply.status in (401, 403, 405, 413, 429, 503) and b'"jsonrpc"' not in body:
                return
            self.took(body, asked.revision, asked)
        elif kind == "text/event-stream":
            data = []
            for line in reply:
                line = line.rstrip(b"\r\n")
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    text, data = b"\n".join(data), []
                    if text: # an event without data primes a stream
                        self.took(text, asked.revision, asked)
                elif line and not line.startswith((b":", b"id:", b"event:", b"retry:")):
                    raise Invalid(f"no line of an event stream: {line[:200]!r}")

    def close(self):
        for thread in self.threads:
            thread.join(host.HANG)
        self.check()

    def abandon(self):
        pass


def text_of(result):
    """The text blocks of a result of tools/call."""
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def data_of(result):
    """The object that a result of tools/call has as its text."""
    blocks = [block["text"] for block in result["content"] if block["type"] == "text"]
    assert blocks, f"no text: {json.dumps(result)[:500]}"
    data = mcp_schema.parse(blocks[0].encode())
    if "structuredContent" in result:
        assert result["structuredContent"] == data, "text and structuredContent say two things"
    return data


class HttpServer:
    """`brig-mcp --http` at a port of its own; ready when the constructor returns."""

    TOKEN = "a-token-of-the-tests-with-more-than-32-characters"

    def __init__(self, *args, env=None, token=TOKEN, cwd=None, program=None):
        self.token = token
        self.argv = [str(word) for word in [program or binary(), "--http", "--port", "0", "--drain", "0", *([] if token else ["--insecure-loopback"]), *args]]
        own = {"SANDBOX_API_TOKEN": token} if token else {}
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd,
                                        env=brig.environment({**own, **(env or {})}))
        self.pid, self.stderr, self.changed = self.process.pid, bytearray(), threading.Condition()
        self.thread = threading.Thread(target=self.read_stderr, daemon=True)
        self.thread.start()
        try:
            self.url = self.wait_url()
        except BaseException:
            self.close()
            raise

    def read_stderr(self):
        for data in iter(lambda: os.read(self.process.stderr.fileno(), 65536), b""):
            with self.changed:
                self.stderr += data
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_url(self):
        """The address is told on stderr."""
        end = time.monotonic() + host.HANG
        with self.changed:
            while True:
                said = re.search(rb"http://[\w.\[\]:]+:[1-9]\d*/mcp", self.stderr)
                if said:
                    return said[0].decode()
                if not self.thread.is_alive() or time.monotonic() > end:
                    raise Gone(f"no address of an HTTP server\n{self.words()}")
                self.changed.wait(0.1)

    def words(self):
        return self.stderr.decode(errors="replace")[-3000:]

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def client(self, revision=MODERN, headers=None):
        return McpHttp(self.url, {**self.headers(), **(headers or {})}, revision)

    def stop(self, number=signal.SIGTERM, timeout=host.HANG):
        """Its status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout)

    def close(self):
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.thread.join(host.HANG)
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
