r"""Conversations with brig-mcp as files: what a client says on stdin, and what it must hear on stdout.

The first line is a sentence, the name of the test. After it, line by line:

    > {...}             says that; in it "$modern" is the _meta of a modern request, "$old" the same with a revision that nobody knows
    >= b"..."           says these bytes, a Python expression; no newline is added
    < {...}             the next message must look like this (patterns: tests/service/talk.py)
    |                   the client's end of input; <| the server ends, with status 0, and has said nothing more
    args --a --b        options of the server
    # ...               nothing

Whatever the server says is validated against the schema of its revision as well.
"""
import pathlib
import re
import sys

from support import host, mcp

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "service")) # the patterns are those of the service
import talk # noqa: E402  pylint: disable=wrong-import-position

META = mcp.META
NAMES = {
    "$modern": {META + "protocolVersion": mcp.MODERN, META + "clientCapabilities": {}},
    "$old": {META + "protocolVersion": "2030-01-01", META + "clientCapabilities": {}},
}
LINE = re.compile(r"(?P<verb>>=|>|<\||\||<)(?:\s(?P<rest>.*))?$")


class Script:
    """One file."""

    def __init__(self, path):
        lines = path.read_text().replace("\\\n", "").splitlines()
        self.name, self.path, self.args, self.steps = lines[0].strip(), path, [], []
        if not re.match(r"[a-z].*[^.:]$", self.name):
            raise talk.Bad(f"{path.name}: the first line is no sentence: {self.name}")
        for number, line in enumerate(lines[1:], 2):
            found = LINE.match(line)
            if line.startswith("args "):
                self.args = line.split()[1:]
            elif found:
                self.steps.append((number, line, found["verb"], found["rest"] or ""))
            elif line.strip() and not line.startswith("#"):
                raise talk.Bad(f"{path.name}:{number}: {line}")
        if not any(verb.startswith("<") for _, _, verb, _ in self.steps):
            raise talk.Bad(f"{path.name}: nothing is expected")


class InOrder(mcp.McpStdio):
    """A client that remembers what came, in its order."""

    def __init__(self, *args, **kw):
        self.heard = []
        super().__init__(*args, **kw)

    def took(self, data, revision=None, only=None):
        super().took(data, revision, only)
        with self.changed:
            self.heard.append(mcp.mcp_schema.parse(data))
            self.changed.notify_all()

    def sort(self, message, revision, only):
        if self.legacy is None and "protocolVersion" in message.get("result", {}):
            self.legacy = message["result"]["protocolVersion"]
        return super().sort(message, revision, only)

    def next(self):
        self.until(lambda: self.heard, host.HANG, "message")
        with self.changed:
            return self.heard.pop(0)


class Talk:
    """A script that is played with a server of its own."""

    def __init__(self, script):
        self.script, self.names = script, dict(NAMES)

    def play(self, **kw):
        client = InOrder(*self.script.args, **kw)
        try:
            for number, line, verb, rest in self.script.steps:
                try:
                    VERBS[verb](self, client, rest)
                except (talk.Otherwise, mcp.Silent, mcp.Gone, mcp.Invalid) as e:
                    raise talk.Otherwise(f"{self.script.path.name}:{number}: {line}\n  {e}") from None
            if client.heard:
                raise talk.Otherwise(f"{self.script.path.name}: it said more: {client.heard}")
            if client.status is None:
                client.close()
        finally:
            client.abandon()

    def says(self, client, rest):
        message = talk.fill(talk.read_json(rest), self.names)
        if message.get("method") == "initialize" if isinstance(message, dict) else False:
            client.legacy = None
        client.send(message)

    def says_bytes(self, client, rest):
        client.send(eval(rest, {})) # of a file of ours

    def hears(self, client, rest):
        said = client.next()
        why = talk.differs(talk.read_json(rest), said, self.names)
        if why:
            raise talk.Otherwise(f"it said {said}\n  {why}")

    def closes(self, client, _):
        client.end_input()

    def hears_the_end(self, client, _):
        status = client.wait()
        client.check()
        if status:
            raise talk.Otherwise(f"it ended with status {status}")


VERBS = {">": Talk.says, ">=": Talk.says_bytes, "<": Talk.hears, "|": Talk.closes, "<|": Talk.hears_the_end}
