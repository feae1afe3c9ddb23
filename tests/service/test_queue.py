"""Runs that wait for a place: first come, first served for each user, users in turn. A client that does not want to wait is told at once."""
import collections
import os
import subprocess
import threading

import pytest

from rules import ANN, BOB, LONG, SLEEP, WAIT, begin, end, rest, sleeping
from support import client, host

RULES = {"access": [
    {"uid": ANN, "profiles": ["basic"], "runs": 2}, {"uid": BOB, "profiles": ["basic"], "runs": 2}, {"uid": 0, "profiles": ["basic"], "runs": 2},
]}


@pytest.fixture
def open_server(stock):
    """A daemon that everybody can reach."""
    made = stock.get(RULES)
    made.path.chmod(0o666)
    rest(made)
    return made


def fill(talk):
    return [sleeping(talk), sleeping(talk)]


@pytest.mark.requirement("A106")
def test_a_run_that_wants_to_wait_is_told_why_and_starts_when_there_is_a_place(ann):
    runs = fill(ann)
    tag, said = begin(ann)
    assert said["event"] == "waiting" and said["why"] == "2 runs at once: your quota is used up" and len(said["run"]) == 36, said
    assert ann.ask("stats")["waiting"] == 1
    end(ann, runs[0])
    run = ann.started(tag)
    assert run.id == said["run"]
    assert run.finish().stdout == "1\n"
    assert ann.ask("stats")["waiting"] == 0
    end(ann, runs[1])


def test_who_asked_first_starts_first(ann):
    runs = fill(ann)
    tags = [begin(ann, f"print({n})")[0] for n in range(5)]
    end(ann, runs[0])
    started = [ann.until(lambda body: body.get("event") == "started").body["tag"] for _ in tags]
    assert started == tags
    end(ann, runs[1])


def test_who_does_not_want_to_wait_is_refused_at_once_and_not_let_past(ann):
    runs = fill(ann)
    tag, _ = begin(ann)
    with pytest.raises(client.Refused) as no:
        ann.start("print(2)")
    assert no.value.code == "busy" and no.value.error["retry_after_ms"] > 0 and "your quota is used up" in str(no.value), no.value
    end(ann, runs[0])
    assert ann.started(tag).finish().stdout == "1\n"
    end(ann, runs[1])


def test_who_has_waited_long_enough_is_told_what_for(ann):
    runs = fill(ann)
    tag, said = begin(ann, wait_ms=50)
    assert said["event"] == "waiting"
    with pytest.raises(client.Refused) as no:
        ann.started(tag)
    assert no.value.code == "busy" and "waited too long: 2 runs at once: your quota is used up" in str(no.value), no.value
    for run in runs:
        end(ann, run)


def test_who_hangs_up_waits_no_more(open_server, ann):
    runs = fill(ann)
    with open_server.connect_as(ANN) as other:
        begin(other)
        begin(other)
        assert ann.ask("stats")["waiting"] == 2
    assert host.poll(lambda: ann.ask("stats")["waiting"] == 0)
    started = ann.ask("stats")["runs"]["started"]
    for run in runs:
        end(ann, run)
    assert ann.run("print(3)").stdout == "3\n"
    assert ann.ask("stats")["runs"]["started"] == started + 1


def test_a_run_that_waits_can_be_cancelled_by_its_id_and_by_its_owner_only(ann, bob):
    runs = fill(ann)
    tag, said = begin(ann)
    with pytest.raises(client.Refused) as no:
        bob.ask("cancel", run=said["run"])
    assert no.value.code == "not_found"
    assert ann.ask("cancel", run=said["run"])["run"] == said["run"]
    with pytest.raises(client.Refused) as no:
        ann.started(tag)
    assert "cancelled while it waited" in str(no.value)
    for run in runs:
        end(ann, run)


def test_another_users_line_is_no_reason_to_wait(ann, bob):
    runs = fill(ann)
    for _ in range(20):
        begin(ann)
    assert bob.run("print(2)").stdout == "2\n"
    for run in runs:
        end(ann, run)


