#!/usr/bin/python3
"""servers.py FOLDER - the small servers of world that no package has; they write down all they hear in FOLDER/seen.log

raw.example     HTTP and HTTPS (443, 8443) that answer by path: /echo the request itself, /dribble the same in chunks of one byte, /split, /chunked, /whole the same when all chunks of a body have come, /big?N, /ends?TEXT, /ends-in-chunks?TEXT, /slow,
                /cut, /redirect; /lf-only, /folded, /odd-coding, /part and /coded repeat the request in replies that are not plain, /websocket in frames of pieces; keeps the bytes as they came. At 8444 it says nothing at all
echo.example    TCP 7007 gives back what comes, and an urgent byte before "urgent"; UDP 53, 443 and 7007 do, too
127.0.0.1:9001  WebSocket, gives back each message; nginx leads /ws here
127.0.0.1:5353  DNS for rebind.example: one public address the first time, and then 169.254.169.254
"""
import asyncio
import json
import os
import re
import socket
import ssl
import struct
import sys
import time

import websockets

FOLDER = sys.argv[1]
RAW, ECHO = "93.184.216.43", "93.184.216.41"
PUBLIC, METADATA = b"\x5d\xb8\xd8\x22", b"\xa9\xfe\xa9\xfe" # 93.184.216.34 and 169.254.169.254


def saw(where, data, **more):
    with open(f"{FOLDER}/seen.log", "a", encoding="ascii") as log:
        log.write(json.dumps({"at": where, "data": data.decode("latin-1"), "when": time.monotonic(), **more}) + "\n")


# --- raw HTTP --------------------------------------------------------------------------------------------

async def raw(reader, writer, where):
    heard = bytearray()
    try:
        while b"\r\n\r\n" not in heard:
            data = await reader.read(65536)
            if not data:
                break
            heard += data
        while heard.startswith(b"POST /whole ") and not heard.endswith(b"\r\n0\r\n\r\n") and (data := await reader.read(65536)):
            heard += data
        if heard:
            await answer(writer, heard)
        while data := await reader.read(65536): # whatever comes behind the request is written down as well
            heard += data
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        saw(where, bytes(heard))
        writer.close()


async def answer(writer, heard):
    path = heard.split(b" ")[1] if heard.count(b" ") > 1 else b"/"
    path = path.split(b"//", 1)[1].partition(b"/")[2] if b"://" in path else path.lstrip(b"/")
    name, _, number = path.partition(b"?")
    if name in (b"chunked", b"whole"):
        await reply(writer, b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", b"Transfer-Encoding: chunked")
    elif name == b"big":
        await reply(writer, bytes(int(number)))
    elif name == b"ends": # as the request says
        await reply(writer, number)
    elif name == b"ends-in-chunks":
        await reply(writer, b"".join(b"1\r\n%c\r\n" % one for one in number) + b"0\r\n\r\n", b"Transfer-Encoding: chunked")
    elif name == b"slow":
        await reply(writer, b"hello", b"Content-Length: 10") # and nothing more
        return
    elif name == b"cut": # without a length, and without saying over TLS that this was all
        await reply(writer, b"half of it", b"X-Length: none")
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as plain:
            plain.shutdown(socket.SHUT_WR)
        return
    elif name == b"dribble":
        body = b"".join(b"1\r\n%c\r\n" % one for one in heard) + b"0\r\n\r\n"
        await reply(writer, body, b"Transfer-Encoding: chunked\r\nX-Echo: " + re.search(rb"(?i)authorization: ([^\r]*)|$", heard)[0])
    elif name == b"redirect":
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: https://evil.example/who\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
    elif name in (b"lf-only", b"folded", b"odd-coding", b"part", b"coded"):
        chunks = b"".join(b"1\r\n%c\r\n" % one for one in heard) + b"0\r\n\r\n"
        writer.write({b"lf-only": b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n", b"folded": b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
                      b"odd-coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, \x0bchunked\r\n\r\n", b"part": b"HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n",
                      b"coded": b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n"}[bytes(name)] + chunks)
        await writer.drain()
    elif name == b"websocket": # what the request says, each message in pieces of three bytes, and each piece by itself
        told = re.search(rb"(?i)authorization: ([^\r]*)|$", heard)[0]
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        for data in b"\x81" + bytes([len(told)]) + told, b"\x81\x05<end>":
            for n in range(0, len(data), 3):
                writer.write(data[n:n + 3])
                await writer.drain()
                await asyncio.sleep(0.01)
    elif name == b"early": # before the body has come, and at once the end
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")
        await writer.drain()
        writer.close()
        raise ConnectionError
    elif name == b"reset":
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        raise ConnectionError
    elif name == b"split": # of a secret, in two pieces of the answer
        body = bytes(heard)
        middle = body.find(b"uthorization")
        await reply(writer, body[:middle + 20], b"Content-Length: %d" % len(body))
        await asyncio.sleep(0.05)
        writer.write(body[middle + 20:])
        await writer.drain()
    else:
        await reply(writer, bytes(heard))
    writer.write_eof() if writer.can_write_eof() else writer.close()


async def reply(writer, body, length=None):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%s\r\nConnection: close\r\n\r\n" % (length or b"Content-Length: %d" % len(body)) + body)
    await writer.drain()


async def mute(reader, writer):
    while await reader.read(65536):
        pass
    writer.close()


# --- echoes ----------------------------------------------------------------------------------------------

async def echo(reader, writer):
    try:
        while data := await reader.read(65536):
            saw("echo tcp", data[:1000])
            if data.startswith(b"urgent"): # a byte out of turn goes before the answer
                os_socket = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
                os_socket.send(b"!", socket.MSG_OOB)
                os_socket.close()
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, port):
        self.port = port

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        saw(f"echo udp {self.port}", data)
        self.transport.sendto(data, address)


async def websocket(peer, _path=None):
    try:
        async for message in peer:
            saw("websocket", message if isinstance(message, bytes) else message.encode())
            await peer.send(message)
    except websockets.ConnectionClosed:
        pass


# --- a name that moves -----------------------------------------------------------------------------------

class Rebinding(asyncio.DatagramProtocol):
    asked = 0

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, address):
        end = data.index(b"\0", 12) + 5
        question, (kind,) = data[12:end], struct.unpack("!H", data[end - 4:end - 2])
        if kind != 1:
            self.transport.sendto(data[:2] + b"\x84\0\0\1\0\0\0\0\0\0" + question, address)
            return
        where = METADATA if self.asked else PUBLIC
        self.asked += 1
        saw("rebind", where)
        self.transport.sendto(data[:2] + b"\x84\0\0\1\0\1\0\0\0\0" + question + b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + where, address)


async def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{FOLDER}/server.crt", f"{FOLDER}/server.key")
    loop = asyncio.get_running_loop()
    await asyncio.start_server(lambda r, w: raw(r, w, "raw http"), RAW, 80)
    for port in (443, 8443):
        await asyncio.start_server(lambda r, w, port=port: raw(r, w, "raw https" if port == 443 else f"raw https {port}"), RAW, port, ssl=context)
    await asyncio.start_server(mute, RAW, 8444)
    await asyncio.start_server(echo, ECHO, 7007)
    for port in (53, 443, 7007):
        await loop.create_datagram_endpoint(lambda port=port: Datagrams(port), (ECHO, port))
    await loop.create_datagram_endpoint(Rebinding, ("127.0.0.1", 5353))
    await websockets.serve(websocket, "127.0.0.1", 9001)
    await asyncio.Event().wait()


asyncio.run(main())
