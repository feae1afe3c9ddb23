#!/usr/bin/python3
"""hostile.py ADDRESS DNS-ADDRESS - servers that do what no server should

HTTP at port 8100: the path says what is done, once the request is there. DNS at port 53, UDP and TCP: the first label of the name says it.
"""
import asyncio
import socket
import struct
import sys

ADDRESS, DNS = sys.argv[1:]
OK = b"HTTP/1.1 200 OK\r\n"
PUBLIC, PRIVATE = socket.inet_aton("93.184.216.34"), socket.inet_aton("10.1.2.3")
asked = {}


def reset(writer):
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def for_ever(writer, bit):
    while True:
        writer.write(bit * (65536 // len(bit) + 1))
        await writer.drain()


async def http(reader, writer):
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        what = head.split(b" ")[1].decode().rpartition("/")[2]
        if what == "headers":
            writer.write(OK)
            await for_ever(writer, b"X-More: of them\r\n")
        elif what == "line":
            writer.write(OK + b"X-Long: ")
            await for_ever(writer, b"x")
        elif what == "continue":
            await for_ever(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        elif what == "body":
            writer.write(OK + b"\r\n")
            await for_ever(writer, b"body")
        elif what == "chunks":
            writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
            await for_ever(writer, b"1\r\nx\r\n")
        elif what == "switch":
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n")
            await for_ever(writer, b"\0")
        elif what in ("half-head", "half-body"):
            writer.write(OK if what == "half-head" else OK + b"Content-Length: 10\r\n\r\nhello")
            await writer.drain()
            reset(writer)
        elif what == "reset":
            reset(writer)
        elif what == "silent":
            await reader.read()
        else:
            writer.write(b"\0\xff" * 1000 if what == "garbage" else b"")
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    writer.close()


def record(name, kind, data, ttl=0):
    return name + struct.pack("!2HIH", kind, 1, ttl, len(data)) + data


def name_of(text):
    return b"".join(bytes([len(one)]) + one.encode() for one in text.split(".")) + b"\0"


def answers(what, question, kind):
    """(number, bytes) of answers to a question of kind A."""
    here = b"\xc0\x0c"
    if what in ("loop", "loop2"):
        other = name_of(("loop2" if what == "loop" else "loop") + ".echo.example")
        return 1, record(here, 5, other)
    if what == "pointer":
        return 1, b"\xc0" + bytes([12 + len(question)]) + struct.pack("!2HIH", 1, 1, 0, 4) + PUBLIC
    if what == "length":
        return 1, record(here, 1, PUBLIC)[:-4] + b"\xff" * 3
    if what == "many":
        return 2000, record(here, 1, PUBLIC) * 1999 + record(here, 1, PRIVATE)
    if what == "moves":
        asked[what] = asked.get(what, 0) + 1
        return 1, record(here, 1, PUBLIC if asked[what] == 1 else PRIVATE)
    return 1, record(here, 1, PUBLIC)


def answer(data, over_tcp):
    end = data.index(b"\0", 12) + 5
    question, (kind,) = data[12:end], struct.unpack("!H", data[end - 4:end - 2])
    what = question[1:1 + question[0]].decode().lower()
    if what == "silent":
        return None
    if what == "garbage":
        return bytes(range(256)) * 2
    ident = bytes([data[0] ^ 1, data[1]]) if what == "id" else data[:2]
    asks = name_of("other.echo.example") + question[-4:] if what == "question" else question
    if kind != 1:
        return ident + struct.pack("!5H", 0x8180, 1, 0, 0, 0) + asks
    if what in ("truncated", "many") and not over_tcp:
        return ident + struct.pack("!5H", 0x8380, 1, 0, 0, 0) + asks
    if what == "truncated":
        return b""
    n, rest = answers(what, question, kind)
    return ident + struct.pack("!5H", 0x8180, 1, n, 0, 0) + asks + rest


class Questions(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        said = answer(data, False)
        if said is not None:
            self.transport.sendto(said, address)


async def questions(reader, writer):
    try:
        (size,) = struct.unpack("!H", await reader.readexactly(2))
        said = answer(await reader.readexactly(size), True)
        if said:
            writer.write(struct.pack("!H", len(said)) + said)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    writer.close()


async def main():
    await asyncio.start_server(http, ADDRESS, 8100)
    await asyncio.start_server(questions, DNS, 53)
    await asyncio.get_running_loop().create_datagram_endpoint(Questions, (DNS, 53))
    await asyncio.Event().wait()


asyncio.run(main())
