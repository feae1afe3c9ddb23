"""What brigd counts: each figure moves when it should, agrees with the audit, and shows a user no more than `brig stats` does."""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading

import pytest

from rules import ANN, BOB, EVE, audit_log, end, rest, sleeping
from support import brig, client, host, metrics, runs, warm_load

RULES = {"access": [{"uid": ANN, "profiles": ["basic"], "runs": 2}, {"uid": 0, "runs": 64, "runs_per_minute": 1000000}]}
HISTOGRAMS = ["brig_run_wait_seconds", "brig_run_setup_seconds", "brig_run_wall_seconds", "brig_run_cpu_seconds", "brig_run_memory_peak_bytes"]


@pytest.fixture
def open_server(stock):
    made = stock.get(RULES)
    made.path.chmod(0o666)
    rest(made)
    return made


def grown(daemon, do, name, **labels):
    """By how much a figure grew while something was done."""
    before = metrics.page(daemon).sum(name, **labels)
    do()
    return metrics.page(daemon).sum(name, **labels) - before


# --- the page -----------------------------------------------------------------------------------------------

def test_prometheus_own_reader_understands_the_page_and_each_metric_has_a_type_and_a_sentence(daemon):
    daemon.run("pass")
    page = metrics.page(daemon)
    assert {family.type for family in page.families} == {"counter", "gauge", "histogram"}
    for family in page.families:
        assert family.name.startswith("brig_") and family.documentation.endswith("."), family
        assert family.type != "counter" or all(sample.name.endswith("_total") for sample in family.samples), family
    lines = page.text.splitlines()
    assert page.text.endswith("\n") and len(lines) == len(page.samples) + 2 * len(page.families), "nothing but samples and their heads"


