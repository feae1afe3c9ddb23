# rehearse.py - one call of a session, executed inside the zygote before it forks
#
# So bytecode is specialised and caches are filled once, in memory that every fork shares. In a fork each page that this writes to
# would be copied, which takes longer than the writes themselves, and the copy stays for as long as the fork.
from posix import dup, dup2, memfd_create

NO_PROCESS = 1 << 23 # larger than any pid
OF_INTERPRETER = "stdin", "__stdin__", "stdout", "__stdout__", "stderr", "__stderr__"


def rehearse_session(code):
    """Takes back all that it changes in this process, even after an exception."""
    muted = {"register_at_fork": lambda **_: None, "offer_display": lambda **_: None, "kill_one": lambda *_: None, "remember_source": lambda *_: None}
    kept, streams, path, main = {name: OURS[name] for name in muted}, {name: getattr(sys, name) for name in OF_INTERPRETER}, sys.path[:], sys.modules.get("__main__")
    handlers, outputs, opened = {number: _signal.getsignal(number) for number in (SIGINT, SIGTERM)}, {fd: dup(fd) for fd in (1, 2)}, []
    OURS.update(muted)
    try:
        rehearse_call(code, opened)
    finally:
        OURS.update(kept)
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        for name, stream in streams.items():
            setattr(sys, name, stream)
        for to, fd in outputs.items():
            dup2(fd, to)
        sys.path[:], sys.modules["__main__"] = path, main
        close_all([*outputs.values(), *opened])


def rehearse_call(code, opened):
    """opened: descriptors, for the caller to close."""
    brigd, servers = _socket.socketpair(_socket.AF_UNIX, SEQPACKET)
    server, source, channel = Server(servers.detach()), memfd_create("call", 1), []
    opened += source, server.wake, server.woken
    write(source, code)
    server.fork = lambda work, fd: channel.append(dup(fd)) or NO_PROCESS
    brigd.sendmsg([b'{"op": "run", "call": 1, "context": 0, "tools": false, "written": true, "cpu_ms": 1000}'], rights([source]))
    server.hear_brigd()
    live = Live(*channel)
    opened += (fd for pair in live.between.values() for fd in pair)
    live.begin()
    for _ in range(5): # waits, begins the call, ends it, answers, is idle
        live.go_on()
    server.hear_context(0, server.contexts[0])
    if live.state != (IDLE, []) or server.contexts[0].call is not None:
        raise RuntimeError("it has not come to its end")
    for each in brigd, server.brigd, server.contexts[0].channel, live.socket:
        each.close()
