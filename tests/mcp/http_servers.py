"""Servers of MCP at an address, in threads of the test: they do what a test wants, and remember what they heard."""
import http.server
import json
import threading

from support import host

MODERN = "2026-07-28"
TOOLS = [{"name": "echo", "description": "Says it.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}, "annotations": {"readOnlyHint": True}},
         {"name": "hang", "description": "Never answers.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
         {"name": "mirror", "description": "Wants a header.", "annotations": {"readOnlyHint": True},
          "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer", "x-mcp-header": "N"}}}}]


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def json(self, message, status=200, **headers):
        self.body(json.dumps(message).encode(), status, **headers)

    def body(self, data, status=200, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def events(self, *messages, end=True):
        """A stream; end: it is closed behind them."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for one in messages:
            data = one if isinstance(one, bytes) else b"data: " + json.dumps(one).encode() + b"\n\n"
            self.wfile.write(data)
            self.wfile.flush()
        self.close_connection = end

    def do_POST(self):
        server = self.server
        length = int(self.headers.get("Content-Length", 0))
        message = json.loads(self.rfile.read(length))
        server.heard.append((dict((name.lower(), value) for name, value in self.headers.items()), message))
        server.take(self, message)

    def do_GET(self):
        self.server.heard.append((dict((name.lower(), value) for name, value in self.headers.items()), "GET"))
        self.server.listen_for(self)

    def do_DELETE(self):
        self.server.heard.append((dict((name.lower(), value) for name, value in self.headers.items()), "DELETE"))
        self.body(b"", 200)


class Server(http.server.ThreadingHTTPServer):
    """era: modern or legacy; how: json or events; odd: {method: function(handler, message)} in place of the honest answer."""
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, era="legacy", how="json", odd=None, session="s-123", path="/mcp", ssl=None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.era, self.how, self.odd, self.session, self.heard, self.gone = era, how, dict(odd or {}), session, [], threading.Event()
        self.streams, self.more = [], []
        self.url = f"http://127.0.0.1:{self.server_port}{path}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gone.set()
        self.shutdown()
        self.server_close()

    def entry(self, **more):
        return {"type": "http", "url": self.url, **more}

    def methods(self):
        return [message if isinstance(message, str) else message.get("method", "response") for _, message in self.heard]

    def headers_of(self, method):
        return next(headers for headers, message in self.heard if message == method or (isinstance(message, dict) and message.get("method") == method))

    def listen_for(self, handler):
        if self.how == "json":
            return handler.body(b"", 405)
        handler.events(end=False)
        self.streams.append(handler)
        self.gone.wait(host.HANG)
        handler.close_connection = True
        return None

    def say(self, message):
        """On the stream that the client has opened."""
        for handler in self.streams:
            handler.wfile.write(b"event: message\nid: 7\ndata: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")
            handler.wfile.flush()

    def take(self, handler, message):
        method = message.get("method")
        if method in self.odd:
            return self.odd[method](handler, message)
        if "id" not in message or method is None:
            return handler.body(b"", 202)
        result = self.result_of(method, message, handler)
        if result is None:
            return None
        return self.answer(handler, message, result)

    def answer(self, handler, message, result):
        if self.era == "modern":
            result = {"resultType": "complete", **result}
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        if message["method"] == "initialize" and self.session:
            return handler.json(reply, Mcp_Session_Id=self.session)
        if self.how == "events":
            progress = message.get("params", {}).get("_meta", {}).get("progressToken")
            first = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": progress, "progress": 1}}] if progress else []
            return handler.events(b": hello\n\n", b"id: 1\ndata:\n\n", *first, reply)
        return handler.json(reply)

    def result_of(self, method, message, handler):
        if method == "server/discover" and self.era == "modern":
            return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
        if method == "initialize" and self.era == "legacy":
            return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}}
        if method == "tools/list":
            return {"tools": TOOLS + self.more, "ttlMs": 0, "cacheScope": "private"}
        if method == "tools/call":
            name = message["params"]["name"]
            if name == "hang":
                handler.rfile.read(1) # until the client is gone
                self.gone.set()
                handler.close_connection = True
                return None
            return {"content": [{"type": "text", "text": message["params"]["arguments"].get("text", "")}]}
        handler.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: no session"}}, 400)
        return None
