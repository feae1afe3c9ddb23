"""bench/warm prints every figure that it names, and its clients judge what they measure. Speed is judged by who reads it."""
import os
import re
import subprocess

import pytest

from support import daemon as daemons
from support import host, warm

BENCH = host.REPO / "bench"
CLIENTS = host.build_dir() / "bench"
WARM, WAYS, PLACES = ("ready", "demand"), ("ready", "demand", "cold"), ("p50", "p95", "p99")
LATENCY = {f"warm.{pace}{kind}.{way}.{place} ms" for pace in ("", "paced.") for kind in ("first_output", "record") for way in WAYS for place in PLACES}
LATENCY |= {f"warm.tight.{kind}.{way}.{place} ms" for kind in ("first_output", "record") for way in WARM for place in PLACES}
SUSTAINED = {f"warm.sustained.{way}.{n}_clients.{figure}" for way in WARM for n in (4, 16) for figure in ("rate /s", "p50 ms", "p99 ms")}
BOMBS = {f"warm.bombs.ready.4_clients.{figure}" for figure in ("p50 ms", "p99 ms", "ratio_p99 x", "lost runs")}
MCP = {f"warm.mcp.tools_call.{place} ms" for place in PLACES}
WHOLE = {f"warm.{pace}whole_process.{way}.{place} ms" for pace in ("", "paced.", "tight.") for way in WARM + ("bare",) for place in PLACES}
WHOLE |= {f"warm.whole_process.{way}ratio_bare x" for way in ("", "demand.")}
PANDAS = {f"warm.pandas.{kind}.{way}.{place} ms" for kind in ("first_output", "record", "whole_process") for way in WARM for place in PLACES}
ROTATION = {f"warm.rotation.{key}.{place} ms" for key in ("steady", "replacing") for place in PLACES} | {"warm.rotation.ratio_p99 x"}
MEMORY = {f"warm.memory.{profile}.{kind} MB" for profile in ("basic", "data_science") for kind in ("pss", "page_tables", "kernel", "fork_pss", "supervisor_pss")}


@pytest.fixture
def measured(jail, tmp_path):
    """A function that runs the bench and returns (its whole output, the names and units of its figures)."""
    tmp_path.chmod(0o755) # users of the jails have to reach what is in it
    if lack := host.lacks("rootfs:data-science"):
        pytest.skip(lack)

    def run(*words):
        argv = ["/usr/bin/python3", BENCH / "warm.py", "--quick", "--rounds", "3", "--seconds", "0.3", *words]
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout, {f"{name} {unit}" for name, unit in re.findall(r"^(warm\.\S+) -?[\d.]+ (\S+)$", done.stdout, re.M)}
    yield run
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("brig-")] == []


