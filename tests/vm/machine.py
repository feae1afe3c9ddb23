"""A guest under qemu: with /dev/kvm where a guest of it has ended well, else by software alone."""
import functools
import json
import os
import pathlib
import select
import platform
import subprocess
import time
import typing

from support import host

MEMORY = 4096 # MiB of a guest


class Kind(typing.NamedTuple):
    """What depends on a guest's processor."""
    arch: str       # as uname names it
    qemu: tuple     # the program, and its machine
    software: tuple # options without /dev/kvm
    console: str    # the kernel's
    channel: str    # the serial line on which inside.py and the host exchange lines
    serial: tuple   # the device behind it


X86 = Kind("x86_64", ("qemu-system-x86_64",), ("-accel", "tcg", "-cpu", "qemu64"), "ttyS0", "/dev/ttyS1", ("-serial", "chardev:words"))
ARM64 = Kind("aarch64", ("qemu-system-aarch64", "-M", "virt"), ("-accel", "tcg", "-cpu", "max,pauth-impdef=on"), "ttyAMA0", "/dev/ttyS0",
             ("-device", "pci-serial,chardev=words"))
KVM = ("-accel", "kvm", "-cpu", "host,arch-capabilities=off") # some hosts offer a register of that name which they refuse to set
PROBE_SECONDS = 5 # a kernel without a disk gives up after less than two


@functools.lru_cache
def processor(kernel, kind):
    """(qemu's options, why): /dev/kvm where a kernel starts with it and ends by itself; there are hosts where it hangs. BRIG_VM_KVM=0: never."""
    if kind.arch != platform.machine():
        return kind.software, f"its processor is {kind.arch}"
    if os.environ.get("BRIG_VM_KVM") == "0":
        return kind.software, "BRIG_VM_KVM is 0"
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return kind.software, "no /dev/kvm"
    command = [*ENDS, *kind.qemu, *KVM, "-smp", "1", "-m", "256", *PLAIN, "-kernel", str(kernel), "-append", f"console={kind.console} panic=-1", "-serial", "stdio"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return kind.software, f"a guest with /dev/kvm hangs: it had not ended after {PROBE_SECONDS} s"
    if done.returncode or "Kernel panic" not in done.stdout:
        return kind.software, f"a guest with /dev/kvm ended with status {done.returncode}: {done.stdout[-200:].strip()}"
    return KVM, "a guest with /dev/kvm ended as it should"


ENDS = ("setpriv", "--pdeathsig", "KILL", "--")
PLAIN = ("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-nic", "none")


def command(kind, processor_options, kernel, base, tree, boot, *serial):
    """Two disks of two kinds, because then their names do not depend on which is found first. Nothing that is written stays.

    norandmaps: what is translated is kept by its address, so with random ones each exec has its libraries translated anew.
    """
    return [*ENDS, *kind.qemu, *processor_options, "-smp", "1", "-m", str(MEMORY), *PLAIN,
            "-kernel", str(kernel), "-append", f"console={kind.console} root=/dev/nvme0n1 rootwait rw panic=-1 quiet no_timer_check mitigations=off norandmaps {boot}",
            "-drive", f"id=base,if=none,format=raw,snapshot=on,file={base}", "-drive", f"id=tree,if=none,format=raw,snapshot=on,file={tree}",
            "-device", "nvme,drive=base,serial=brig", "-device", "virtio-blk-pci,drive=tree", "-object", "rng-random,id=r,filename=/dev/urandom",
            "-device", "virtio-rng-pci,rng=r", *serial]


class Machine:
    """One boot. run(part) yields what inside.py says of a part, as dictionaries. It is also kept in build/vm/words-NAME, with seconds: since the
    start, of a processor, and of waiting for one."""

    def __init__(self, name, kind, processor_options, disks, boot, folder, silence):
        self.name, self.silence, self.is_up, self.doing, self.rest = name, silence, False, "its boot", b""
        self.noise = "" # of qemu, or of who writes where only inside.py should
        self.console = folder / f"console-{name}"
        serial = ["-serial", f"file:{self.console}", "-chardev", "stdio,id=words,signal=off", *kind.serial]
        self.kept = open(folder / f"words-{name}", "w")
        self.began = time.monotonic()
        self.process = subprocess.Popen(command(kind, processor_options, *disks, boot, *serial), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, part):
        if not self.is_up:
            yield from self.until("up")
        self.is_up, self.doing = True, part
        try:
            os.write(self.process.stdin.fileno(), f"{part}\n".encode())
        except BrokenPipeError:
            pass # it has ended, which is about to be heard
        yield from self.until("part")

    def until(self, end):
        word = {}
        while end not in word:
            word = self.hear()
            self.doing = word.get("start", self.doing)
            yield word

    def hear(self):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], self.silence)
            got = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not got:
                raise Lost(self.last_words(f"nothing came from the guest for {self.silence} s" if not ready else f"the guest ended with {self.process.wait()}"))
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        word = parse(line)
        if "noise" in word:
            self.noise = f"{self.noise}{word['noise']}\n"[-4000:]
        print(f"{time.monotonic() - self.began:.1f}", *(f"{seconds:.1f}" for seconds in self.of_processors()), json.dumps(word), file=self.kept, flush=True)
        return word

    def last_words(self, what):
        return (f"{what}, {time.monotonic() - self.began:.0f} s after its start, in {self.doing}. Its console:\n"
                f"{host.read(self.console)[-4000:]}\n{self.noise}{self.rest.decode(errors='replace')}")

    def of_processors(self):
        """Seconds that it had one, and that it waited for one: the first does not depend on what else the machine does, the second tells how much that is."""
        times = [host.read(path).split() for path in pathlib.Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")]
        return [sum(int(one[n]) for one in times if one) / 1e9 for n in (0, 1)]

    def kill(self):
        self.process.kill()

    def close(self):
        self.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.kept.close()


class Lost(Exception):
    pass


def parse(line):
    try:
        word = json.loads(line)
    except ValueError:
        word = None
    return word if isinstance(word, dict) else {"noise": line.decode(errors="replace")}
