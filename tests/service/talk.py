r"""Conversations as files: what a client says, and what it must hear.

The first line is a sentence, the name of the test. After it, line by line:

    > {"op":...}        says that on the connection; 2> on another one, called 2
    >= b"..."           says these bytes, a Python expression
    +code TEXT          a sealed memfd goes with the line above; \n is a new line
    +dir PATH           a directory goes with it
    +fd KIND            one of hostile.KINDS, "self": the connection's own socket, or "*253 KIND": as many
    < {...}             the next datagram must look like this
    <stdout TEXT        the stream (or stderr, result) of the run that started last says so and ends; <stdout $a TEXT: of the run $a
    <line TEXT          the next line of its stdout
    >stdin TEXT         writes that to its stdin; >stdin| closes it
    |                   closes the connection; <| the daemon does
    config {...}        of the daemon that is talked to, before the first word; without it one for all
    only service        or private: the other way to reach a server is not tried
    # ...               nothing

In a pattern "*" is anything, "uuid", "number", "count", "text" and "bool" are what they say, "~RE" a text that has it, a key or element ... allows
more, and "$name" stands for what it stood for before, or, the first time, for what is there. A line may go on in the next after a backslash.
"""
import json
import os
import re

import hostile
from support import client

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
KINDS = {
    "*": lambda value: True,
    "uuid": lambda value: isinstance(value, str) and UUID.fullmatch(value),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0,
    "count": lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
    "text": lambda value: isinstance(value, str) and value,
    "bool": lambda value: isinstance(value, bool),
}
MORE = "..."


class Bad(Exception):
    """The file makes no sense."""


class Otherwise(AssertionError):
    """The daemon said something else."""


def differs(pattern, value, names, where=""):
    """None when it fits, else what does not."""
    if isinstance(pattern, str):
        return text_differs(pattern, value, names, where)
    if isinstance(pattern, dict):
        return object_differs(pattern, value, names, where)
    if isinstance(pattern, list):
        return list_differs(pattern, value, names, where)
    return None if type(pattern) is type(value) and pattern == value else f"{where or 'it'} is {value!r}, not {pattern!r}"


def text_differs(pattern, value, names, where):
    if pattern in KINDS:
        fits = KINDS[pattern](value)
    elif pattern.startswith("~"):
        fits = isinstance(value, str) and re.search(pattern[1:], value)
    elif pattern.startswith("$"):
        fits = names.setdefault(pattern, value) == value
    else:
        fits = pattern == value
    return None if fits else f"{where or 'it'} is {value!r}, not {pattern!r}"


def object_differs(pattern, value, names, where):
    if not isinstance(value, dict):
        return f"{where or 'it'} is {value!r}, no object"
    wanted = {key: part for key, part in pattern.items() if key != MORE}
    lacking, more = wanted.keys() - value.keys(), value.keys() - wanted.keys()
    if lacking or (more and MORE not in pattern):
        return f"{where or 'it'} lacks {sorted(lacking)}, has beside it {sorted(more)}"
    return next(filter(None, (differs(part, value[key], names, f"{where}.{key}".lstrip(".")) for key, part in wanted.items())), None)


def list_differs(pattern, value, names, where):
    if not isinstance(value, list):
        return f"{where or 'it'} is {value!r}, no list"
    if MORE in pattern:
        missing = [part for part in pattern if part != MORE and all(differs(part, one, dict(names)) for one in value)]
        return f"{where or 'it'} lacks {missing}: {value!r}" if missing else None
    if len(pattern) != len(value):
        return f"{where or 'it'} has {len(value)} elements, not {len(pattern)}: {value!r}"
    return next(filter(None, (differs(part, one, names, f"{where}[{n}]") for n, (part, one) in enumerate(zip(pattern, value)))), None)


def read_json(text):
    """With ... for more of whatever it stands in."""
    text = re.sub(r'(?<=[{\[,\s])\.\.\.(?=\s*[}\]])', '"..."', text)
    text = re.sub(r'"\.\.\."(?=\s*\})', '"...":0', text)
    try:
        return json.loads(text)
    except ValueError as e:
        raise Bad(f"no JSON: {text}: {e}") from None


def fill(message, names):
    """A message with the names in it replaced by what they stand for."""
    if isinstance(message, dict):
        return {key: fill(part, names) for key, part in message.items()}
    if isinstance(message, list):
        return [fill(part, names) for part in message]
    if isinstance(message, str) and message.startswith("$"):
        return names[message]
    return message


def unescape(text):
    return text.encode().decode("unicode_escape").encode("latin-1").decode()


LINE = re.compile(r"(?P<who>\w+)?(?P<verb>>stdin\||>stdin|>=|>|<stdout|<stderr|<result|<line|<\||<|\|)(?:\s(?P<rest>.*))?$")
PLUS = re.compile(r"\+(?P<kind>code|dir|fd)(?:\s(?P<rest>.*))?$")


