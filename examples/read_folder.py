"""Reads a directory of the host that it was shown, and cannot write there.

build/bin/brig run --ro /usr/share/common-licenses examples/read_folder.py common-licenses
"""
import os
import sys

folder = sys.argv[1]
for name in sorted(os.listdir(folder)):
    print(f"{os.path.getsize(os.path.join(folder, name)):>8} bytes  {name}")
try:
    open(os.path.join(folder, "mine"), "w")
except OSError as error:
    print(f"writing there: {error.strerror}")
