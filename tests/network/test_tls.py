"""TLS that brig-proxy ends, to read requests: what programs see, what servers see, and whom each of the two believes."""
import pytest

from attack import allowed, attack

RULE = {"host": "shop.example", "methods": ["GET"], "paths": ["/repos/"]}
REFUSED = "the method or the path is not allowed at shop.example"


@pytest.fixture
def reads(profiles):
    """A profile of whose host shop.example single paths are allowed, and raw.example."""
    return profiles.make("reads", {"allow": [RULE, "raw.example"]})


CLIENTS = {
    "requests": "import requests\ndef get(path, method='GET'):\n    said = requests.request(method, BASE + path)\n    return f'{said.status_code} {said.text}'",
    "httpx": "import httpx\ndef get(path, method='GET'):\n    said = httpx.Client(http2=True).request(method, BASE + path)\n    assert said.http_version == 'HTTP/1.1'\n    return f'{said.status_code} {said.text}'",
    "curl": "import subprocess\ndef get(path, method='GET'):\n    return subprocess.run(['curl', '-sS', '-X', method, '-w', '\\n%{http_code}', BASE + path], capture_output=True, text=True).stdout",
    "curl without a proxy": "import os, subprocess\nenv = {k: v for k, v in os.environ.items() if not k.lower().endswith('_proxy')}\ndef get(path, method='GET'):\n"
                            "    return subprocess.run(['curl', '-sS', '-X', method, '-w', '\\n%{http_code}', BASE + path], capture_output=True, text=True, env=env).stdout",
    "ssl": "def get(path, method='GET'):\n    with tls(to('shop.example', 443), 'shop.example') as sock:\n        sock.sendall(f'{method} {path} HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n'.encode())\n        return all_of(sock).decode()",
}


@pytest.mark.requirement("A74")
@pytest.mark.parametrize("client", CLIENTS)
def test_only_the_methods_and_paths_of_a_rule_reach_the_server(net, reads, client):
    before = len(net.requests())
    said = attack(net, f"""
BASE = "https://shop.example"
{CLIENTS[client]}
told("allowed", get, "/repos/x?y=1")
told("path", get, "/who")
told("method", get, "/repos/x", "POST")
""", profile=reads["profile"], env=reads["env"])
    assert "GET /repos/x?y=1" in said.said["allowed"] and "200" in said.said["allowed"]
    for name in ("path", "method"):
        assert "403" in said.said[name] and REFUSED in said.said[name], said.said[name]
    assert [one["request"] for one in net.requests()[before:]] == ["GET /repos/x?y=1 HTTP/1.1"]
    assert [(one["verdict"], one["reason"]) for one in said.network["connections"]] == [("done", None), ("refused", "request")]
    assert said.network["refused"] == 2
