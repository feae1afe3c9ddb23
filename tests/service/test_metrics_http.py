"""brig metrics --listen: one page over HTTP for every client that can connect; no input can block it, and its clients put no load on brigd."""
import concurrent.futures
import os
import pathlib
import signal
import socket
import stat

import pytest

from support import daemon as daemons
from support import host, metrics
from support.metrics import Listener

CONNECTIONS = 64 # METRICS_CONNECTIONS_MAX
GET = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def served(stock):
    with Listener(stock.get()) as one:
        yield one


@pytest.fixture
def listener(served):
    """Must serve afterwards as it did before, with as many descriptors."""
    before = descriptors(served.pid)
    yield served
    assert served.page()("brig_connections") >= 1
    assert host.poll(lambda: descriptors(served.pid) <= before), f"{before} -> {descriptors(served.pid)}"


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


# --- what is served -----------------------------------------------------------------------------------------

def test_the_page_is_the_one_that_is_printed(daemon, listener):
    served, printed = listener.page(), metrics.page(daemon)
    lasting = lambda page: {key for key in page.samples if not key[0].startswith("brig_zygote")} # of which one may just be measured
    assert lasting(served) == lasting(printed) and len(lasting(served)) > 100
    assert [family.name for family in served.families] == [family.name for family in printed.families]


def test_a_run_is_seen_within_a_moment(daemon, listener):
    before = listener.page().sum("brig_runs_total")
    daemon.run("pass")
    assert host.poll(lambda: listener.page().sum("brig_runs_total") == before + 1)


def test_a_page_in_a_browser_whose_name_leads_here_gets_no_figures(listener):
    for name in b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example":
        assert listener.say(GET.replace(b"localhost", name))[0] == 403
    for name in b"localhost:9101", b"127.0.0.1", b"[::1]:9101", socket.gethostname().encode():
        assert listener.say(GET.replace(b"localhost", name))[0] == 200


def test_head_has_no_body(listener):
    status, headers, _ = listener.say(GET.replace(b"GET", b"HEAD"))
    assert status == 200 and int(headers["content-length"]) > 1000 and headers["content-type"] == metrics.TYPE
    with listener.connect() as raw:
        raw.send(GET.replace(b"GET", b"HEAD"))
        assert raw.file.read().endswith(b"\r\n\r\n")


def test_http_1_0_is_answered(listener):
    status, _, body = listener.say(b"GET /metrics HTTP/1.0\r\n\r\n")
    assert status == 200 and body.startswith(b"# HELP brig_")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metricsx", "/%6detrics", "/../metrics", "//metrics", "/etc/passwd", "/metrics%00"])
def test_there_is_one_path(listener, path):
    assert listener.get(path)[0] == 404


def test_a_query_changes_nothing(listener):
    assert listener.get("/metrics?a=b")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "DANCE"])
def test_there_are_two_methods(listener, method):
    status, headers, _ = listener.say(GET.replace(b"GET", method.encode()))
    assert (status, headers["allow"]) == (405, "GET, HEAD")


# --- what comes in ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("data,statuses", [
    (GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nhello"), {400}), (GET.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), {400}),
    (GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 99999999999999999999\r\n\r\n"), {400, 413}), (GET.replace(b"\r\n\r\n", b"\r\nContent-Length: -1\r\n\r\n"), {400}),
    (b"GET /metrics HTTP/1.1\r\n\r\n", {400}), (b"GET /metrics HTTP/9.9\r\nHost: x\r\n\r\n", {400, 505}), (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400, 505, None}),
    (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {404, 413, 414, 431}), (GET.replace(b"\r\n\r\n", b"\r\nX: " + b"a" * 100_000 + b"\r\n\r\n"), {413, 431}),
    (GET.replace(b"\r\n\r\n", b"\r\nX: a" * 20_000 + b"\r\n\r\n"), {413, 431}), (b"\0" * 100_000, {400, 413, 414, 431, None}), (b"\r\n" * 50_000 + GET, {200, 400, 413, 414, 431, None}),
], ids=["a body", "chunks", "an endless body", "a negative body", "no host", "no version", "TLS", "a long path", "a long header", "many headers", "zeros", "empty lines"])
def test_what_is_no_request_for_the_page_is_answered_or_cut_off(listener, data, statuses):
    with listener.connect() as raw:
        try:
            raw.send(data)
            status = raw.head()[0]
        except (BrokenPipeError, ConnectionResetError): # the answer was sent before all of it was read
            status = None
    assert status in statuses | ({None} if len(data) > 50_000 else set()), status


