"""Guests at work: each boots once and stays for part after part; who is free takes the next one that its boot can run."""
import collections
import pathlib
import queue
import tempfile
import threading

import machine
from support import host


def at_once():
    """As many guests as there are processors for them, and memory."""
    return max(1, min(host.cpus(), host.mem_available() // (machine.MEMORY << 20)))


class Fleet:
    """Runs parts, in the order in which they are given. words(part) yields what a guest said of one, as it comes."""

    def __init__(self, world, parts, slower, silence, tiers):
        """world: guests.py or arm64.py, for what its guests are."""
        self.world, self.left, self.silence = world, list(parts), silence
        self.heard = {part["name"]: queue.SimpleQueue() for part in parts}
        self.taking, self.guests, self.started, self.closed = threading.Lock(), [], collections.Counter(), False
        self.bases = {boot: world.base(boot) for boot in dict.fromkeys(part["boot"] for part in parts)}
        self.processor, self.why = machine.processor(next(iter(self.bases.values()))[0], world.KIND)
        self.folder = host.build_dir() / "vm"
        for old in (*self.folder.glob("words-*"), *self.folder.glob("console-*")):
            old.unlink()
        self.scratch = tempfile.TemporaryDirectory(prefix="brig-vm-", dir=self.folder)
        self.tree = pathlib.Path(self.scratch.name) / "tree"
        world.tree_disk(self.tree, {"slower": slower, "tiers": tiers, "channel": world.KIND.channel, "parts": {part["name"]: part for part in parts}})
        self.workers = [threading.Thread(target=self.work, daemon=True) for _ in range(min(at_once(), len({part["boot"] for part in parts})))]
        for worker in self.workers:
            worker.start()

    def words(self, part):
        while (word := self.heard[part["name"]].get()) is not None:
            if isinstance(word, Exception):
                raise word
            yield word

    def take(self, boot=None):
        with self.taking:
            part = next((part for part in self.left if boot in (None, part["boot"])), None)
            if part:
                self.left.remove(part)
            return part

    def work(self):
        while part := self.take():
            self.serve(part)

    def serve(self, part):
        """One guest, with all the parts that it comes to."""
        boot, guest = part["boot"], None
        try:
            guest = self.start(boot)
            while part:
                for word in guest.run(part["name"]):
                    self.heard[part["name"]].put(word)
                self.heard[part["name"]].put(None)
                part = self.take(boot)
        except Exception as error: # for whoever waits for the words; the parts that are left get another guest
            self.heard[part["name"]].put(error)
        finally:
            if guest:
                guest.close()

    def start(self, boot):
        with self.taking:
            if self.closed:
                raise machine.Lost("the session ended before its guest began")
            self.started[boot] += 1
            name = f"{boot}-{self.started[boot]}"
            guest = machine.Machine(name, self.world.KIND, self.processor, (*self.bases[boot], self.tree), self.world.BOOTS[boot], self.folder, self.silence)
            self.guests.append(guest)
        return guest

    def doing(self):
        """{guest: what it does}, of those that are at work."""
        with self.taking:
            return {guest.name: guest.doing for guest in self.guests if guest.process.poll() is None}

    def close(self):
        with self.taking:
            self.closed = True
            self.left.clear()
            for guest in self.guests:
                guest.kill()
        for worker in self.workers:
            worker.join()
        self.scratch.cleanup()
