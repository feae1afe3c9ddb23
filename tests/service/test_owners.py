"""Rows I3, I10 and I13: the kernel says who asks, and everybody has only what is his."""
import os
import re
import socket
import subprocess
import sys
import uuid

import pytest

from rules import ANN, BOB, EVE, LONG, SLEEP, end, sleeping
from support import client, host, tiers

RULES = {"access": [
    {"uid": ANN, "profiles": ["basic"], "runs": 2, "memory_bytes": "300M", "runs_per_minute": 40},
    {"uid": BOB, "profiles": ["basic", "strict"]}, {"uid": 0, "profiles": ["basic", "strict"]},
]}


@pytest.fixture
def open_server(stock):
    """A daemon that Ann and Bob may use and Eve may not, whose socket everybody can reach."""
    made = stock.get(RULES)
    made.path.chmod(0o666)
    return made


@pytest.fixture
def root(open_server):
    with open_server.connect() as made:
        yield made


def listed(talk):
    return {row["run"]: row for row in talk.ask("list")["runs"]}


@pytest.mark.row("I3")
def test_who_is_in_no_group_does_not_even_connect(shared):
    """Without a configuration: root and the group brig."""
    try:
        talk = shared.connect_as(EVE)
    except PermissionError:
        return
    with talk:
        assert_denied(talk)


@pytest.mark.row("I3")
def test_who_is_in_no_row_is_denied_everything_but_a_sentence(open_server):
    with open_server.connect_as(EVE) as talk:
        assert_denied(talk)


@pytest.mark.row("I3")
def test_groups_and_root_in_name_are_no_way_in(open_server):
    with open_server.connect_as(EVE, gid=0, groups=[0, BOB]) as talk:
        assert_denied(talk)


def assert_denied(talk):
    """One sentence, whatever is asked, and the end."""
    fd = client.sealed("print(1)")
    talk.begin("run", [fd])
    os.close(fd)
    said = talk.next()
    assert said.body["error"]["code"] == "denied" and not said.fds, said
    with pytest.raises(client.Closed):
        talk.next()


@pytest.mark.control("I3")
def test_control_who_has_a_row_is_served_as_himself(ann, bob, root):
    assert ann.run("print('for ann')").stdout == "for ann\n" and bob.run("print('for bob')").stdout == "for bob\n"
    run = sleeping(ann)
    row = listed(ann)[run.id]
    assert (row["uid"], row["mine"], listed(root)[run.id]["mine"]) == (ANN, True, False)
    end(ann, run)


@pytest.mark.row("I3")
def test_a_connection_that_changes_hands_stays_its_makers(open_server, root):
    """Ann connects; root, here, speaks through her socket, and so does Eve."""
    with open_server.connect_as(ANN) as talk:
        run = sleeping(talk)
        assert listed(root)[run.id]["uid"] == ANN
        said = speak_as(EVE, talk.sock, b'{"op":"list","tag":77}')
        assert said == b"sent"
        rows = talk.until(lambda body: body.get("tag") == 77).body["runs"]
        assert [row["uid"] for row in rows] == [ANN]
        end(talk, run)


@pytest.mark.row("I3")
def test_root_gets_no_more_through_a_connection_of_ann(open_server, bob):
    run = sleeping(bob)
    with open_server.connect_as(ANN) as talk: # we are root
        assert listed(talk) == {}
        with pytest.raises(client.Refused, match="not_found"):
            talk.ask("cancel", run=run.id, reason="cancelled")
        with pytest.raises(client.Refused) as no:
            talk.start("pass", profile="strict")
        assert no.value.code in ("denied", "unknown_profile")
    end(bob, run)


@pytest.mark.row("I3")
def test_credentials_in_a_message_change_nothing(open_server, ann):
    """Root may put any uid and pid there; the daemon does not look."""
    import struct
    ann.sock.sendmsg([b'{"op":"hello","tag":5}'], [(socket.SOL_SOCKET, 2, struct.pack("iII", 1, 0, 0))])
    said = ann.next().body
    assert said.get("reply") == "hello" and said["quota"]["runs"] == 2, said
    assert listed(ann) == {}