def test_a_second_request_on_the_same_connection_is_not_answered(listener):
    with listener.connect() as raw:
        raw.send(GET + GET)
        assert raw.reply()[0] == 200
        assert raw.file.read() == b""


# --- many, and slow -----------------------------------------------------------------------------------------

@pytest.mark.nightly
def test_two_hundred_scrapes_leave_no_descriptor_neither_here_nor_in_brigd(daemon, listener):
    listener.page()
    count = lambda: [daemons.lasting_descriptors(pid) for pid in daemon.rest()] + [descriptors(listener.pid)]
    before = count()
    for _ in range(200):
        assert listener.get()[0] == 200
    assert host.poll(lambda: all(now <= then for now, then in zip(count(), before))), (before, count())


def test_many_requests_at_once_are_answered_and_brigd_is_asked_once_a_second(listener):
    first = listener.page()("brig_connections_total")
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        pages = list(pool.map(lambda _: listener.get(), range(200)))
    assert {status for status, _, _ in pages} == {200}
    connections = [metrics.Page(body.decode())("brig_connections_total") for _, _, body in (pages[0], pages[-1])]
    assert max(connections) - first <= 30 * host.SLOWER, "each page would have taken one"


def test_a_client_that_does_not_read_delays_no_other(listener):
    slow = [listener.connect() for _ in range(20)]
    try:
        for raw in slow:
            raw.send(GET)
        assert listener.page()
    finally:
        for raw in slow:
            raw.close()


