#!/usr/bin/python3
"""A server of MCP on stdin and stdout that does what a test wants: well-behaved tools, and hostile ones. The standard library, none of brig's code.

    tool_server.py [--era modern|legacy|old|exits|silent|babbles|modern-listens] [--pages N] [--tools FILE] [--note FILE]

What it hears is appended to the file of --note, a line of JSON each: a test can see what reached it.
"""
import argparse
import json
import os
import pathlib
import signal
import sys
import time

MODERN = "2026-07-28"
READS = {"readOnlyHint": True}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def tool(name, about, properties=None, required=(), hints=None, **more):
    schema = {"type": "object", "properties": properties or {}, "required": list(required)}
    return {"name": name, "description": about, "inputSchema": schema, **({"annotations": hints} if hints is not None else {}), **more}


TOOLS = [
    tool("echo", "Says what it was told. Nothing else.", {"text": {"type": "string"}}, ["text"], READS),
    tool("add", "Adds two numbers.", {"a": {"type": "integer"}, "b": {"type": "integer", "default": 1}}, ["a"], READS,
         outputSchema={"type": "object", "properties": {"sum": {"type": "integer"}}}),
    tool("get-env", "Tells its environment.", {}, (), READS),
    tool("where", "Tells where it runs, and which descriptors it has.", {}, (), READS),
    tool("fail", "Fails, and says so.", {}, (), READS),
    tool("error", "Answers with an error of JSON-RPC.", {}, (), READS),
    tool("image", "Draws.", {}, (), READS),
    tool("note", "Writes something down.", {"text": {"type": "string"}}, ["text"], {"readOnlyHint": False, "destructiveHint": False}),
    tool("wipe", "Destroys something.", {"what": {"type": "string"}}, ["what"]),
    tool("drop", "Destroys something else, and says so.", {"what": {"type": "string"}}, ["what"], {"readOnlyHint": False, "destructiveHint": True}),
    tool("wait", "Answers when the file is there.", {"file": {"type": "string"}, "progress": {"type": "integer"}}, ["file"], READS),
    tool("never", "Never answers.", {}, (), READS),
    tool("twice", "Answers twice.", {}, (), READS),
    tool("others", "Answers the calls with other ids first.", {}, (), READS),
    tool("huge", "Answers with so many bytes.", {"n": {"type": "integer"}}, ["n"], READS),
    tool("values", "Answers with so many values.", {"n": {"type": "integer"}}, ["n"], READS),
    tool("deep", "Answers with lists in lists.", {"n": {"type": "integer"}}, ["n"], READS),
    tool("control", "Answers with what a terminal obeys.", {}, (), READS),
    tool("broken", "Answers with what is no JSON.", {}, (), READS),
    tool("wrong", "Answers with what is no result.", {}, (), READS),
    tool("needs-input", "Asks for input (2026-07-28).", {}, (), READS),
    tool("die", "Dies, and answers nothing.", {}, (), READS),
    tool("last-words", "Answers, and dies.", {}, (), READS),
    tool("noise", "Prints on stdout and stderr, and answers.", {"n": {"type": "integer"}}, (), READS),
    tool("change", "Becomes another set of tools.", {"tools": {"type": "array"}}, ["tools"], READS),
    tool("ask-client", "Asks the client for its roots.", {}, (), READS),
]


