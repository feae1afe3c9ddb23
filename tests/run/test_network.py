"""brig run --net: what a program is told, what the record says, which requests are refused. Nothing here reaches a host; tests/network has some."""
import json
import subprocess

import pytest

from support import brig, host

pytestmark = pytest.mark.private("--net holds for one run, and a service allows nothing that its profiles do not say")

ASK = """
import socket
def ask(host, port=443):
    with socket.create_connection(("198.18.0.1", 3128), 20) as proxy:
        proxy.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
        return proxy.makefile().read()
"""


@pytest.fixture(name="profiles")
def profiles_(tmp_path):
    """make(name, network) -> the environment in which `brig` has that profile."""
    def make(name, network):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": network}))
        return {"BRIG_PROFILES": str(tmp_path)}
    return make


def test_a_run_that_names_no_host_has_no_network_and_no_variables_of_one():
    run = brig.run("--private", program="import os, socket\nprint([k for k in os.environ if 'PROXY' in k.upper()])\nsocket.create_connection(('198.18.0.1', 3128), 5)")
    assert run.out == "[]\n" and run.record["network"] is None and "Network is unreachable" in run.stderr + json.dumps(run.record), str(run)


def test_none_is_no_network_even_where_the_profile_allows_hosts_and_never_one_of_several(profiles):
    run = brig.run("--private", "-p", "own", "--net", "none", env=profiles("own", {"allow": ["a.example"]}), program="import os\nprint([k for k in os.environ if 'PROXY' in k.upper()])")
    assert run.out == "[]\n" and run.record["network"] is None, str(run)
    run = brig.run("--private", "--net", "none", "--net", "a.example", program="pass", json_record=False)
    assert run.status == 125 and run.stderr.startswith("brig: --net: \"none\" is no host: write one name like pypi.org") and run.stderr.endswith("or \"none\" alone\n"), str(run)


def test_variables_lead_programs_to_the_proxy():
    run = brig.run("--private", "--net", "a.example", program="import os\nfor k in 'HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'ALL_PROXY', 'NO_PROXY', 'SSL_CERT_FILE': print(os.environ.get(k))")
    assert run.out.split() == ["http://198.18.0.1:3128"] * 4 + ["localhost,127.0.0.1,127.0.0.2,127.0.0.3,127.0.1.1,127.0.0.0/8,0.0.0.0,::1,brig", "None"], str(run)


def test_variables_of_the_caller_come_before_those_of_brig():
    run = brig.run("--private", "--net", "a.example", "--env", "HTTPS_PROXY=mine", program="import os\nprint(os.environ['HTTPS_PROXY'])")
    assert run.out == "mine\n", str(run)


def test_a_host_that_is_not_named_is_refused_and_the_record_says_so():
    run = brig.run("--private", "--net", "a.example", program=ASK + "print(ask('b.example'))")
    assert "b.example is not on the list of hosts that this run may reach" in run.out, str(run)
    (one,) = run.record["network"]["connections"]
    assert (one["name"], one["port"], one["verdict"], one["reason"], one["address"], one["secret"]) == ("b.example", 443, "refused", "not_allowed", None, False)
    assert {key: run.record["network"][key] for key in ("left_out", "refused", "failed", "bytes_in", "bytes_out")} == {"left_out": 0, "refused": 1, "failed": 0, "bytes_in": 0, "bytes_out": 0}


def test_what_is_refused_is_listed_once_for_people():
    run = brig.run("--private", "--net", "a.example", program=ASK + "ask('b.example'); ask('b.example'); ask('c.example', 22); raise SystemExit(3)", json_record=False)
    assert "brig: not reached: b.example:443 (not_allowed), c.example:22 (not_allowed); brig run --why lists all\n" in run.stderr, str(run)
    run = brig.run("--private", "--why", "--net", "a.example", program=ASK + "ask('b.example')", json_record=False)
    assert "brig: not reached: b.example:443 (not_allowed); where it says not_allowed, --net HOST or network.allow of the profile allows it\n" in run.stderr, str(run)


def test_more_connections_than_a_record_holds_are_counted():
    run = brig.run("--private", "--net", "a.example", program=ASK + "for i in range(80): ask(f'b{i}.example')")
    told = run.record["network"]
    assert told["refused"] == 80 and len(told["connections"]) + told["left_out"] == 80 and len(told["connections"]) >= 32, str(run)


