"""Rows A16 and A50: a gateway is told about us with the request of the manual, and reaches us with what it was told."""
import http.server
import json
import re
import subprocess
import threading

import pytest

from support import host
from support.mcp import McpHttp
from support.mcp_http import TOKEN, HttpServer

PAGE = host.build_dir() / "man" / "brig-mcp.1"
BODY = host.REPO / "examples/mcp/gateway.json"


class Gateway(http.server.ThreadingHTTPServer):
    """Takes registrations as the published ones do, and at once asks who was registered what it can do."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.asked.append((self.path, self.headers["Authorization"], self.headers["Content-Type"]))
            tools = self.server.register(body)
            self.send_response(200 if tools else 502)
            self.end_headers()
            self.wfile.write(json.dumps(tools).encode())

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.asked, self.clients = [], {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def register(self, body):
        assert body["transport"] == "STREAMABLEHTTP" and body["auth_type"] == "bearer"
        client = McpHttp(body["url"], headers={"Authorization": f"Bearer {body['auth_token']}"})
        client.initialize("2025-06-18")
        self.clients[body["name"]] = client
        return sorted(client.list_tools(revision="2025-06-18"))


@pytest.fixture
def gateway():
    one = Gateway()
    yield one
    one.shutdown()
    one.server_close()


def command(port):
    """The words of the manual, as a shell would run them, with the gateway's address in them."""
    block = re.search(r"^curl -X POST.*?(?=^\.Ed)", PAGE.read_text(), re.M | re.S)[0]
    return block.replace("\\e", "\\").replace("GATEWAY/", f"127.0.0.1:{port}/")


@pytest.mark.requirement("A16", "A50")
def test_a_gateway_that_was_told_by_the_request_of_the_manual_lists_and_calls_our_tools(gateway, tmp_path, needs_rootfs):
    if host.lacks("tool:curl"):
        pytest.skip(host.lacks("tool:curl"))
    with HttpServer(token=TOKEN) as server:
        body = json.loads(BODY.read_text())
        (tmp_path / "gateway.json").write_text(json.dumps({**body, "url": server.url, "auth_token": TOKEN}))
        done = subprocess.run(["bash", "-c", command(gateway.server_port).replace("curl ", "curl -sS --fail ", 1)], cwd=tmp_path, capture_output=True,
                              text=True, timeout=host.HANG, env={"PATH": "/usr/bin:/bin", "GATEWAY_TOKEN": "of-the-gateway"})
        assert done.returncode == 0, done.stderr
        assert gateway.asked == [("/gateways", "Bearer of-the-gateway", "application/json")]
        assert "execute_code" in json.loads(done.stdout)
        assert gateway.clients[body["name"]].execute("6 * 7", revision="2025-06-18")["result"] == 42
