"""What a socket does not take at once waits for a client that is busy, within bounds."""
import pytest

from support import client as clients


def test_answers_that_a_client_has_not_read_yet_are_not_lost(shared):
    """100 answers of 5 KiB: more than the socket holds."""
    with shared.connect() as client:
        for tag in range(100):
            client.send({"op": "explain", "profile": "basic", "tag": tag})
        assert [client.read().body["tag"] for _ in range(100)] == list(range(100))


def test_the_descriptors_of_events_come_with_them_and_in_order(shared):
    code = clients.sealed("print('x' * 10)")
    with shared.connect() as client:
        tags = [client.begin("run", [code]) for _ in range(12)]
        for tag in tags:
            said = client.started(tag).finish()
            assert said.stdout == "x" * 10 + "\n"
    clients.close_all([code])


def test_who_never_reads_loses_the_connection_and_nobody_else_does(shared):
    with shared.connect() as deaf, shared.connect() as other:
        with pytest.raises((clients.Closed, BrokenPipeError, ConnectionError)):
            for tag in range(5000):
                deaf.send({"op": "stats", "tag": tag})
                if tag % 50 == 0:
                    assert other.ask("hello")["version"] == 1
            for _ in range(5000):
                deaf.read()
        assert other.ask("hello")["version"] == 1


def test_a_run_with_every_stream_there_is_begins_behind_answers_that_were_not_read(shared):
    """Its event has five descriptors beside it."""
    with shared.connect() as client:
        for tag in range(100):
            client.send({"op": "explain", "profile": "basic", "tag": tag})
        code = clients.sealed("print('ran')")
        tag = client.begin("run", [code], mode="report", stdin=True, tools=True, tag=1000)
        clients.close_all([code])
        said = client.until(lambda body: body.get("tag") == tag)
        clients.close_all(said.fds)
        assert (said.body["event"], said.body["streams"], len(said.fds)) == ("started", ["stdout", "stderr", "stdin", "result", "tools"], 5), said
