"""What a program sees from inside: ./dev demo runs this."""
import getpass
import os
import platform
import socket

print(f"Hello from {getpass.getuser()}@{socket.gethostname()}, "
      f"Python {platform.python_version()} as process {os.getpid()} in {os.getcwd()}.")

primes = [n for n in range(2, 60) if all(n % d for d in range(2, n))]
print("I can compute:  ", *primes)

with open("note.txt", "w") as note:
    note.write("gone when this run ends\n")
print("I can write to: ", os.path.abspath("note.txt"))

print("Processes I see:", *sorted(int(p) for p in os.listdir("/proc") if p.isdigit()))


def attempt(what, action):
    try:
        action()
        print(f"  {what}: it worked. Please report this.")
    except OSError as error:
        print(f"  {what}: {error.strerror or error}")


print("I cannot:")
attempt("reach the network    ", lambda: socket.create_connection(("192.0.2.1", 80), timeout=2))
attempt("change the system    ", lambda: open("/etc/passwd", "ab"))
attempt("read password hashes ", lambda: open("/etc/shadow"))
attempt("become root          ", lambda: os.setuid(0))
attempt("look into process 1  ", lambda: os.readlink("/proc/1/exe"))
