"""Loopback works, as much of the standard library needs it; there is nothing beyond it.

build/bin/brig run examples/no_network.py
"""
import socket

with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname(), timeout=2):
        print("loopback:          works")

for what, address in ("an address outside", ("192.0.2.1", 443)), ("cloud metadata    ", ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, timeout=2)
        print(f"{what}: reached. Please report this.")
    except OSError as error:
        print(f"{what}: {error.strerror or error}")
