"""What a program that knows of brig-proxy is told of a host."""

# ask(host, port): the beginning of the answer, or why there is none. Of a program in a jail.
ASK = """
import socket
def ask(host, port=443):
    try:
        with socket.create_connection(("198.18.0.1", 3128), 20) as proxy:
            proxy.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
            return proxy.makefile().read()[:12]
    except OSError as e:
        return e.strerror
"""
