"""brig audit: what is in the file of the audit comes out, filtered, and nothing in it can hurt who reads it."""
import datetime
import json
import os
import pathlib
import re
import subprocess

import pytest

from support import brig as tool
from support import host

UUID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
PRINTABLE = set(map(chr, range(32, 127))) | {"\n"}


def moment(**ago):
    then = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(**ago)
    return then.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def entry(**keys):
    return {"time": "2026-11-20T14:03:22.000000Z", "exit_reason": "exited", "exit_code": 0, "op": "run", "profile": "basic",
            "peer_uid": 1000, "peer_pid": 42, "peer_comm": "python3", **keys}


def lines(*entries):
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in entries)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.jsonl"


@pytest.fixture
def audit(brig, log):
    """audit("--uid", "5") -> what brig audit says about the log."""
    def run(*options, file=log, text=True):
        argv = [brig, "audit", *(["--file", file] if file else []), *options]
        return subprocess.run(argv, capture_output=True, text=text, timeout=host.HANG, env=tool.environment())
    return run


def comms(done):
    return re.findall(r" comm (\S+)", done.stdout)


# --- what comes out ---

def test_an_entry_is_one_line_for_people(audit, log):
    log.write_text(lines(entry(run_id=UUID, code_bytes=12, wall_ms=31.204, limits_granted={"pids": 64})))
    done = audit()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"2026-11-20T14:03:22.000000Z exited 0 op run profile basic run {UUID} uid 1000 pid 42 comm python3 code_bytes 12 wall_ms 31.204\n"


@pytest.mark.requirement("A100", "A105", "B9", "B38")
def test_json_prints_each_entry_with_every_key(audit, log):
    given = entry(limits_asked={"cpus": 0.5, "memory_bytes": 1 << 26}, cpu_ms=0.125)
    log.write_text(lines(given, entry(peer_comm="second")))
    first, second = map(json.loads, audit("--json").stdout.splitlines())
    assert {key: value for key, value in first.items() if value is not None} == given
    assert second["peer_comm"] == "second" and {"suppressed", "code_sha256", "limits_granted", "why"} <= set(second)


def test_predecessors_come_first_the_oldest_of_them_at_the_beginning(audit, log):
    for number, comm in ((".10", "a"), (".2", "b"), (".1", "c"), ("", "d")):
        pathlib.Path(f"{log}{number}").write_text(lines(entry(peer_comm=comm)))
    pathlib.Path(f"{log}.old").write_text(lines(entry(peer_comm="no")))
    assert comms(audit()) == ["a", "b", "c", "d"]


def test_a_file_that_is_being_renamed_is_no_reason_to_fail(audit, log):
    pathlib.Path(f"{log}.1").write_text(lines(entry(peer_comm="c")))
    assert comms(audit()) == ["c"]


def test_an_empty_file_has_no_lines(audit, log):
    log.write_text("")
    done = audit()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- filters ---

MANY = [
    entry(peer_comm="a", run_id=UUID),
    entry(peer_comm="b", peer_uid=1001, exit_reason="oom", exit_code=None),
    entry(peer_comm="c", profile="strict"),
    entry(peer_comm="d", peer_uid=1001, exit_reason="denied", error="busy"),
    entry(peer_comm="e", exit_reason="denied", error="above_ceiling", profile="no such\nprofile"),
]
FILTERS = [
    ((), "abcde"),
    (("--run", UUID), "a"),
    (("--run", UUID[:-1]), ""),
    (("--uid", "1001"), "bd"),
    (("--uid=1000",), "ace"),
    (("--profile", "strict"), "c"),
    (("--profile", "no such\nprofile"), "e"),
    (("--reason", "oom"), "b"),
    (("--reason", "denied"), "de"),
    (("--reason", "busy"), "d"),
    (("--uid", "1001", "--reason", "denied"), "d"),
    (("--uid", "1001", "--profile", "strict"), ""),
]


