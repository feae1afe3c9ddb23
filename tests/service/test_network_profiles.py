"""A service whose profiles have a network: its cells listen, its brig-proxy serves them all, and a run that may reach nothing finds nothing."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from support import brig, client, daemon, host
from support.ask_proxy import ASK
from support.sessions import open_session

pytestmark = pytest.mark.private("a service with profiles of its own")

IGNORES_CHILDREN = ["env", "--ignore-signal=CHLD"]
PROFILES = {
    "netted": {"allow": ["a.example"], "ceiling": ["*.c.example"], "deny": ["bad.c.example"]},
    "deaf": {"deny": ["a.example"]},
}


@pytest.fixture(scope="module")
def service(tmp_path_factory, jail):
    folder = tmp_path_factory.mktemp("profiles")
    folder.chmod(0o755)
    for name, network in PROFILES.items():
        (folder / f"{name}.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": network, "ready": 2}))
    served = daemon.Daemon(env={"BRIG_PROFILES": str(folder)})
    yield served
    served.stop()


def run(service, *options, program, **kw):
    return brig.run("-p", "netted", *options, program=ASK + program, env={"BRIG_SOCKET": str(service.path)}, **kw)


@pytest.mark.parametrize("how", [(), ("--cold",), ("--memory", "64M"), ("--net-bytes", "1M", "--net-connections", "3", "--net-rate", "1M")])
def test_a_run_has_the_hosts_of_its_profile_and_no_other(service, how):
    done = run(service, *how, program="print(ask('b.example'))")
    assert done.out == "HTTP/1.1 403\n", str(done)
    (one,) = done.record["network"]["connections"]
    assert (one["name"], one["verdict"], one["reason"]) == ("b.example", "refused", "not_allowed"), str(done)


def test_a_run_may_name_what_is_below_the_ceiling_and_nothing_else(service):
    assert run(service, "--net", "x.c.example", program="print(ask('a.example'))").out == "HTTP/1.1 403\n"
    for name, says in (("d.example", "d.example is not among the hosts that runs of profile netted may ask for"), ("bad.c.example", "bad.c.example is on the list of hosts that no run of profile netted may reach"),
                       ("https://x.c.example/path/", "has a path, and a service reads those of hosts alone")):
        done = run(service, "--net", name, program="print(1)", json_record=False)
        assert done.status == 125 and says in done.stderr, str(done)


def test_a_refusal_is_told_with_each_call_of_a_session_in_which_it_comes(service):
    with service.connect() as talk:
        session = open_session(talk, profile="netted")
        for program, names in (("print(ask('b.example'))", ["b.example"]), ("1", []), ("print(ask('b.example'))", ["b.example"]), ("print(ask('d.example'), ask('d.example'))", ["d.example"])):
            network = session.run(ASK + program).record["network"]
            assert [one["name"] for one in network["connections"]] == names and network["refused"] == program.count("ask("), (program, network)
        session.close()


def test_a_profile_without_hosts_has_no_network_whatever_is_named(service):
    done = brig.run("-p", "deaf", program=ASK + "print(ask('a.example'))", env={"BRIG_SOCKET": str(service.path)})
    assert done.out == "Network is unreachable\n" and done.record["network"] is None, str(done)
    done = brig.run("-p", "deaf", "--net", "b.example", program="print(1)", env={"BRIG_SOCKET": str(service.path)}, json_record=False)
    assert done.status == 125 and "b.example is not among the hosts" in done.stderr, str(done)


# The time when it was made, too: the number alone is given to another one later.
WHICH = "import os; s = os.stat('/proc/self/ns/net'); print(s.st_ino, s.st_ctime_ns)\n"


def test_a_network_that_was_not_used_is_the_next_runs_and_leads_where_a_new_one_does(service):
    seen = set()

    def leads_from_one_that_was_seen():
        seen.update(run(service, program=WHICH).out for _ in range(3))
        which, _, said = run(service, program=WHICH + "print(ask('b.example'))").out.partition("\n")
        assert said == "HTTP/1.1 403\n"
        return which + "\n" in seen
    assert host.poll(leads_from_one_that_was_seen), seen


def test_a_network_that_was_used_is_nobodys_again(service):
    used = {run(service, program=WHICH + "ask('b.example')").out for _ in range(4)}
    assert len(used) == 4 and used.isdisjoint([run(service, program=WHICH).out for _ in range(6)])


def test_calls_of_a_session_tell_what_each_reached(service):
    env = brig.environment({"BRIG_SOCKET": str(service.path)})

    def session(*words):
        return subprocess.run([brig.binary(), "session", *words], capture_output=True, text=True, timeout=host.HANG, env=env, stdin=subprocess.DEVNULL, check=True).stdout
    made = session("open", "-p", "netted").strip()
    session("run", made, "-c", ASK)
    records = [json.loads(session("run", made, "--json", "-c", code)) for code in ("ask('b.example')", "[ask('d.example'), ask('e.example')]", "1")]
    first, second, third = (record["network"] for record in records)
    session("close", made)
    assert [record["result"] for record in records] == ["HTTP/1.1 403", ["HTTP/1.1 403"] * 2, 1]
    assert [[one["name"] for one in told["connections"]] for told in (first, second, third)] == [["b.example"], ["d.example", "e.example"], []]
    assert [told["refused"] for told in (first, second, third)] == [1, 2, 0]


def test_a_session_is_not_opened_for_what_is_no_host_or_is_not_offered(service):
    env = brig.environment({"BRIG_SOCKET": str(service.path)})
    for name, says in (("a.example:0", '--net: "0" is no port: write a number from 1 to 65535'), ("d.example", "d.example is not among the hosts that runs of profile netted may ask for")):
        done = subprocess.run([brig.binary(), "session", "open", "-p", "netted", "--net", name], capture_output=True, text=True, timeout=host.HANG, env=env)
        assert done.returncode == 125 and says in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done


def test_an_interpreter_that_is_new_has_the_network_of_its_session(service):
    with service.connect() as talk:
        session = open_session(talk, profile="netted", network=["x.c.example"])
        session.run(ASK)
        assert session.value("ask('a.example')") == "HTTP/1.1 403"
        session.restart()
        session.run(ASK)
        told = session.run("ask('b.example')").record["network"]
        assert [(one["name"], one["reason"]) for one in told["connections"]] == [("b.example", "not_allowed")], told
        session.close()


def test_a_proxy_that_ended_leaves_runs_without_a_network_and_a_new_one_is_started(service):
    waiting = brig.start("-p", "netted", program=ASK + "import sys\nprint(ask('b.example'), flush=True)\nsys.stdin.readline()\nprint(ask('b.example'))",
                         env={"BRIG_SOCKET": str(service.path)}, json_record=False, popen={"stdin": subprocess.PIPE})
    assert waiting.line() == "HTTP/1.1 403"
    (before,) = service.of_kind("proxy")
    os.kill(before, signal.SIGKILL)
    assert host.poll(lambda: before not in service.of_kind("proxy")), service.tree()
    assert "Connection refused" in waiting.wait(input=b"\n").stdout
    assert host.poll(lambda: run(service, program="print(ask('b.example'))").out == "HTTP/1.1 403\n"), service.words()
    assert len(service.of_kind("proxy")) == 1, service.tree()


def test_a_proxy_that_ended_before_a_run_used_it_is_told_by_the_run_that_then_does_and_by_no_other(service):
    program = ASK + "print('begun', flush=True)\nimport sys\nif sys.stdin.readline() == 'use\\n':\n    print(ask('b.example'))"
    runs = [brig.start("-p", "netted", program=program, env={"BRIG_SOCKET": str(service.path)}, json_record=False, popen={"stdin": subprocess.PIPE}) for _ in range(2)]
    assert [one.line() for one in runs] == ["begun"] * 2
    for before in service.of_kind("proxy"):
        os.kill(before, signal.SIGKILL)
        assert host.poll(lambda: before not in service.of_kind("proxy")), service.tree()
    used, unused = runs[0].wait(input=b"use\n"), runs[1].wait(input=b"\n")
    assert used.out.strip() in ("Connection reset by peer", "") and "HTTP" not in used.out and "proxy_gone" in used.stderr, str(used)
    assert unused.status == 0 and "proxy_gone" not in unused.stderr, str(unused)
    assert host.poll(lambda: run(service, program="print(ask('b.example'))").out == "HTTP/1.1 403\n"), service.words()


@pytest.mark.parametrize("used_before", [False, True])
def test_a_session_that_has_lost_its_proxy_tells_it_with_one_call_and_not_with_those_that_do_nothing(service, used_before):
    with service.connect() as talk:
        session = open_session(talk, profile="netted")
        session.run(ASK + ("ask('b.example')" if used_before else ""))
        for before in service.of_kind("proxy"):
            os.kill(before, signal.SIGKILL)
            assert host.poll(lambda: before not in service.of_kind("proxy")), service.tree()
        told = [session.run(program).record["network"] for program in ("ask('b.example')", "1", "2")]
        assert [[one["reason"] for one in call["connections"]] for call in told] == [["proxy_gone"], [], []], told
        session.close()
    assert host.poll(lambda: run(service, program="print(ask('b.example'))").out == "HTTP/1.1 403\n"), service.words()


def test_the_proxy_has_no_rights_and_an_id_of_its_own(service):
    (proxy,) = service.of_kind("proxy")
    assert host.poll(lambda: "Seccomp:\t2" in host.read(f"/proc/{proxy}/status")), "it is not confined" # one that was started a moment ago
    status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{proxy}/status").splitlines() if ":\t" in line)
    assert {status[key] for key in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16} and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status
    others = {text.split("Uid:\t")[1].split()[0] for pid in service.tree() if pid != proxy and (text := host.read(f"/proc/{pid}/status"))}
    assert status["Uid"].split()[0] not in others | {"0"}, status["Uid"]


USELESS = 'policy "python-strict" lets no program open a socket of IPv4: it would reach nothing'


def test_a_profile_whose_network_its_policy_makes_useless_is_left_out(jail, tmp_path):
    tmp_path.chmod(0o755)
    for name, policy, network in (("odd", "python-strict", {"allow": ["a.example"]}), ("even", "python", {"allow": ["a.example"]}), ("none", "python-strict", {"deny": ["a.example"]})):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rootfs": "basic", "policy": policy, "network": network}))
    with daemon.Daemon(env={"BRIG_PROFILES": str(tmp_path)}) as served:
        assert f"profile odd is left out: network: {USELESS}" in served.words() and served.words().count("left out") == 1, served.words()


def test_a_service_whose_caller_ignores_ended_children_reads_https_all_the_same(jail, tmp_path):
    """The status of the process that makes its CA must not be lost."""
    host.open_way(tmp_path)
    for path in (host.REPO / "profiles").glob("*.policy"):
        shutil.copy(path, tmp_path)
    (tmp_path / "reads.json").write_text(json.dumps({"rootfs": "basic", "policy": "python", "network": {"allow": [{"host": "a.example", "methods": ["GET"]}]}}))
    with daemon.Daemon(env={"BRIG_PRESETS": str(tmp_path)}, through=[*daemon.with_accounts(), *IGNORES_CHILDREN]) as served, served.connect() as talk:
        assert [row["name"] for row in talk.ask("hello")["profiles"]] == ["reads"], served.words()


def test_a_secret_that_is_not_there_costs_its_profile_alone_and_a_reload_that_lacks_it_is_refused(jail, tmp_path):
    host.open_way(tmp_path)
    token, ceiling = tmp_path / "token", {"rootfs": "basic", "policy": "python"}
    secret = {"from": {"file": str(token)}, "host": "a.example", "header": "Authorization: Bearer {}"}
    for path in (host.REPO / "profiles").glob("*.policy"):
        shutil.copy(path, tmp_path)
    (tmp_path / "even.json").write_text(json.dumps(ceiling))
    (tmp_path / "odd.json").write_text(json.dumps({**ceiling, "network": {"allow": ["a.example"], "secrets": {"TOKEN": secret}}}))
    said = f"profile odd{{}}: network: secrets: TOKEN: file: {token}: No such file or directory"
    with daemon.Daemon(env={"BRIG_PRESETS": str(tmp_path)}) as served:
        assert said.format(" is left out") in served.words() and served.words().count("left out") == 1, served.words()
        with served.connect() as talk:
            assert talk.run("print(1)", profile="even").reason == "exited"
            with pytest.raises(client.Refused) as refused:
                talk.ask("reload")
            assert refused.value.error["message"] == said.format("")
            token.write_text("value\n")
            token.chmod(0o644)
            assert talk.ask("reload")["changed"] == ["odd"]
            assert talk.run("import os; print(os.environ['TOKEN'])", profile="odd").stdout == "brig-secret-TOKEN\n"