def test_a_silent_client_makes_room_for_others_when_all_places_are_taken(listener):
    quiet = [listener.connect() for _ in range(CONNECTIONS)]
    try:
        for raw in quiet:
            raw.send(b"GET /met")
        for _ in range(5):
            assert listener.get()[0] == 200
        assert quiet[0].file.read() == b"", "the oldest one"
        quiet[-1].send(b"rics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert quiet[-1].reply()[0] == 200, "the newest one has its place"
    finally:
        for raw in quiet:
            raw.close()


@pytest.mark.nightly
def test_a_thousand_silent_clients_cost_a_bounded_number_of_descriptors(listener):
    quiet = []
    try:
        for _ in range(1000):
            quiet.append(listener.connect())
        assert listener.get()[0] == 200
        assert descriptors(listener.pid) <= CONNECTIONS + 16 + 20
    finally:
        for raw in quiet:
            raw.close()


@pytest.mark.nightly
def test_a_client_that_sends_byte_by_byte_is_cut_off_after_ten_seconds_whatever_it_sends(listener):
    with listener.connect(60) as raw:
        raw.sock.settimeout(0.2)

        def is_cut():
            try:
                raw.send(b"a")
                return raw.sock.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True
        raw.send(b"GET /metrics HTTP/1.1\r\nX: ")
        assert host.poll(is_cut, 60)


def test_it_has_no_capability_and_gains_none(listener):
    status = dict(line.split(":\t", 1) for line in host.read(f"/proc/{listener.pid}/status").splitlines() if ":\t" in line)
    assert {int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")} == {0} and status["NoNewPrivs"] == "1"


# --- brigd comes and goes -----------------------------------------------------------------------------------

def test_without_brigd_there_is_no_figure_and_with_it_there_is_again(start_daemon):
    daemon = start_daemon()
    with Listener(daemon) as one:
        assert one.page()
        assert daemon.stop() == 0
        assert host.poll(lambda: one.get()[0] == 503)
        status, headers, body = one.get()
        assert (status, headers["content-type"]) == (503, "text/plain; charset=utf-8") and b"brig_" not in body and len(body.splitlines()) == 1, body
        daemon.start()
        assert host.poll(lambda: one.get()[0] == 200)


def test_a_brigd_that_stands_still_is_waited_for_so_long_and_no_longer(start_daemon):
    daemon = start_daemon()
    with Listener(daemon) as one:
        os.kill(daemon.one("server"), signal.SIGSTOP)
        try:
            assert host.poll(lambda: one.get()[0] == 503)
            assert b"did not answer within 2000 ms" in one.get()[2]
        finally:
            os.kill(daemon.one("server"), signal.SIGCONT)
        assert host.poll(lambda: one.get()[0] == 200)


# --- where --------------------------------------------------------------------------------------------------

@pytest.mark.nightly
def test_a_socket_of_the_file_system_has_the_mode_that_umask_leaves_and_goes_with_it(daemon, tmp_path):
    path = tmp_path / "metrics.sock"
    with Listener(daemon, path, umask=0o027) as one:
        assert stat.S_ISSOCK(path.lstat().st_mode) and stat.S_IMODE(path.lstat().st_mode) == 0o750
        assert one.page()("brig_build_info", version=host.read(host.REPO / "CMakeLists.txt").split("project(brig VERSION ")[1].split()[0]) == 1
        assert one.stop() == 0
        assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_by_a_signal_though_a_client_is_connected(daemon, number):
    with Listener(daemon) as one, one.connect() as raw:
        raw.send(b"GET /met")
        assert one.stop(number) == 0


def test_what_one_that_was_killed_has_left_is_replaced(daemon, tmp_path):
    path = tmp_path / "metrics.sock"
    with Listener(daemon, path) as one:
        assert one.stop(signal.SIGKILL) == -signal.SIGKILL
    assert path.exists()
    with Listener(daemon, path) as one:
        assert one.page()


def refused(daemon, at):
    done = metrics.ask(daemon, "--listen", str(at))
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1 and done.stderr.startswith("brig metrics: --listen "), done
    return done.returncode, done.stderr


@pytest.mark.parametrize("at", ["", ":9464", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:x", "::1:9464", "[::1]", "[127.0.0.1]:9464", "example.org:80", "metrics.sock", "/" + "x" * 200])
def test_an_address_that_is_none_is_refused(daemon, at):
    status, said = refused(daemon, at)
    assert status == 2 and ("expected an address" in said or "at most" in said), said


def test_a_place_that_is_taken_is_left_alone(daemon, tmp_path):
    with socket.socket() as other, Listener(daemon, tmp_path / "sock"):
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert "in use" in refused(daemon, f"127.0.0.1:{other.getsockname()[1]}")[1]
        assert "another process already listens there" in refused(daemon, tmp_path / "sock")[1]
        assert (tmp_path / "sock").exists()
    (tmp_path / "file").write_text("mine")
    assert "is not a socket; it was not changed" in refused(daemon, tmp_path / "file")[1]
    assert (tmp_path / "file").read_text() == "mine"
    assert "No such file" in refused(daemon, tmp_path / "none" / "sock")[1]


@pytest.mark.parametrize("at,host_", [("127.0.0.2:0", "127.0.0.2"), ("localhost:0", "127.0.0.1"), ("[::1]:0", "::1")])
def test_addresses_are_served(daemon, at, host_):
    if ":" in host_ and not pathlib.Path("/proc/net/if_inet6").exists():
        pytest.skip("needs IPv6")
    with Listener(daemon, at) as one:
        assert one.host == host_ and one.page()