class Script:
    """One file: its name, its settings and its steps."""

    def __init__(self, path):
        lines = path.read_text().replace("\\\n", "").splitlines()
        self.name, self.path, self.config, self.ways, self.steps = lines[0].strip(), path, None, ["service", "private"], []
        if not re.match(r"[a-z].*[^.:]$", self.name):
            raise Bad(f"{path.name}: the first line is no sentence: {self.name}")
        for number, line in enumerate(lines[1:], 2):
            if line.strip() and not line.startswith("#"):
                self.add(number, line.rstrip("\n"))
        if not any(step["verb"].startswith("<") for step in self.steps):
            raise Bad(f"{path.name}: nothing is expected")
        if len({step["who"] for step in self.steps}) > 1 or self.config is not None:
            self.ways = [way for way in self.ways if way == "service"]

    def add(self, number, line):
        word, _, rest = line.partition(" ")
        if word == "config":
            self.config = read_json(rest)
        elif word == "only":
            self.ways = [rest.strip()]
        elif line.startswith("+"):
            self.add_descriptor(number, line)
        else:
            found = LINE.match(line)
            if not found:
                raise Bad(f"{self.path.name}:{number}: {line}")
            self.steps.append({"number": number, "line": line, "who": found["who"] or "", "verb": found["verb"], "rest": found["rest"] or "", "beside": []})

    def add_descriptor(self, number, line):
        found = PLUS.match(line)
        if not found or not self.steps or self.steps[-1]["verb"] not in (">", ">="):
            raise Bad(f"{self.path.name}:{number}: {line}")
        self.steps[-1]["beside"].append((found["kind"], found["rest"] or ""))


class Talk:
    """A script that is played. connect() makes a connection."""

    def __init__(self, script, connect):
        self.script, self.connect = script, connect
        self.open, self.names, self.runs, self.last = {}, {}, {}, None

    def play(self):
        try:
            for step in self.script.steps:
                try:
                    VERBS[step["verb"]](self, step, self.client(step["who"]))
                except (Otherwise, TimeoutError, client.Closed, OSError) as e:
                    said = str(e) or {TimeoutError: "nothing came", client.Closed: "the connection is closed"}.get(type(e), repr(e))
                    raise Otherwise(f"{self.script.path.name}:{step['number']}: {step['line']}\n  {said}") from None
            for who, talk in self.open.items():
                if talk.waiting:
                    raise Otherwise(f"{self.script.path.name}: connection {who or 'one'} has more: {talk.waiting}")
        finally:
            self.close()

    def close(self):
        for run in self.runs.values():
            run.close()
        for talk in self.open.values():
            talk.close()

    def client(self, who):
        if who not in self.open:
            self.open[who] = self.connect()
        return self.open[who]

    # --- steps ---

    def says(self, step, talk):
        message = fill(read_json(step["rest"]), self.names)
        self.send(step, talk, json.dumps(message).encode())

    def says_bytes(self, step, talk):
        self.send(step, talk, eval(step["rest"], {})) # of a file of ours

    def send(self, step, talk, data):
        fds = [fd for kind, rest in step["beside"] for fd in self.make(talk, kind, rest)]
        try:
            talk.send(data, fds)
        finally:
            client.close_all(fds)

    def make(self, talk, kind, rest):
        if kind == "code":
            return [client.sealed(unescape(rest))]
        if kind == "dir":
            return [os.open(rest, os.O_PATH | os.O_DIRECTORY)]
        count, _, word = rest.rpartition(" ")
        make = (lambda: os.dup(talk.sock.fileno())) if word == "self" else hostile.KINDS[word]
        return [make() for _ in range(int(count.lstrip("*") or 1))]

    def hears(self, step, talk):
        said = talk.next()
        if said.body.get("event") == "started" and "run" in said.body:
            self.last = self.runs[said.body["run"]] = client.Run(talk, said)
        elif said.fds:
            client.close_all(said.fds)
            raise Otherwise(f"{len(said.fds)} descriptors come with {json.dumps(said.body)}")
        why = differs(read_json(step["rest"]), said.body, self.names)
        if why:
            raise Otherwise(f"it said {json.dumps(said.body)}\n  {why}")

    def run_of(self, rest):
        """The run that is meant, and the rest of the line."""
        name, _, text = rest.partition(" ")
        if name in self.names:
            return self.runs[self.names[name]], text
        if not self.last:
            raise Bad(f"{self.script.path.name}: no run has started")
        return self.last, rest

    def reads_all(self, step, _):
        stream = step["verb"].lstrip("<")
        run, text = self.run_of(step["rest"])
        data, fd = bytearray(run.text[stream]), run.stream.pop(stream)
        with open(fd, "rb") as pipe:
            data += pipe.read()
        self.compare(unescape(text), data.decode(errors="replace"))

    def reads_line(self, step, _):
        run, text = self.run_of(step["rest"])
        self.compare(unescape(text), run.line())

    @staticmethod
    def compare(wanted, got):
        if wanted.startswith("~"):
            if not re.search(wanted[1:], got, re.S):
                raise Otherwise(f"it is {got!r}")
        elif got != wanted:
            raise Otherwise(f"it is {got!r}, not {wanted!r}")

    def writes(self, step, _):
        run, text = self.run_of(step["rest"])
        os.write(run.stream["stdin"], unescape(text).encode())

    def writes_end(self, step, _):
        run, _ = self.run_of(step["rest"])
        os.close(run.stream.pop("stdin"))

    def closes(self, step, talk):
        self.open.pop(step["who"]).close()

    def hears_the_end(self, step, talk):
        try:
            said = talk.next()
        except (client.Closed, BrokenPipeError):
            self.closes(step, talk)
            return
        raise Otherwise(f"it said {json.dumps(said.body)}")


VERBS = {">": Talk.says, ">=": Talk.says_bytes, "<": Talk.hears, "<stdout": Talk.reads_all, "<stderr": Talk.reads_all, "<result": Talk.reads_all,
         "<line": Talk.reads_line, ">stdin": Talk.writes, ">stdin|": Talk.writes_end, "|": Talk.closes, "<|": Talk.hears_the_end}
