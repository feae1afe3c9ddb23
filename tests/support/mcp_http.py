"""A running brig-mcp --http, and requests written byte by byte."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.parse

from support import host
from support import mcp, mcp_schema

TOKEN = "0123456789abcdef0123456789abcdef-a-token-of-the-tests"


class Serving:
    """A process that serves over HTTP: made once it has written its address to standard error."""

    def __init__(self, process):
        self.process, self.said = process, b""
        for line in process.stderr:
            self.said += line
            if found := re.search(rb"serving ((?:http:/)?/\S+)", line):
                break
        else:
            raise AssertionError(f"it does not serve: {self.said.decode()}")
        self.address = found[1].decode()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with self.process.stderr as pipe:
            for line in pipe:
                self.said += line

    @property
    def pid(self):
        return self.process.pid

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(timeout=host.HANG)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise


class HttpServer(Serving):
    """brig-mcp at a port of its own."""

    def __init__(self, *args, token=None, env=None, cwd="/", program=None):
        given = {key: value for key, value in os.environ.items() if not key.startswith(("BRIG_MCP_", "SANDBOX_"))} | (env or {})
        if token:
            given["SANDBOX_API_TOKEN"] = token
        self.token = token
        super().__init__(subprocess.Popen([program or mcp.binary(), "--http", "--port", "0", *([] if token else ["--insecure-loopback"]), *args], env=given, cwd=cwd,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        self.url = self.address
        self.port = urllib.parse.urlsplit(self.url).port
        self.host = urllib.parse.urlsplit(self.url).hostname

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def client(self, **kw):
        return mcp.McpHttp(self.url, headers=self.headers, **kw)

    def connect(self, timeout=host.HANG):
        return Raw(socket.create_connection((self.host, self.port), timeout=timeout))

    def say(self, data):
        """One connection, these bytes: (status, headers, body) of what comes back."""
        with self.connect() as raw:
            raw.send(data)
            status, headers, body = raw.reply()
        check(data, headers, body)
        return status, headers, body


def samples(server):
    """The figures of /metrics, by name and labels."""
    _, headers, text = server.client().raw(method="GET", path="/metrics", own=True)
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for line in text.decode().splitlines():
        if line.startswith("#"):
            assert line.split()[1] in ("HELP", "TYPE"), line
            continue
        name, _, value = line.rpartition(" ")
        found[name] = float(value)
    return found


def revision_of(head, message):
    meta = mcp.params_of(message).get("_meta")
    found = re.search(rb"(?im)^mcp-protocol-version:[ \t]*(\S+)", head)
    said = meta.get("io.modelcontextprotocol/protocolVersion") if isinstance(meta, dict) else None
    said = said or (found[1].decode() if found else "2025-03-26")
    return said if said in mcp_schema.REVISIONS else mcp.MODERN


def check(request, headers, body):
    """Whatever is a message in the answer must be one of the revision in which was asked."""
    if b'"jsonrpc"' not in body:
        return
    head, _, asked = request.partition(b"\r\n\r\n")
    try:
        asked = json.loads(asked)
    except (ValueError, RecursionError):
        asked = {}
    asked = asked if isinstance(asked, list) else [asked]
    known = {one["id"]: one for one in asked if isinstance(one, dict) and isinstance(one.get("id"), (str, int))}
    if headers.get("content-type") == "text/event-stream":
        messages = [mcp_schema.parse(line.removeprefix(b"data: ")) for line in body.splitlines() if line.startswith(b"data: ")]
    else:
        messages = mcp_schema.parse(body)
    for message in messages if isinstance(messages, list) else [messages]:
        asker = known.get(message.get("id"), {})
        revision = revision_of(head, asker)
        if "method" in message:
            mcp_schema.check_notification(message, revision)
            continue
        agreed = message.get("result", {}).get("protocolVersion")
        mcp_schema.check_response(message, agreed if agreed in mcp_schema.REVISIONS else revision, asker.get("method"))


class Raw:
    """A connection on which the test writes what it likes."""

    def __init__(self, sock):
        self.sock = sock
        self.file = sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def head(self):
        """(status, headers); (None, {}) when the connection has ended."""
        try:
            first = self.file.readline()
        except ConnectionResetError:
            return None, {}
        if not first:
            return None, {}
        headers = {}
        while (line := self.file.readline().strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    def chunk(self):
        size = int(self.file.readline() or b"0", 16)
        data = self.file.read(size)
        self.file.readline()
        return data

    def reply(self):
        status, headers = self.head()
        if "chunked" in headers.get("transfer-encoding", ""):
            body = b""
            while (part := self.chunk()):
                body += part
            return status, headers, body
        return status, headers, self.file.read(int(headers.get("content-length", 0)))


def post(body, headers=None, path="/mcp", host="127.0.0.1", length=True):
    """The bytes of a POST. A header whose value is None is left out; a list is sent several times."""
    body = body if isinstance(body, bytes) else mcp.json.dumps(body).encode()
    given = {"Host": host, "Content-Type": "application/json", **({"Content-Length": str(len(body))} if length else {}), **(headers or {})}
    lines = [f"{name}: {one}" for name, value in given.items() if value is not None for one in (value if isinstance(value, list) else [value])]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode("utf-8") + body


def modern(method, params=None, id=1, meta=None, **headers):
    """(message, headers) of the newest revision; headers named with _ for -; None leaves one out."""
    params = dict(params or {})
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": mcp.MODERN, "io.modelcontextprotocol/clientCapabilities": {}, **(meta or {})}
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if id is None else {"id": id})
    given = {"MCP-Protocol-Version": mcp.MODERN, "Mcp-Method": method}
    if isinstance(params.get("name", params.get("uri")), str):
        given["Mcp-Name"] = params.get("name", params.get("uri"))
    return message, given | {name.replace("_", "-"): value for name, value in headers.items()}