@pytest.mark.parametrize("host, says", [
    ("http://", '--net: "" is no host'),
    ("a.example:0", '--net: "0" is no port'),
    ("0177.1", '--net: "0177.1" is no host'),
    ("ftp://a.example", '--net: "ftp://a.example": the scheme may be https, http or tcp'),
    ("user:pw@a.example", "a rule has no user and no password"),
    ("", '--net: "" is no host'),
    (" a.example", '--net: " a.example" is no host'),
    ("*.", '--net: "*." is no host'),
    ("a.*.example", '--net: "a.*.example" is no host'),
    ("a..example", '--net: "a..example" is no host'),
    ("a.example:65536", '--net: "65536" is no port: write a number from 1 to 65535'),
    ("a.example:", '--net: "" is no port'),
    ("tcp://a.example", "tcp needs a port: tcp://HOST:PORT"),
    ("b\u00fccher.example", "write an international name as it is in the DNS, xn--..."),
    (".".join("abcd"[i] * 63 for i in range(4)), "is no host"),
    ("a\nb.example", "a rule has characters that cannot be shown"),
])
def test_what_is_no_host_is_refused_by_its_option(host, says):
    run = brig.run("--private", "--net", host, program="print(1)", json_record=False)
    assert run.status == 125 and says in run.stderr and run.stdout == "", str(run)


def test_what_is_no_host_is_refused_for_commands_too():
    done = subprocess.run([brig.binary(), "exec", "--private", "--net", "a.example:0", "/bin/true"], capture_output=True, text=True, timeout=host.HANG, env=brig.environment())
    assert done.returncode == 125 and '--net: "0" is no port' in done.stderr and done.stderr.count("\n") == 1, done


def test_a_host_that_is_named_twice_counts_once_and_more_than_the_most_are_refused():
    twice = brig.run("--private", "--net", "a.example", "--net", "a.example", program="print(1)", json_record=False)
    assert (twice.status, twice.stdout) == (0, "1\n"), str(twice)
    many = [word for i in range(65) for word in ("--net", f"a{i}.example")]
    assert "--net: given more than 64 times" in brig.run("--private", *many, program="print(1)", json_record=False).stderr
    assert brig.run("--private", *many[2:], program="print(1)", json_record=False).stdout == "1\n"


def test_a_profile_bounds_what_its_runs_may_name(profiles):
    env = profiles("narrow", {"allow": ["a.example"], "ceiling": ["*.c.example"], "deny": ["bad.c.example"]})

    def run(*hosts):
        options = [word for host in hosts for word in ("--net", host)]
        return brig.run("--private", "-p", "narrow", *options, program=ASK + "print(ask('x.example')[:12])", env=env, json_record=False)
    assert run("a.example", "b.c.example").stdout == "HTTP/1.1 403\n"
    assert "--net d.example is not among the hosts that runs of profile narrow may ask for; " in run("a.example", "d.example").stderr
    assert "bad.c.example is on the list of hosts that no run of profile narrow may reach" in run("bad.c.example").stderr


def test_a_run_that_names_no_host_has_those_of_its_profile(profiles):
    env = profiles("wide", {"allow": ["a.example"]})
    run = brig.run("--private", "-p", "wide", program=ASK + "print(ask('b.example')[:12])", env=env)
    assert run.out == "HTTP/1.1 403\n" and run.record["network"]["refused"] == 1, str(run)


def test_a_secret_that_is_not_there_is_named_and_no_program_runs(profiles):
    env = profiles("secret", {"allow": ["a.example"], "secrets": {"TOKEN": {"from": {"env": "NOT_THERE"}, "host": "a.example", "header": "Authorization: Bearer {}"}}})
    run = brig.run("--private", "-p", "secret", program="print('ran')", env=env, json_record=False)
    assert run.status == 125 and "network: secrets: TOKEN: env: NOT_THERE is not set where brig runs" in run.stderr and run.stdout == "", str(run)


def test_a_check_reaches_nothing_and_needs_no_host():
    run = brig.run(verb="check", program="import socket", json_record=False)
    assert run.status in (0, 1) and "network" not in run.stderr, str(run)


def test_a_strict_profile_has_no_sockets_and_so_no_network():
    run = brig.run("--private", "-p", "strict", program="import socket\nsocket.socket()")
    assert run.record["exit_code"] == 1 and "Address family not supported" in json.dumps(run.record["error"]), str(run)
    run = brig.run("--private", "-p", "strict", "--net", "a.example", program="print('ran')", json_record=False)
    assert run.status == 125 and run.stdout == "" and '--net: policy "python-strict" lets no program open a socket of IPv4: it would reach nothing' in run.stderr, str(run)
