#!/usr/bin/python3
"""A shell in a guest: ./dev vm. The way out is "exit", or Ctrl-A X."""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import guests
import image
import machine


def main(name="systemd"):
    if name not in guests.BOOTS:
        sys.exit(f"./dev vm: no guest \"{name}\"; there are: {', '.join(guests.BOOTS)}")
    kernel, base = image.base(guests.SUITES.get(name, image.SUITE))
    with tempfile.TemporaryDirectory(prefix="brig-vm-") as scratch:
        tree = pathlib.Path(scratch) / "tree"
        image.tree_disk(tree, {"channel": machine.X86.channel}, ["basic"])
        boot = guests.BOOTS[name].replace("brig-tests", "brig-shell")
        subprocess.run(machine.command(machine.X86, machine.processor(kernel, machine.X86)[0], kernel, base, tree, boot, "-serial", "mon:stdio"), check=False)


main(*sys.argv[1:])
