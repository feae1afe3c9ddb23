"""Takes memory. The jail is killed at its limit: exit reason oom, status 137.

build/bin/brig run --memory 64M examples/memory_bomb.py
"""
import sys

hoard = []
while len(hoard) < 512:  # and no more: a plain user without control groups has no limit of memory
    hoard.append(bytearray(1 << 20))
    if len(hoard) % 16 == 0:
        print(f"{len(hoard)} MiB", flush=True)
sys.exit("no limit was met: isolation in the record says missing:memory-limit?")