@pytest.mark.nightly
def test_figures_of_a_connected_client_have_their_names_and_a_table_between_its_marks(measured, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- bench warm --table: begin -->\nstale\n<!-- bench warm --table: end -->\nbelow\n")
    _, names = measured("--only", "latency,sustained,bombs,mcp", "--table", page)
    assert (LATENCY | SUSTAINED | BOMBS | MCP) - names == set()
    written = page.read_text()
    assert written.startswith("above\n<!--") and written.endswith("end -->\nbelow\n") and "stale" not in written
    assert "| request to the first output byte, ready fork |" in written and "    ./dev bench warm --quick" in written


@pytest.mark.long
def test_figures_of_whole_processes_and_of_memory_have_their_names(measured):
    said, names = measured("--only", "whole,pandas,rotation,memory")
    assert (WHOLE | PANDAS | ROTATION | MEMORY) - names == set()
    for peer in ("bwrap_seccomp", "crun"):
        assert f"warm.whole_process.ratio_{peer} x" in names or f"left out: {peer.split('_')[0]}" in said


def test_a_part_that_is_none_is_refused_with_the_list(brig):
    done = subprocess.run(["/usr/bin/python3", BENCH / "warm.py", "--only", "latency,lunch"], capture_output=True, text=True)
    assert done.returncode == 2 and "no part lunch; there are: floor, latency, " in done.stderr


@pytest.mark.sample(3)
@pytest.mark.parametrize("bench, words, said", [
    ("warm", ["--rounds", "0"], "--rounds: '0' is no whole number above 0"),
    ("warm", ["--rounds", "-1"], "--rounds: '-1' is no whole number above 0"),
    ("warm", ["--seconds", "0"], "--seconds: more than 0"),
    ("warm", ["--ready", "0"], "--ready: from 1 to 64"),
    ("warm", ["--ready", "65"], "--ready: from 1 to 64"),
    ("warm", ["--without", "nobody"], "--without: no peer nobody; there are: bare, bwrap, "),
    ("cold", ["--without", "nobody"], "--without: no peer nobody; there are: brig, "),
    *((name, ["--rounds", "0"], "--rounds: '0' is no whole number above 0") for name in ("cold", "rootless", "steps", "daemon", "mcp", "api")),
])
def test_a_value_that_would_measure_nothing_is_refused_before_anything_is_started(brig, bench, words, said):
    done = subprocess.run(["/usr/bin/python3", BENCH / f"{bench}.py", *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr, done


def order(argv, said, env=None):
    return subprocess.run([str(word) for word in argv], input=said, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", **(env or {})})


def kinds(done):
    return [line.split()[0] for line in done.stdout.splitlines()]


def test_each_process_that_was_ordered_has_a_figure(brig):
    done = order([CLIENTS / "spawn_client", "1\n", "echo", "1"], "paced 3 0\nsustained 0.05 4\n")
    assert done.returncode == 0 and kinds(done)[:6] == ["run"] * 3 + ["cpu", "took", "done"] and kinds(done).count("run") >= 7, done


def test_each_process_has_a_number_and_a_file_of_its_own(brig, tmp_path):
    (tmp_path / "given").write_text("text")
    program = f'[ "$(cat <&7)" = text ] && echo >"{tmp_path}/$0"'
    done = order([CLIENTS / "spawn_client", "--open", f"7={tmp_path}/given", "", "sh", "-c", program, "ran-@N@"], "paced 3 0\n")
    assert done.returncode == 0 and len(list(tmp_path.glob("ran-*"))) == 3, done


@pytest.mark.parametrize("command, words", [
    (["sh", "-c", "echo 2"], 'sh: status 0, printed "2'), (["sh", "-c", "echo 1; echo why >&2; exit 3"], "status 3"),
    (["sh", "-c", "echo 1; kill -9 $$"], "signal 9"), (["no-such-program"], "no-such-program: No such file"),
], ids=["output", "status", "signal", "program"])
def test_a_process_that_did_not_do_its_work_has_no_figure(brig, command, words):
    done = order([CLIENTS / "spawn_client", "1\n", *command], "paced 3 0\n")
    assert done.returncode == 1 and words in done.stderr and done.stdout == "", done


def test_an_order_that_is_none_is_refused(brig):
    done = order([CLIENTS / "spawn_client", "1\n", "echo", "1"], "faster\n")
    assert done.returncode == 1 and done.stderr == "no such order: faster\n"


@pytest.fixture(scope="module")
def service(jail):
    scratch, profiles = warm.scratch_profiles("basic")
    config = {"runs": 16, "access": [{"uid": 0, "runs": 16, "runs_per_minute": 100000}]}
    with daemons.Daemon(config, env={"BRIG_PRESETS": str(profiles)}) as one:
        assert host.poll(lambda: one.run("pass").record["warm"])
        yield one
    scratch.cleanup()


@pytest.fixture
def ask(service, tmp_path):
    def run(program, expect, said, *options):
        (tmp_path / "program.py").write_text(program)
        return order([CLIENTS / "warm_client", *options, tmp_path / "program.py", expect], said, {"BRIG_SOCKET": str(service.path)})
    return run


def test_a_run_has_figures_of_first_output_record_and_set_up(ask):
    done = ask("print(1)", "1\n", "paced 3 0\n", "--warm")
    rows = [[int(us) for us in line.split()[1:]] for line in done.stdout.splitlines() if line.startswith("run ")]
    assert done.returncode == 0 and len(rows) == 3, done
    assert all(0 < first <= record and 0 < setup <= record for first, record, setup in rows), rows


@pytest.mark.parametrize("program, expect, options, words", [
    ("print(2)", "1\n", ["--warm"], 'printed "2'), ("print(1); exit(3)", "1\n", ["--warm"], '"exit_code":3'), ("print(1)", "1\n", [], '"warm":true'),
    ("print(1)", "1\n", ["--warm", "--keys", '"profile":"none"'], "unknown_profile"),
], ids=["output", "status", "way", "profile"])
def test_a_run_that_is_not_what_it_should_be_has_no_figure(ask, program, expect, options, words):
    for said in ("paced 1 0\n", "sustained 0.05 2\n"):
        done = ask(program, expect, said, *options)
        assert done.returncode == 1 and words in done.stderr and done.stdout == "", done


@pytest.mark.nightly
def test_every_tenth_run_beside_bombs_is_one(ask, tmp_path):
    for name, text in (("spin", "while True: pass"), ("flood", "while True: print('x' * 65536)")):
        (tmp_path / name).write_text(text)
    bombs = ["--bomb-keys", '"limits":{"wall_ms":100}', "--bomb", tmp_path / "spin", "--bomb", tmp_path / "flood"]
    for seconds in 1.5, 6, 24: # a slow host has too few runs in one
        done = ask("print(1)", "1\n", f"sustained {seconds} 4\n", "--warm", *bombs)
        found = kinds(done)
        if done.returncode or {"spin", "flood"} <= set(found):
            break
    assert done.returncode == 0 and {"spin", "flood"} <= set(found), done
    assert found.count("spin") + found.count("flood") <= found.count("run") / 9 + 4


def test_a_service_that_is_not_there_is_told(brig, tmp_path):
    (tmp_path / "program.py").write_text("print(1)")
    done = order([CLIENTS / "warm_client", tmp_path / "program.py", "1\n"], "paced 1 0\n", {"BRIG_SOCKET": str(tmp_path / "none.sock")})
    assert done.returncode == 1 and "there is no such socket" in done.stderr
