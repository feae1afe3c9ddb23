"""A thousand runs of fifty clients at once: none is lost, none is mixed up with another, and the daemon is as it was."""
import concurrent.futures
import os
import threading
import time

import pytest

import left
from support import client
from support import daemon as daemons
from support import host, tiers

CLIENTS = 50
LARGEST = 6 << 20 # bytes that the server, and the monitor, may hold


def ask_for(daemon, who, each, gate):
    """One client: [(what it wanted, what it got)]. Most are commands, which cost little; some are Python."""
    found = []
    with daemon.connect() as talk:
        gate.wait()
        for n in range(each):
            word = f"client {who} run {n}"
            found.append((word, ask_until_not_busy(talk, n, word)))
    return found


def ask_until_not_busy(talk, n, word):
    """As the answer says: a monitor that does not get a processor for long has as much to do as it can."""
    while True:
        try:
            if n % 5 == 4:
                return talk.run("import sys; print(sys.argv[1]); print('told', sys.argv[1], file=sys.stderr)", args=[word])
            return talk.command("sh", "-c", 'echo "$1"; echo "told $1" >&2', "sh", word)
        except client.Refused as refused:
            assert refused.code == "busy", refused
            time.sleep(refused.error["retry_after_ms"] / 1000)


def crowd(daemon, clients, each):
    gate = threading.Barrier(clients)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return [row for rows in pool.map(lambda who: ask_for(daemon, who, each, gate), range(clients)) for row in rows]


def check(daemon, clients, each):
    before = left.Snapshot()
    assert all(good(*row) for row in crowd(daemon, clients, 2)), "the first ones" # of as many clients at once: what so many cells take is not what stays of each
    own = daemon.rest()
    take = lambda: {pid: (daemons.lasting_descriptors(pid), daemons.resident(pid)) for pid in own}
    started, first = count(daemon), take()
    found = crowd(daemon, clients, each)
    wrong = [f"{word}: {ended}" for word, ended in found if not good(word, ended)]
    assert not wrong, f"{len(wrong)} of {len(found)}: {wrong[0]}"
    assert len({ended.id for _, ended in found}) == clients * each
    assert count(daemon) - started == clients * each
    grown = lambda: {daemons.kind_of(pid): (first[pid], now) for pid, now in take().items() if now[0] > first[pid][0] or now[1] > first[pid][1] + (1 << 20)}
    assert host.poll(lambda: not grown()), grown()
    assert not left.wrong(before), left.wrong(before)


def good(word, ended):
    return (ended.stdout, ended.stderr, ended.reason, ended.status, ended.left) == (f"{word}\n", f"told {word}\n", "exited", 0, None)


def count(daemon):
    with daemon.connect() as talk:
        return talk.ask("stats")["runs"]["started"]


@pytest.mark.parametrize("each", tiers.amounts(1, 20))
def test_runs_of_fifty_clients_at_once(many, each):
    check(many, CLIENTS, each)


def test_server_and_monitor_are_small(many):
    many.run("pass")
    for kind in ("server", "monitor"):
        assert daemons.resident(many.one(kind)) <= LARGEST, f"{kind}: {daemons.resident(many.one(kind)) >> 10} KiB"


@pytest.mark.long
def test_twenty_thousand_runs_of_fifty_clients(many):
    check(many, CLIENTS, int(os.environ.get("BRIG_DAEMON_RUNS", "20000")) // CLIENTS)