def speak_as(uid, sock, data):
    """Another user gets the socket and says that."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script = ("import os, socket\n"
              f"os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})\n"
              f"socket.socket(fileno={sock.fileno()}).send({data!r}); os.write({theirs.fileno()}, b'sent')")
    with ours, theirs:
        subprocess.run([sys.executable, "-c", script], pass_fds=[sock.fileno(), theirs.fileno()], check=True)
        return ours.recv(16)


@pytest.mark.row("I10")
@pytest.mark.parametrize("times", tiers.amounts(20, 300))
def test_a_client_that_is_gone_before_it_is_asked_for_is_no_one(open_server, times):
    """The connection outlives the process that made it: its uid counts, which the kernel kept, and not what its pid is now."""
    with open_server.connect_as(EVE) as talk:
        assert_denied(talk)
    with open_server.connect_as(ANN) as talk: # its maker is gone as well
        assert talk.ask("hello")["quota"]["runs"] == 2
    for _ in range(times): # and with nobody left at either end
        with open_server.connect() as talk:
            talk.send({"op": "exec", "argv": ["true"]})
    with open_server.connect() as talk:
        assert host.poll(lambda: not listed(talk)), "their runs stay"
        assert talk.run("print('served')").stdout == "served\n"


@pytest.mark.control("I10")
def test_control_who_is_still_there_is_told_by_name(root):
    run = sleeping(root)
    row = listed(root)[run.id]
    assert (row["uid"], row["pid"]) == (0, os.getpid()) and row["comm"] == host.read("/proc/self/comm").strip()
    end(root, run)


@pytest.mark.row("I13")
def test_nobody_sees_or_ends_the_run_of_another(ann, bob, root):
    run = sleeping(ann)
    with pytest.raises(client.Refused) as foreign:
        bob.ask("cancel", run=run.id, reason="cancelled")
    with pytest.raises(client.Refused) as nobodys:
        bob.ask("cancel", run=str(uuid.uuid4()), reason="cancelled")
    assert foreign.value.code == nobodys.value.code == "not_found" and foreign.value.field == nobodys.value.field
    strip = lambda error: re.sub(r"[0-9a-f-]{36}", "ID", error.error["message"])
    assert strip(foreign.value) == strip(nobodys.value), "the sentences tell which run exists"
    assert run.id not in listed(bob) and run.id in listed(ann) and run.id in listed(root)
    end(ann, run)


@pytest.mark.row("I13")
def test_numbers_of_runs_cannot_be_guessed(root):
    ids = [root.command("true").id for _ in range(20)]
    bits = [uuid.UUID(one).int for one in ids]
    assert all(uuid.UUID(one).version == 4 for one in ids) and len(set(ids)) == 20
    assert all(bin(a ^ b).count("1") > 20 for a, b in zip(bits, bits[1:])), ids


@pytest.mark.control("I13")
def test_control_root_needs_no_row(start_daemon):
    """Stats, top and kill are what root needs when something is wrong."""
    daemon = start_daemon({"access": [{"uid": ANN, "profiles": ["basic"]}]})
    daemon.path.chmod(0o666)
    with daemon.connect_as(ANN) as ann, daemon.connect() as root:
        run = sleeping(ann)
        assert root.ask("stats")["running"] == 1 and list(listed(root)) == [run.id]
        root.ask("cancel", run=run.id)
        assert run.wait()["exit_reason"] == "cancelled"
        run.close()


@pytest.mark.control("I13")
def test_control_root_ends_the_run_of_anybody(ann, root):
    run = sleeping(ann)
    assert root.ask("cancel", run=run.id, reason="cancelled")["run"] == run.id
    assert run.wait()["exit_reason"] == "cancelled"
    run.close()


# --- quotas ------------------------------------------------------------------------------------------------------------

def refused(talk, **keys):
    """It does not wait until there is a place: then it would start."""
    with pytest.raises(client.Refused) as no:
        talk.start_command("true", **keys)
    return no.value


@pytest.mark.requirement("A106", "B36")
def test_a_quota_is_the_users_and_not_the_connections(open_server, ann, bob):
    with open_server.connect_as(ANN) as other:
        runs = [sleeping(talk, memory_bytes="64M") for talk in (ann, other)]
        no = refused(ann, limits={"memory_bytes": "64M"})
        assert no.code == "busy" and 0 < no.error["retry_after_ms"] <= 60000
        assert bob.command("true").reason == "exited", "another user's quota is his own"
        end(ann, runs[0])
        assert ann.command("true", limits={"memory_bytes": "64M"}).reason == "exited"
        end(other, runs[1])


def test_memory_of_all_runs_of_a_user_has_an_end(ann):
    run = sleeping(ann, memory_bytes="200M")
    assert refused(ann, limits={"memory_bytes": "101M"}).code == "busy"
    assert ann.command("true", limits={"memory_bytes": "100M"}).reason == "exited"
    end(ann, run)


def test_what_can_never_fit_is_no_matter_of_waiting(ann):
    """More than the quota as a whole: to come again would not help."""
    no = refused(ann, limits={"memory_bytes": "301M"})
    assert no.code in ("denied", "above_ceiling") and "retry_after_ms" not in no.error, no


@pytest.mark.requirement("A106", "B36")
def test_runs_a_minute_are_counted_whether_they_last_or_not(start_daemon):
    daemon = start_daemon({"access": [{"uid": 0, "profiles": ["basic"], "runs_per_minute": 5}]})
    with daemon.connect() as talk:
        for _ in range(5):
            assert talk.command("true").reason == "exited"
        no = refused(talk)
        assert no.code == "busy" and 0 < no.error["retry_after_ms"] <= 60000, no
        assert talk.ask("hello")["version"] == 1


def test_the_quota_that_hello_tells_is_the_one_that_counts(ann, bob):
    assert ann.ask("hello")["quota"] == {"runs": 2, "memory_bytes": 300 << 20, "runs_per_minute": 40, "sessions": None, "contexts": 16}
    assert [row["name"] for row in ann.ask("hello")["profiles"]] == ["basic"]
    assert sorted(row["name"] for row in bob.ask("hello")["profiles"]) == ["basic", "strict"]


def test_a_user_may_start_a_hundred_runs_a_second_by_preset(start_daemon):
    """Each start costs the host what no limit of a run counts. A plain user's own daemon serves nobody else, and has no such bound."""
    daemon = start_daemon({})
    with daemon.connect() as talk:
        assert talk.ask("hello")["quota"]["runs_per_minute"] == (6000 if os.geteuid() == 0 else None)
