"""A running brig-api, and a client of it: every answer is compared with the OpenAPI description that is in the repository.

    with ApiServer("--apis", "piston") as api:
        api.run_code("print(1)")                        # the answer as an object
        api.ask("POST", "/submissions?wait=true", {...}, status=201)
        api.say(b"POST /run_code HTTP/1.1\r\n...")      # bytes as they are: (status, headers, body)
"""
import base64
import hashlib
import http.client
import json
import os
import re
import socket
import subprocess
import urllib.parse

import jsonschema

from support import brig, host
from support.mcp_http import Raw, Serving

DESCRIPTION = json.loads((host.REPO / "api" / "openapi.json").read_text())
TOKEN = "0123456789abcdef0123456789abcdef-of-the-tests"


def binary():
    return host.build_dir() / "bin" / "brig-api"


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def operation(method, path):
    """The row of the description for a request; None: there is none."""
    path = path.partition("?")[0]
    for known, methods in sorted(DESCRIPTION["paths"].items(), key=lambda row: "{" in row[0]):
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(known))
        if re.fullmatch(pattern, path) and method.lower() in methods:
            return methods[method.lower()]
    return None


def check(method, path, status, headers, body):
    """Is this one of the answers that the description has?"""
    row = operation(method, path)
    if row is None or (status == 404 and json.loads(body)["brig"]["exit_reason"] == "path"): # its interface is not switched on
        assert status in (400, 401, 403, 404, 405, 413, 431, 204), f"{method} {path} is not described"
        return
    assert str(status) in row["responses"], f"{method} {path}: {status} is not described: {body[:300]}"
    kind = headers.get("content-type", "").partition(";")[0]
    content = row["responses"][str(status)]["content"]
    assert kind in content, f"{method} {path}: {kind}"
    if kind == "application/json" and method != "HEAD":
        schema = {**content[kind]["schema"], "components": DESCRIPTION["components"]}
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class ApiServer(Serving):
    """brig-api at a port of its own. token: TOKEN in a file; None: none is wanted; tokens: the text of the file."""

    def __init__(self, *args, token=None, tokens=None, env=None, scratch=None):
        given = dict(os.environ) | (env or {})
        self.token = token
        if token or tokens:
            path = os.path.join(scratch or brig.SCRATCH.name, f"api-token-{os.getpid()}-{id(self)}")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(tokens or token + "\n")
            args = ("--token-file", path, *args)
        else:
            args = ("--insecure-loopback", *args)
        super().__init__(subprocess.Popen([binary(), "--listen", "127.0.0.1:0", *args], env=given, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE))
        self.url = self.address
        self.port = urllib.parse.urlsplit(self.url).port

    def connect(self, timeout=host.HANG):
        return Raw(socket.create_connection(("127.0.0.1", self.port), timeout=timeout))

    def say(self, data):
        with self.connect() as raw:
            raw.send(data)
            return raw.reply()

    def request(self, method, path, body=None, headers=None, token=None):
        """Any request; the answer is checked by the description."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=host.HANG)
        own = {"Content-Type": "application/json"} if body is not None else {}
        if token or self.token:
            own["Authorization"] = f"Bearer {token or self.token}"
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, {key: value for key, value in (own | (headers or {})).items() if value is not None})
            reply = connection.getresponse()
            answer = Answer(reply.status, {key.lower(): value for key, value in reply.getheaders()}, reply.read())
        finally:
            connection.close()
        check(method, path, answer.status, answer.headers, answer.body)
        return answer

    def ask(self, method, path, body=None, status=200, **kw):
        """The object of an answer that must have this status."""
        answer = self.request(method, path, body, **kw)
        assert answer.status == status, (answer.status, answer.body[:600])
        return answer.json

    def run_code(self, code, status=200, token=None, **fields):
        return self.ask("POST", "/run_code", {"code": code, "language": "python", "compile_timeout": 10, "run_timeout": 30, "stdin": None, "files": {}, "fetch_files": [], **fields}, status, token=token)

    def jupyter(self, *cells, status=200, **fields):
        return self.ask("POST", "/run_jupyter", {"cells": list(cells), "total_timeout": 45, "cell_timeout": 0, "kernel": "python3", **fields}, status)

    def execute(self, code, session=None, status=200, token=None, **fields):
        return self.ask("POST", "/execute", {"generated_code": code, "timeout": 30, **fields}, status, headers={"X-Session-ID": session} if session else None, token=token)

    def piston(self, code, status=200, **fields):
        return self.ask("POST", "/api/v2/execute", {"language": "python", "version": "3.x", "files": [{"content": code}], **fields}, status)

    def judge(self, code, status=201, query="wait=true", **fields):
        return self.ask("POST", f"/submissions?{query}", {"source_code": code, "language_id": 71, **fields}, status)


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()
