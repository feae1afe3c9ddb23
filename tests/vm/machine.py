"""A guest under qemu, by software alone: it runs where there is no /dev/kvm, and where there is one that hangs."""
import json
import pathlib
import queue
import select
import subprocess
import tempfile
import threading
import time

import image
from support import host


def command(kernel, base, tree, boot, *serial):
    """Two disks behind one controller, because then their names do not depend on who is found first. Nothing that is written stays."""
    return ["setpriv", "--pdeathsig", "KILL", "--", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "4096",
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none",
            "-kernel", str(kernel), "-append", f"console=ttyS0 root=/dev/nvme0n1 rw panic=-1 quiet {boot}",
            "-drive", f"id=base,if=none,format=raw,snapshot=on,file={base}", "-drive", f"id=tree,if=none,format=raw,snapshot=on,file={tree}",
            "-device", "nvme,id=disks,serial=brig", "-device", "nvme-ns,drive=base,bus=disks,nsid=1",
            "-device", "nvme-ns,drive=tree,bus=disks,nsid=2", "-object", "rng-random,id=r,filename=/dev/urandom",
            "-device", "virtio-rng-pci,rng=r", *serial]


class Machine:
    """One boot. words() yields what inside.py says, as dictionaries, until it is done or nothing came for too long. It runs on while nobody listens."""

    def __init__(self, name, boot, order, silence):
        self.name = name
        kernel, base = image.base()
        self.scratch = tempfile.TemporaryDirectory(prefix="brig-vm-", dir=host.build_dir() / "vm")
        self.console = pathlib.Path(self.scratch.name) / "console"
        tree = pathlib.Path(self.scratch.name) / "tree"
        image.tree_disk(tree, order)
        serial = ["-serial", f"file:{self.console}", "-chardev", "stdio,id=words,signal=off", "-serial", "chardev:words"]
        self.began = time.monotonic()
        self.process = subprocess.Popen(command(kernel, base, tree, boot, *serial), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.heard = queue.SimpleQueue()
        self.listener = threading.Thread(target=self.listen, args=(silence,), daemon=True)
        self.listener.start()

    def words(self):
        while (word := self.heard.get()) is not None:
            if isinstance(word, Exception):
                raise word
            yield word

    def listen(self, silence):
        """What it says is also kept in build/vm/words-NAME, with the seconds since the start."""
        try:
            with open(host.build_dir() / "vm" / f"words-{self.name}", "w") as kept:
                for word in self.hear(silence):
                    print(f"{time.monotonic() - self.began:.1f}", json.dumps(word), file=kept, flush=True)
                    self.heard.put(word)
            self.heard.put(None)
        except Exception as error: # for whoever waits for words
            self.heard.put(error)

    def hear(self, silence):
        rest = b""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], silence)
            got = self.process.stdout.read1(65536) if ready else b""
            if not got:
                raise Lost(f"{'nothing came from the guest for %d s' % silence if not ready else 'the guest ended too early'}, "
                           f"{time.monotonic() - self.began:.0f} s after its start. Its console:\n{self.console_end()}\n{rest.decode(errors='replace')}")
            *lines, rest = (rest + got).split(b"\n")
            for line in filter(None, lines):
                word = parse(line)
                if word.get("done"):
                    return
                yield word

    def console_end(self):
        return host.read(self.console)[-4000:]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.listener.join()
        self.process.stdout.close()
        self.scratch.cleanup()


class Lost(Exception):
    pass


def parse(line):
    try:
        word = json.loads(line)
    except ValueError:
        word = None
    return word if isinstance(word, dict) else {"noise": line.decode(errors="replace")}
