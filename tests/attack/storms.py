"""What a client can do to a service by asking it: functions that go on for so many seconds, each in a process of its own. No program of theirs
does any harm."""
import collections
import threading
import time

from support import client

Storm = collections.namedtuple("Storm", "go about")
STORMS = {}
AT_ONCE = 8 # of a process: two of them have as many runs as one user may by preset
CONNECTIONS = 50


def storm(about):
    def register(go):
        STORMS[go.__name__.replace("_", " ")] = Storm(go, about)
        return go
    return register


def until(seconds, once):
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        once()
        rounds += 1
    return rounds


def or_busy(once):
    """A client that is told to come again later comes again at once."""
    def asked():
        try:
            once()
        except client.Refused as e:
            assert e.code == "busy", e
    return asked


def side_by_side(seconds, n, make):
    """make() gives each thread something of its own to do; how often it was done."""
    rounds, all_ = collections.deque(), [make() for _ in range(n)]
    started = [threading.Thread(target=lambda once=once: rounds.append(until(seconds, once))) for once in all_]
    for one in started:
        one.start()
    for one in started:
        one.join()
    assert len(rounds) == n, "a thread was lost"
    return sum(rounds)


@storm("starts runs without end, sixteen at once")
def starts(path, seconds):
    def make():
        talk = client.Client.at(path)
        return or_busy(lambda: talk.run("pass"))
    return side_by_side(seconds, AT_ONCE, make)


@storm("starts runs that end by their wall time of 20 ms, sixteen at once")
def timeouts(path, seconds):
    def make():
        talk = client.Client.at(path)
        return or_busy(lambda: talk.run("while True: pass", limits={"wall_ms": 20}))
    return side_by_side(seconds, AT_ONCE, make)


@storm("cancels each run as soon as it has started, sixteen at once")
def cancelled_runs(path, seconds):
    def make():
        talk = client.Client.at(path)

        def once():
            run = talk.start("import time; time.sleep(600)")
            talk.ask("cancel", run=run.id)
            run.finish()
        return or_busy(once)
    return side_by_side(seconds, AT_ONCE, make)


@storm("hangs up on its runs, sixteen at once")
def hang_ups(path, seconds):
    def once():
        with client.Client.at(path) as talk:
            talk.start("import time; time.sleep(600)").close()
    return side_by_side(seconds, AT_ONCE, lambda: or_busy(once))


@storm("a hundred connections send 64 KiB that are refused")
def large_refusals(path, seconds):
    talks = [client.Client.at(path) for _ in range(CONNECTIONS)]
    request = b'{"op":"list","none":"' + b"x" * (client.DATAGRAM_MAX - 23) + b'"}'

    def once():
        for talk in talks:
            talk.send(request)
        for talk in talks:
            assert "error" in talk.read().body
    return until(seconds, once)


@storm("connects and hangs up")
def greetings(path, seconds):
    return side_by_side(seconds, AT_ONCE, lambda: lambda: client.Client.at(path).close())


@storm("programs of 8 MiB, which the service reads")
def large_programs(path, seconds):
    text = "#" * ((8 << 20) - 5) + "\npass"
    talk = client.Client.at(path)
    return until(seconds, or_busy(lambda: talk.run(text)))