def test_users_take_turns_when_the_host_is_full(start_daemon):
    server = start_daemon({**RULES, "runs": 1})
    server.path.chmod(0o666)
    with server.connect() as root, server.connect_as(ANN) as ann, server.connect_as(BOB) as bob:
        run = sleeping(root)
        anns, bobs = [begin(ann)[0] for _ in range(6)], [begin(bob)[0] for _ in range(3)]
        order, lock = [], threading.Lock()

        def note(talk, name, tags):
            for tag in tags:
                talk.started(tag).finish()
                with lock:
                    order.append(name)
        both = [threading.Thread(target=note, args=one) for one in ((ann, "ann", anns), (bob, "bob", bobs))]
        for one in both:
            one.start()
        end(root, run)
        for one in both:
            one.join(host.HANG)
    assert collections.Counter(order) == {"ann": 6, "bob": 3}
    assert "bob" in order[:3] and order[-1] == "ann" and order.index("bob", order.index("bob") + 1) <= 5, order


def test_a_line_has_an_end(ann):
    """Runs that wait cost the server memory and descriptors."""
    runs = fill(ann)
    fd = client.sealed("print(1)")
    for _ in range(600):
        ann.begin("run", [fd], wait_ms=WAIT)
        if "error" in (said := ann.next().body):
            break
    os.close(fd)
    assert said["error"]["code"] == "busy", said
    assert 100 < ann.ask("stats")["waiting"] <= 512
    ann.close()
    del runs


def test_a_service_that_ends_tells_those_who_wait(open_server, ann):
    fill(ann)
    tag, _ = begin(ann)
    assert open_server.stop() == 0
    with pytest.raises(client.Refused) as no:
        ann.started(tag)
    assert no.value.code == "unavailable"


@pytest.mark.parametrize("wait", [-1, 3_600_001, "1", 1.5, True])
def test_no_other_value_is_taken_for_a_time_to_wait(ann, wait):
    fd = client.sealed("print(1)")
    tag = ann.begin("run", [fd], wait_ms=wait)
    os.close(fd)
    with pytest.raises(client.Refused) as no:
        ann.started(tag)
    assert (no.value.code, no.value.field) == ("bad_field", "wait_ms")


def test_a_hundred_at_once_on_the_command_line_all_run(open_server, brig, tmp_path):
    (tmp_path / "f.py").write_text("print(1)")
    argv = [brig, "run", tmp_path / "f.py"]
    runs = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "BRIG_SOCKET": str(open_server.path)}) for _ in range(100)]
    ends = [(*run.communicate(timeout=host.HANG), run.returncode) for run in runs]
    assert collections.Counter(ends) == {("1\n", "", 0): 100}


def test_on_the_command_line_no_wait_is_a_status_of_its_own(open_server, brig, tmp_path):
    (tmp_path / "f.py").write_text("print(1)")
    with open_server.connect() as root:
        runs = fill(root)
        done = subprocess.run([brig, "run", "--wait", "0", tmp_path / "f.py"], capture_output=True, text=True, env={**os.environ, "BRIG_SOCKET": str(open_server.path)})
        for run in runs:
            end(root, run)
    assert (done.returncode, done.stdout) == (75, "") and done.stderr.startswith("brig: 2 runs at once: your quota is used up; try again in "), done


# --- users in turn --------------------------------------------------------------------------------------------------------------

MANY_EACH = {"access": [{"uid": uid, "profiles": ["basic"], "runs": 64} for uid in (ANN, BOB, 0)]}


def waits_for_turn(ann, bob):
    """Whether one of many that were asked for at once had to wait. Each starts; so does what a second user asks for meanwhile."""
    asked = 4 * (os.cpu_count() or 1)
    if bob:
        assert bob.run("print(1)").stdout == "1\n"
    fd = client.sealed(SLEEP)
    tags = [ann.begin("run", [fd], limits=LONG) for _ in range(asked)]
    os.close(fd)
    waited = ann.ask("stats")["waiting"]
    runs = [ann.started(tag) for tag in tags]
    for run in runs:
        end(ann, run)
    return waited > 0


@pytest.fixture
def wide(start_daemon):
    made = start_daemon(MANY_EACH)
    made.path.chmod(0o666)
    return made


@pytest.mark.row("I5")
def test_beside_others_a_user_starts_a_few_runs_at_a_time_and_is_refused_none(wide):
    with wide.connect_as(ANN) as ann, wide.connect_as(BOB) as bob:
        assert host.poll(lambda: waits_for_turn(ann, bob))


@pytest.mark.control("I5")
def test_control_a_user_who_is_alone_starts_as_many_as_the_quota_has(wide):
    with wide.connect_as(ANN) as ann:
        assert not any(waits_for_turn(ann, None) for _ in range(3))
