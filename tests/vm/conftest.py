"""Makes of every boot in guests.py an item, and of every test in the guest a result of its own."""
import pytest

import guests
import image
import machine

GUESTS_FILE = "guests.py"


def pytest_collect_file(parent, file_path):
    if file_path.name == GUESTS_FILE and file_path.parent == image.HERE:
        return GuestsFile.from_parent(parent, path=file_path)
    return None


class GuestsFile(pytest.File):
    def collect(self):
        for name, guest in guests.GUESTS.items():
            item = Guest.from_parent(self, name=name, guest=guest)
            item.add_marker("vm")
            yield item


class Guest(pytest.Item):
    """A boot. Its own result says whether the guest came up and went through all of its parts. The next one boots beside it: each needs one processor."""

    def __init__(self, *, guest, **kw):
        super().__init__(**kw)
        self.guest, self.machine = guest, None

    def boot(self):
        if self.machine is None:
            order = {"slower": guests.SLOWER, "parts": self.guest["parts"]}
            self.machine = machine.Machine(self.name, self.guest["boot"], order, guests.SILENCE)
        return self.machine

    def next(self):
        following = self.session.items[self.session.items.index(self) + 1:]
        return [item for item in following if isinstance(item, Guest)][:1]

    def runtest(self):
        running = self.boot()
        try:
            for item in self.next():
                item.boot()
            left = [part["name"] for part in self.guest["parts"]]
            for word in running.words():
                with self.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                    self.hear(word, left) # on the terminal, not into this item's captured output
            assert not left, f"never ran: {left}"
        finally:
            running.close()

    def hear(self, word, left):
        if "start" in word:
            self.ihook.pytest_runtest_logstart(nodeid=self.inner(left, word["start"]), location=tuple(word["location"]))
        elif "report" in word:
            report = self.config.hook.pytest_report_from_serializable(config=self.config, data=word["report"])
            report.nodeid = self.inner(left, report.nodeid)
            if isinstance(report.longrepr, list):
                report.longrepr = tuple(report.longrepr) # a skip's: JSON knows no tuples
            if isinstance(report, pytest.CollectReport):
                self.ihook.pytest_collectreport(report=report)
            else:
                self.ihook.pytest_runtest_logreport(report=report)
        elif "tell" in word:
            self.config.pluginmanager.getplugin("terminalreporter").write_line(word["tell"])
        elif "part" in word:
            # 1: some failed, which they have said themselves
            assert word["part"] == left.pop(0) and word["status"] in (0, 1), f"{word['part']}: pytest's status {word['status']}\n{word['output']}"
            assert " passed" in word["output"].splitlines()[-1], f"{word['part']}: no test passed\n{word['output']}"

    def inner(self, left, nodeid):
        return f"{self.nodeid}::{left[0]}::{nodeid}"

    def repr_failure(self, excinfo, style=None):
        if excinfo.errisinstance((machine.Lost, AssertionError, RuntimeError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"guest {self.name}"
