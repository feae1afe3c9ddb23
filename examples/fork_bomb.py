"""Forks for ever. The jail refuses the 65th process (pids: 64), and nothing of it is left afterwards.

build/bin/brig run -v --timeout 5 examples/fork_bomb.py
"""
import os
import time

children = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        children += 1
except OSError as error:
    print(f"stopped after {children} children: {error.strerror}")