@pytest.mark.parametrize("options, found", FILTERS, ids=[" ".join(row[0]).replace("\n", " ") or "no filter" for row in FILTERS])
@pytest.mark.requirement("A117")
def test_a_filter_leaves_what_it_says(audit, log, options, found):
    log.write_text(lines(*MANY))
    done = audit(*options)
    assert done.returncode == 0 and "".join(comms(done)) == found, done


@pytest.mark.parametrize("since, found", [("10m", "c"), ("2h", "bc"), ("30s", ""), ("3d", "abc"), ("2020-01-01", "abc"), ("2020-01-01T00:00:00+02:00", "abc")])
@pytest.mark.requirement("A117")
def test_since_takes_ages_days_and_times(audit, log, since, found):
    log.write_text(lines(*[entry(time=moment(minutes=m), peer_comm=c) for m, c in ((2000, "a"), (100, "b"), (5, "c"))]))
    assert "".join(comms(audit("--since", since))) == found


def test_since_is_exact(audit, log):
    log.write_text(lines(entry(peer_comm="a"), entry(peer_comm="b", time="2026-11-20T14:03:22.000001Z")))
    assert "".join(comms(audit("--since", "2026-11-20T14:03:22Z"))) == "ab"
    assert "".join(comms(audit("--since", "2026-11-20T15:03:22.000001+01:00"))) == "b"


BAD = [
    (("--since", "yesterday"), "--since: "), (("--since", "10"), "--since: "), (("--since", ""), "--since: "), (("--uid", "alice"), "--uid: "),
    (("--uid", "-1"), "--uid: "), (("--uid", "4294967296"), "--uid: "), (("--reason", "OOM"), "--reason: "), (("--reason", "timeout"), "timeout_wall, timeout_cpu"), (("--run", ""), "--run: "),
    (("--profile", "x" * 65), "--profile: "), (("--uid", "1", "--uid", "2"), "--uid: given twice"), (("--nothing",), "--nothing"),
    (("word",), "word: one argument too many"), (("--file", ""), "--file: "),
]


@pytest.mark.parametrize("options, why", BAD, ids=[" ".join(row[0])[:40] for row in BAD])
def test_an_option_that_makes_no_sense_is_named(audit, options, why):
    done = audit(*options)
    assert done.returncode == 2 and done.stdout == "" and why in done.stderr and done.stderr.count("\n") == 1, done


# --- a file that cannot be trusted ---

HOSTILE = ["\x1b[2J\x1b[1;1H", "a\nb", "a\x7fb", "\u009b31m", "a\u2028b", "a\u202eb", "x uid 0 comm y", '" uid 0', "\\", "\U0001f600"]


@pytest.mark.parametrize("name", HOSTILE, ids=[ascii(name) for name in HOSTILE])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["for people", "as JSON"])
def test_no_name_reaches_the_terminal_as_it_is(audit, log, name, form):
    log.write_text(lines(entry(peer_comm=name, profile=name, why=name)))
    out = audit(*form).stdout
    assert out.count("\n") == 1 and set(out) <= PRINTABLE, out
    if form:
        assert json.loads(out)["peer_comm"] == name
    else:
        assert re.search(r' comm "(\\.|[^"\\])*" ', out), "quoted, so that it ends where it says"


GARBLED = {
    "cut by a crash": lines(entry())[:50],
    "a terminal's escape sequence": "\x1b[2J",
    "no object": "[1]",
    "a key that no line has": lines(entry(surprise=1)).strip(),
    "a key twice": '{"time": "2026-11-20T14:03:22Z", "exit_reason": "oom", "exit_reason": "oom"}',
    "longer than a line is": lines(entry(why="x" * 5000)).strip(),
    "a name longer than a name is": lines(entry(peer_comm="x" * 17)).strip(),
    "a NUL": lines(entry()).strip() + "\0",
    "nested a thousand deep": "[" * 1000 + "]" * 1000,
    "blanks": "   ",
}


@pytest.mark.parametrize("what", GARBLED)
def test_a_garbled_line_is_counted_and_the_others_are_read(audit, log, what):
    log.write_text(lines(entry(peer_comm="a"), GARBLED[what], entry(peer_comm="b"), GARBLED[what], entry(peer_comm="c")))
    done = audit()
    assert (done.returncode, comms(done)) == (0, ["a", "b", "c"]), done
    assert done.stderr == f"brig audit: 2 lines could not be read, the first is {log}:2\n"