class Server:
    def __init__(self, given):
        self.given, self.tools, self.subscribed = given, json.loads(pathlib.Path(given.tools).read_text()) if given.tools else TOOLS, None

    def write(self, data):
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()

    def say(self, message):
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answer(self, request, result):
        if self.given.era.startswith("modern"):
            result = {"resultType": "complete", **result}
        self.say({"id": request["id"], "result": result})

    def refuse(self, request, code, words):
        self.say({"id": request["id"], "error": {"code": code, "message": words}})

    def changed(self):
        more = {"params": {"_meta": {"io.modelcontextprotocol/subscriptionId": self.subscribed}}} if self.subscribed is not None else {}
        self.say({"method": "notifications/tools/list_changed", **more})

    def serve(self):
        for line in sys.stdin:
            message = json.loads(line)
            if self.given.note:
                with open(self.given.note, "a", encoding="utf-8") as note:
                    note.write(line)
            if "method" in message and "id" in message:
                self.take(message)

    def take(self, request):
        method = request["method"]
        era = self.given.era
        if method == "server/discover":
            if era == "exits":
                sys.exit(3)
            if era == "silent":
                return None
            if era == "babbles":
                return self.say({"id": request["id"], "result": "what?"})
            if era.startswith("modern"):
                listens = {"listChanged": True} if era == "modern-listens" else {}
                return self.answer(request, {"supportedVersions": [MODERN], "capabilities": {"tools": listens}, "ttlMs": 0, "cacheScope": "private"})
        if method == "initialize" and era == "refuses":
            return self.refuse(request, -32000, f"no such user: {os.environ['TOKEN']}")
        if method == "initialize" and not era.startswith("modern"):
            version = "2024-11-05" if era == "old" else "1999-01-01" if era == "odd" else request["params"]["protocolVersion"]
            return self.answer(request, {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "t", "version": "1"}})
        if method == "subscriptions/listen" and era == "modern-listens":
            self.subscribed = request["id"]
            return None
        if method == "tools/list" and era == "lists-nothing":
            return self.say({"id": request["id"], "error": "what?"})
        if method == "tools/list":
            return self.page(request)
        if method == "tools/call":
            return self.call(request)
        return self.refuse(request, -32601, "Method not found")

    def page(self, request):
        size = -(-len(self.tools) // self.given.pages) or 1
        begin = int(request.get("params", {}).get("cursor", 0))
        more = {"nextCursor": str(begin + size)} if begin + size < len(self.tools) else {}
        self.answer(request, {"tools": self.tools[begin:begin + size], **more, **({"ttlMs": 0, "cacheScope": "private"} if self.given.era.startswith("modern") else {})})

    def call(self, request):
        name, args = request["params"]["name"], request["params"].get("arguments", {})
        doing = getattr(self, "do_" + name.replace("-", "_"), None)
        if doing is None or not any(one.get("name") == name for one in self.tools):
            return self.refuse(request, -32602, f"Unknown tool: {name}")
        return doing(request, **args)

    def do_echo(self, request, text):
        self.answer(request, {"content": [{"type": "text", "text": text}]})

    def do_add(self, request, a, b=1):
        self.answer(request, text("a text for people", structuredContent={"sum": a + b}))

    def do_get_env(self, request):
        self.answer(request, text("", structuredContent=dict(os.environ)))

    def do_where(self, request):
        fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
        self.answer(request, text("", structuredContent={"uid": os.getuid(), "cwd": os.getcwd(), "pid": os.getpid(), "session": os.getsid(0), "fds": fds,
                                                         "user": os.readlink("/proc/self/ns/user")}))

    def do_fail(self, request):
        self.answer(request, text("no \x1b[31mluck\x1b[0m today", isError=True))

    def do_error(self, request):
        self.refuse(request, -32050, "this server is closed")

    def do_image(self, request):
        self.answer(request, {"content": [{"type": "text", "text": "one dot"}, {"type": "image", "data": IMAGE, "mimeType": "image/png"},
                                          {"type": "resource", "resource": {"uri": "x://y", "mimeType": "text/csv", "text": "a,b"}},
                                          {"type": "resource_link", "uri": "x://z", "name": "z"}]})

    def do_note(self, request, text):
        self.answer(request, {"content": [{"type": "text", "text": f"noted {text}"}]})

    def do_wipe(self, request, what):
        self.answer(request, text(f"{what} is gone"))

    do_drop = do_wipe

    def do_wait(self, request, file, progress=0):
        for n in range(progress):
            self.say({"method": "notifications/progress", "params": {"progressToken": request["params"]["_meta"]["progressToken"], "progress": n, "message": "\x1b[2J"}})
        pid = os.fork() # others are served meanwhile
        if pid == 0:
            signal.alarm(120)
            while not os.path.exists(file):
                time.sleep(0.005) # of the helper: nobody tells it of a file
            self.answer(request, text("it is there"))
            os._exit(0)

    def do_never(self, request):
        pass

    def do_twice(self, request):
        self.answer(request, text("first"))
        self.answer(request, text("second"))

    def do_others(self, request):
        for other in [*range(1, request["id"]), "1", None, 1.5, -1, 10**9]:
            self.say({"id": other, "result": text("not yours")})
        self.answer(request, text("yours"))

    def do_huge(self, request, n):
        self.answer(request, text("x" * n))

    def do_values(self, request, n):
        self.answer(request, text("", structuredContent={"list": [0] * n}))

    def do_deep(self, request, n):
        self.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":%s}}}' % (request["id"], b"[" * n + b"]" * n))

    def do_control(self, request):
        self.answer(request, text("\x1b]0;title\x07\u202eevil\x00\r\n"))

    def do_broken(self, request):
        self.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}}' % request["id"])

    def do_wrong(self, request):
        self.say({"id": request["id"], "result": "a text"})

    def do_needs_input(self, request):
        self.say({"id": request["id"], "result": {"resultType": "input_required", "inputRequests": {}, "requestState": "x"}})

    def do_die(self, request):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_last_words(self, request):
        self.answer(request, text("farewell"))
        os._exit(0)

    def do_noise(self, request, n=1):
        for i in range(n):
            print(f"noise {i} {os.environ.get('SECRET', '')} \x1b[31m", file=sys.stderr, flush=True)
            self.write(b"no JSON at all")
        self.write(b'{"jsonrpc":"2.0","method":"notifications/unknown"}')
        self.answer(request, text("after the noise"))

    def do_change(self, request, tools):
        self.tools = [*TOOLS, *tools]
        self.changed()
        self.answer(request, text("changed"))

    def do_ask_client(self, request):
        self.say({"id": "q1", "method": "roots/list"})
        self.say({"id": "q2", "method": "ping"})
        answers = [json.loads(sys.stdin.readline()) for _ in range(2)]
        self.answer(request, text(json.dumps(answers)))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--era", default="legacy")
    options.add_argument("--pages", type=int, default=1)
    options.add_argument("--tools")
    options.add_argument("--note")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    Server(options.parse_args()).serve()


if __name__ == "__main__":
    main()
