"""Takes memory for ever. The jail is killed at its limit: exit reason oom, status 137.

build/bin/brig run --memory 64M examples/memory_bomb.py
"""
hoard = []
while True:
    hoard.append(bytearray(1 << 20))
    if len(hoard) % 16 == 0:
        print(f"{len(hoard)} MiB", flush=True)