def test_a_full_disk_is_no_success(daemon):
    with open("/dev/full", "w") as full:
        done = subprocess.run([brig.binary(), "metrics"], env=metrics.environment(daemon), stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr == "brig metrics: write to standard output: No space left on device\n", done


def test_promtool_finds_no_fault(daemon):
    if not shutil.which("promtool"):
        pytest.skip("missing program: promtool")
    daemon.run("pass")
    done = subprocess.run(["promtool", "check", "metrics"], input=metrics.page(daemon).text, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


RULES_FILE = host.REPO / "examples/alerts/brig.rules.yml"


@pytest.mark.requirement("A100")
def test_each_alert_of_the_examples_asks_for_figures_and_labels_that_there_are(daemon):
    page, asked = metrics.page(daemon), set()
    figures = {name: {label for label, _ in labels} for name, labels in page.samples}
    reasons = {labels["reason"] for labels, _ in page.of("brig_runs_total")}
    for expression in re.findall(r"^ *expr: (.*)$", RULES_FILE.read_text(), re.M):
        for name, labels in re.findall(r"\b(brig_\w+)(?:\{([^}]*)\})?", expression):
            asked.add(name)
            assert name in figures, f"{name} is no figure of brigd"
            for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
                assert label in figures[name] and (label != "reason" or value in reasons), expression
    assert len(asked) >= 5


def test_promtool_takes_the_alerts_of_the_examples():
    if not shutil.which("promtool"):
        pytest.skip("missing program: promtool")
    done = subprocess.run(["promtool", "check", "rules", RULES_FILE], capture_output=True, text=True)
    assert done.returncode == 0 and "6 rules found" in done.stdout, done.stdout + done.stderr


def test_histograms_are_histograms(daemon):
    daemon.run("pass")
    page = metrics.page(daemon)
    for name in HISTOGRAMS:
        profiles = {labels["profile"] for labels, _ in page.of(f"{name}_count")}
        assert "basic" in profiles and len(profiles) > 1
        for profile in profiles:
            buckets = [(float(labels["le"]), value) for labels, value in page.of(f"{name}_bucket", profile=profile)]
            bounds, counts = zip(*buckets)
            assert list(bounds) == sorted(bounds) and bounds[-1] == float("inf"), (name, bounds)
            assert list(counts) == sorted(counts), (name, profile, counts)
            count, total = page(f"{name}_count", profile=profile), page(f"{name}_sum", profile=profile)
            assert counts[-1] == count, (name, profile)
            assert total <= sum(bound * n for bound, n in zip(bounds, [counts[0], *(b - a for a, b in zip(counts, counts[1:]))]) if n), (name, profile)


def test_the_page_and_stats_agree(daemon):
    daemon.run("pass")
    page = metrics.page(daemon)
    with daemon.connect() as talk:
        stats = talk.ask("stats")
    assert page("brig_build_info", version=stats["brig"]) == 1
    assert page("brig_start_time_seconds") == pytest.approx(stats["started_at"], abs=0.01)
    assert page("brig_runs_started_total") == stats["runs"]["started"] and page("brig_connections") >= 1
    assert page.sum("brig_runs_total") == sum(stats["runs"]["ended"].values())
    assert {labels["profile"] for labels, _ in page.of("brig_ready_cells")} == {row["name"] for row in stats["profiles"]}
    assert page("brig_process_resident_memory_bytes", process="door") > 1 << 20 and page("brig_process_cpu_seconds_total", process="keeper") is not None
    assert runs.are_warm() or page("brig_zygotes", profile="strict") is None, "its runs are cold"


# --- runs ---------------------------------------------------------------------------------------------------

WAYS = [
    # how it ends, what does that
    ("exited", "print(1)", {}), ("exited", "raise SystemExit(3)", {}), ("signaled", "import os; os.kill(os.getpid(), 9)", {}),
    ("timeout_wall", "while True: pass", {"wall_ms": 300}), ("timeout_cpu", "while True: pass", {"cpu_ms": 200}),
    ("oom", "x = bytearray(1 << 30)\nprint(len(x))", {"memory_bytes": 64 << 20}), ("output_limit", "while True: print('x' * 4096)", {"output_bytes": 1024}),
]


@pytest.mark.diagonal("warm")
@pytest.mark.requirement("A96")
@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
@pytest.mark.parametrize("reason,program,limits", WAYS, ids=[f"{way[0]}-{n}" for n, way in enumerate(WAYS)])
def test_a_run_is_counted_by_profile_reason_and_warm(daemon, reason, program, limits, warm):
    if warm and runs.mode() == "cold":
        pytest.skip("the profiles of this session have no warm runs: --cold")
    assert not warm or warm_load.is_warm_again(daemon), daemon.words()
    before = metrics.page(daemon)
    ended = run_through_brig(daemon, program, limits, warm)
    after = metrics.page(daemon)
    assert ended["exit_reason"] == reason, ended
    labels = {"profile": "basic", "reason": reason, "warm": str(ended["warm"]).lower()}
    assert ended["warm"] == warm or "memory_bytes" in limits, "a cell of another size is not there before"
    assert after("brig_runs_total", **labels) - before("brig_runs_total", **labels) == 1
    assert after.sum("brig_runs_total") - before.sum("brig_runs_total") == 1, "and nowhere else"
    for name, key, scale in (("setup_seconds", "setup_ms", 1000), ("wall_seconds", "wall_ms", 1000), ("cpu_seconds", "cpu_ms", 1000), ("memory_peak_bytes", "memory_peak_bytes", 1)):
        count, total = ([page(f"brig_run_{name}_{part}", profile="basic") for page in (before, after)] for part in ("count", "sum"))
        assert count[1] - count[0] == (ended[key] is not None), f"{name}: {ended[key]}"
        assert total[1] - total[0] == pytest.approx((ended[key] or 0) / scale, rel=1e-6, abs=1e-6), name
    assert after("brig_run_wait_seconds_count", profile="basic") - before("brig_run_wait_seconds_count", profile="basic") == 1


def run_through_brig(daemon, program, limits, warm):
    """With a client that ends what writes too much, as the protocol wants it."""
    names = {"wall_ms": "--timeout", "cpu_ms": "--cpu-time", "memory_bytes": "--memory", "output_bytes": "--output"}
    options = [word for name, value in limits.items() for word in (names[name], str(value / 1000 if name.endswith("_ms") else value))]
    argv = [brig.binary(), "run", "--json", *options, *([] if warm else ["--cold"]), "-"]
    done = subprocess.run(argv, input=program, env=metrics.environment(daemon), capture_output=True, text=True, timeout=host.HANG)
    return json.loads(done.stdout)


def test_what_is_cancelled_and_whose_client_goes_are_told_apart(daemon):
    def cancel():
        with daemon.connect() as talk:
            end(talk, sleeping(talk))

    def go():
        with daemon.connect() as talk:
            run = sleeping(talk)
            run.close()
    assert grown(daemon, cancel, "brig_runs_total", reason="cancelled") == 1
    before = metrics.page(daemon).sum("brig_runs_total", reason="client_gone")
    go()
    assert host.poll(lambda: metrics.page(daemon).sum("brig_runs_total", reason="client_gone") == before + 1)


def test_each_profile_has_its_own(daemon):
    before = metrics.page(daemon)
    with daemon.connect() as talk:
        warm = json.dumps(talk.run("pass", profile="strict").record["warm"])
    after = metrics.page(daemon)
    assert after.sum("brig_runs_total", profile="strict", warm=warm) - before.sum("brig_runs_total", profile="strict", warm=warm) == 1
    assert after.sum("brig_runs_total", profile="basic") == before.sum("brig_runs_total", profile="basic")


def test_what_runs_and_what_waits_is_seen(open_server, ann):
    runs = [sleeping(ann), sleeping(ann)]
    fd = client.sealed("print(1)")
    tag = ann.begin("run", [fd], wait_ms=600_000)
    os.close(fd)
    assert ann.until(lambda body: body.get("tag") == tag).body["event"] == "waiting"
    page = metrics.page(open_server)
    assert (page("brig_runs_running", profile="basic"), page("brig_runs_running", profile="strict"), page("brig_runs_waiting")) == (2, 0, 1)
    before = page("brig_run_wait_seconds_sum", profile="basic")
    waits = page("brig_run_wait_seconds_count", profile="basic")
    for run in runs:
        end(ann, run)
    assert ann.started(tag).finish().stdout == "1\n"
    page = metrics.page(open_server)
    assert (page("brig_runs_running", profile="basic"), page("brig_runs_waiting")) == (0, 0)
    assert page("brig_run_wait_seconds_count", profile="basic") == waits + 1 and page("brig_run_wait_seconds_sum", profile="basic") > before


# --- refusals -----------------------------------------------------------------------------------------------

def refused(talk, op, **keys):
    with pytest.raises(client.Refused) as no:
        talk.ask(op, **keys)
    return no.value.code


@pytest.mark.parametrize("code,op,keys", [
    ("bad_field", "list", {"nothing": 1}), ("unknown_request", "dance", {}), ("unknown_profile", "explain", {"profile": "none"}),
    ("not_found", "cancel", {"run": "none"}), ("above_ceiling", "exec", {"argv": ["true"], "limits": {"wall_ms": 86400000}}), ("bad_descriptors", "run", {}),
])
def test_a_request_that_is_refused_is_counted_by_its_code(daemon, talk, code, op, keys):
    assert grown(daemon, lambda: refused(talk, op, **keys), "brig_refused_total", code=code) == 1
    assert grown(daemon, lambda: refused(talk, op, **keys), "brig_refused_total") == 1, "and by no other"


def test_no_json_is_counted(daemon, talk):
    def say():
        talk.send(b"{")
        assert talk.next().body["error"]["code"] == "bad_message"
    assert grown(daemon, say, "brig_refused_total", code="bad_message") == 1


def test_what_is_busy_is_counted_when_it_is_refused(open_server, ann):
    runs = [sleeping(ann), sleeping(ann)]

    def ask_for_more():
        with pytest.raises(client.Refused):
            ann.start("pass")
    assert grown(open_server, ask_for_more, "brig_refused_total", code="busy") == 1
    assert metrics.page(open_server).sum("brig_runs_total", reason="busy") == 0, "it never was a run"
    for run in runs:
        end(ann, run)


def test_a_client_that_is_turned_away_is_counted(open_server):
    def come():
        with open_server.connect_as(EVE) as eve:
            assert eve.next().body["error"]["code"] == "denied"
    assert grown(open_server, come, "brig_refused_total", code="denied") == 1
    assert grown(open_server, come, "brig_connections_total") == 1, "that of the page itself"


# --- access -------------------------------------------------------------------------------------------------

def as_user(uid):
    def become():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return become


def test_a_user_of_one_profile_sees_the_figures_of_that_one(open_server, ann):
    ann.run("pass")
    assert {row["name"] for row in ann.ask("stats")["profiles"]} == {"basic"}
    assert ann.ask("metrics", profile="basic")["profile"] == "basic"
    assert refused(ann, "metrics", profile="strict") == "unknown_profile"


@pytest.mark.parametrize("uid,profiles", [(ANN, {"basic"}), (BOB, None), (EVE, None)], ids=["of the list", "of no row", "another"])
def test_the_page_is_for_whom_the_service_lets_in_and_has_what_they_may_use(open_server, uid, profiles):
    open_server.folder.chmod(0o755)
    done = metrics.ask(open_server, preexec_fn=as_user(uid))
    if profiles is None:
        assert (done.returncode, done.stdout) == (1, "") and len(done.stderr.splitlines()) == 1, done
        return
    page = metrics.Page(done.stdout)
    assert {labels["profile"] for name in ("brig_runs_total", "brig_ready_cells", "brig_zygotes") for labels, _ in page.of(name)} == profiles


def test_neither_users_nor_programs_nor_what_clients_call_things_are_on_the_page(daemon, token):
    with daemon.connect() as talk:
        talk.run(f"print('{token}')", args=[token], env=[f"A={token}"])
        refused(talk, "explain", profile=token.replace("-", ""))
        refused(talk, token)
    text = metrics.page(daemon).text
    assert token not in text and token.replace("-", "") not in text and "uid" not in text and "python3" not in text


def test_a_file_that_could_not_be_a_name_makes_no_label(start_daemon):
    scratch, profiles = warm_load.only_basic("never")
    with scratch:
        text = (pathlib.Path(profiles) / "basic.json").read_text()
        for name in ('quo"te', "new\nline", "back\\slash", "caf\u00e9", "A", "a b", "x" * 64):
            (pathlib.Path(profiles) / f"{name}.json").write_text(text)
        (pathlib.Path(profiles) / "one.more-name_1.json").write_text(text)
        daemon = start_daemon(env={"BRIG_PRESETS": str(profiles)})
        seen = {labels["profile"] for labels, _ in metrics.page(daemon).of("brig_runs_running")}
    assert {"basic", "one.more-name_1"} <= seen and all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.") for name in seen), seen


# --- sums ---------------------------------------------------------------------------------------------------

def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.requirement("A7")
def test_fifty_runs_at_once_are_counted_once_each_never_backwards_and_as_the_audit_has_them(start_daemon):
    with audit_log() as log:
        daemon = start_daemon({"access": [{"uid": 0, "runs": 8, "runs_per_minute": 1000000}], "audit": {"file": str(log)}})
        pages, done = [], threading.Event()

        def watch():
            while not done.is_set():
                pages.append(metrics.page(daemon))

        def one(n):
            with daemon.connect() as talk:
                if n % 10 == 9:
                    return refused(talk, "explain", profile="none")
                record = talk.run("print(1)" if n % 2 else "raise SystemExit(1)", wait_ms=600_000, profile="strict" if n % 5 == 0 else "basic").record
                return record["exit_reason"], record["profile"], record["warm"]
        watcher = threading.Thread(target=watch)
        watcher.start()
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            ends = collections.Counter(pool.map(one, range(50)))
        done.set()
        watcher.join()
        pages.append(metrics.page(daemon))
        last, lines = pages[-1], lines_of(log)
    assert last.sum("brig_runs_total") == last("brig_runs_started_total") == 45
    assert last("brig_refused_total", code="unknown_profile") == 5 == last.sum("brig_refused_total")
    assert last("brig_audit_entries_total") == len(lines) == 50
    assert ends["unknown_profile"] == 5
    for profile in ("basic", "strict"):
        for warm in (False, True):
            assert last("brig_runs_total", profile=profile, reason="exited", warm=str(warm).lower()) == ends["exited", profile, warm], ends
        walls = [line["wall_ms"] / 1000 for line in lines if (line["exit_reason"], line["profile"]) == ("exited", profile)]
        assert last("brig_run_wall_seconds_count", profile=profile) == last("brig_run_wait_seconds_count", profile=profile) == len(walls)
        assert last("brig_run_wall_seconds_sum", profile=profile) == pytest.approx(sum(walls), abs=1e-4)
    monotone = [key for key in last.samples if key[0].endswith(("_total", "_bucket", "_count", "_sum"))]
    for before, after in zip(pages, pages[1:]):
        back = [key for key in monotone if key in before.samples and after.samples[key] < before.samples[key]]
        assert not back, back


def test_lines_that_the_audit_loses_are_counted(start_daemon):
    with audit_log() as log:
        daemon = start_daemon({"audit": {"file": str(log)}})
        daemon.run("pass")
        assert metrics.page(daemon)("brig_audit_file_lost_total") == 0
        shutil.rmtree(log.parent)
        daemon.run("pass")
        assert metrics.page(daemon)("brig_audit_file_lost_total") == 1
        said = subprocess.run([brig.binary(), "stats"], env=metrics.environment(daemon), capture_output=True, text=True).stdout
        assert "by the file 1\n" in said, said


def test_refusals_that_the_audit_does_not_write_are_counted(start_daemon):
    """Of one user not more than the manual says."""
    most = int(re.search(r"At most (\d+) refusals of one user", (host.REPO / "man/audit-log.mdoc.in").read_text())[1])
    daemon = start_daemon()
    with daemon.connect() as talk:
        for _ in range(most + 10):
            refused(talk, "dance")
    page = metrics.page(daemon)
    counted = page("brig_refused_total", code="unknown_request"), page("brig_audit_entries_total"), page("brig_audit_suppressed_total")
    assert counted == (most + 10, most + 10, 10)


@pytest.mark.nightly
def test_a_zygote_that_is_started_anew_is_counted(only_basic, start_daemon):
    daemon = start_daemon(env={"BRIG_PRESETS": str(only_basic)})
    daemon.settle()
    assert warm_load.is_warm_again(daemon)

    def figures():
        page = metrics.page(daemon)
        return page("brig_zygotes", profile="basic"), page("brig_zygotes_started_total", profile="basic")
    assert host.poll(lambda: figures() == (1, 1)), figures()
    os.kill(daemon.one("zygote"), signal.SIGKILL)
    assert host.poll(lambda: figures() == (1, 2)), (figures(), daemon.words())


def test_cells_that_stand_ready_are_counted(daemon):
    daemon.settle()
    assert host.poll(lambda: metrics.page(daemon)("brig_ready_cells", profile="basic") == 2)
    assert metrics.page(daemon)("brig_building_cells", profile="basic") is not None


@pytest.mark.nightly
def test_after_a_restart_counting_begins_at_0_and_the_start_is_a_later_one(start_daemon):
    daemon = start_daemon()
    daemon.run("pass")
    before = metrics.page(daemon)
    daemon.restart()
    after = metrics.page(daemon)
    assert (before.sum("brig_runs_total"), after.sum("brig_runs_total")) == (1, 0)
    assert after("brig_start_time_seconds") > before("brig_start_time_seconds")