def test_bytes_that_are_no_text_are_a_garbled_line(audit, log):
    log.write_bytes(lines(entry(peer_comm="a")).encode() + b"\xff\xfe\n" + lines(entry(peer_comm="b")).encode() + b'{"half')
    done = audit(text=False)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 2 and b"2 lines could not be read" in done.stderr


def test_a_line_without_an_end_takes_no_memory(brig, log):
    with open(log, "wb") as out:
        out.truncate(200 << 20)
        out.seek(0, os.SEEK_END)
        out.write(b"\n" + lines(entry(peer_comm="b")).encode())
    # ru_maxrss would count what this process holds, too: it is taken over by exec
    done = subprocess.run(["prlimit", f"--data={100 << 20}", brig, "audit", "--file", log], env=tool.environment(), capture_output=True, text=True, timeout=host.HANG)
    assert done.returncode == 0 and " comm b" in done.stdout, done


def test_an_empty_line_is_no_garbled_one(audit, log):
    log.write_text(lines(entry(peer_comm="a")) + "\n\n" + lines(entry(peer_comm="b")))
    assert (comms(audit()), audit().stderr) == (["a", "b"], "")


def test_what_is_no_file_is_refused_at_once(audit, log, tmp_path):
    os.mkfifo(log)
    done = audit()
    assert done.returncode == 1 and f"{log}: not a regular file" in done.stderr, done
    done = audit(file=tmp_path)
    assert done.returncode == 1 and "not a regular file" in done.stderr, done
    done = audit(file=tmp_path / "none")
    assert done.returncode == 1 and done.stderr == f"brig audit: {tmp_path}/none: No such file or directory\n"


def test_output_that_cannot_be_written_is_no_success(brig, log):
    log.write_text(lines(*[entry()] * 1000))
    with open("/dev/full", "w") as full:
        done = subprocess.run([brig, "audit", "--file", log], stdout=full, stderr=subprocess.PIPE, text=True, timeout=host.HANG)
    assert done.returncode == 1 and "No space left on device" in done.stderr


# --- which file ---

@pytest.fixture
def configured(needs_root, brig, tmp_path):
    """Runs brig audit where /etc is one with this /etc/brig/brig.json, or none (None), in a mount namespace of its own."""
    if not host.lacks("tool:unshare") is None:
        pytest.skip("needs the program unshare")

    def run(config, *options):
        etc = tmp_path / "etc"
        (etc / "brig").mkdir(parents=True, exist_ok=True)
        if config is not None:
            (etc / "brig" / "brig.json").write_text(config)
        script = 'mount --bind "$1" /etc && shift && exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", etc, brig, "audit", *options], capture_output=True, text=True, timeout=host.HANG)
    return run


def test_the_configuration_names_the_file(configured, log):
    log.write_text(lines(entry(peer_comm="a")))
    done = configured(json.dumps({"runs": 3, "audit": {"file": str(log), "keep": 2}}))
    assert (done.returncode, comms(done)) == (0, ["a"]), done


@pytest.mark.parametrize("config", [None, "{}", '{"audit": {"max_bytes": "1M"}}'], ids=["no configuration", "an empty one", "one without a file"])
def test_where_there_is_no_file_the_question_for_the_journal_is_told(configured, config):
    done = configured(config, "--uid", "1000", "--reason", "busy", "--profile", "basic; rm -rf /", "--run", UUID, "--since", "2026-11-20")
    assert done.returncode == 1 and done.stdout == "", done
    assert f"type: journalctl _SYSTEMD_UNIT=brigd.service BRIG_RUN_ID={UUID} BRIG_PEER_UID=1000 BRIG_EXIT_REASON=busy --since @1795132800\n" in done.stderr


def test_a_configuration_that_is_garbled_says_so(configured):
    done = configured('{"audit": ')
    assert done.returncode == 1 and "/etc/brig/brig.json: " in done.stderr, done
