"""Makes of every part in guests.py an item, and of every test in a guest a result of its own."""
import pytest

import fleet
import arm64
import guests
import image
import machine

WORLDS = {"guests.py": guests, "arm64.py": arm64}


def pytest_collect_file(parent, file_path):
    if file_path.name in WORLDS and file_path.parent == image.HERE:
        return GuestsFile.from_parent(parent, path=file_path)
    return None


class GuestsFile(pytest.File):
    def collect(self):
        world = WORLDS[self.path.name]
        for part in world.PARTS:
            item = Part.from_parent(self, name=f"{part['boot']}: {part['name']}", world=world, part=part)
            item.add_marker(getattr(pytest.mark, part["tier"])(seconds=2 * 3600))
            yield item


def pytest_terminal_summary(terminalreporter, config):
    if Part.how in config.stash:
        terminalreporter.write_line(config.stash[Part.how])


def pytest_sessionfinish(session, exitstatus):
    for running in session.stash.get(Part.running, {}).values():
        end(session, running, exitstatus)


def end(session, running, exitstatus):
    if exitstatus == pytest.ExitCode.INTERRUPTED: # Ctrl-C, or the end of ./dev's patience
        for name, doing in running.doing().items():
            session.config.pluginmanager.getplugin("terminalreporter").write_line(f"guest {name} was in {doing}")
    running.close()


class Part(pytest.Item):
    """Its own result says whether a guest came up and went through the part. The first that runs starts the guests for all."""
    running = pytest.StashKey()
    how = pytest.StashKey() # one sentence: what they run on, and why

    def __init__(self, *, world, part, **kw):
        super().__init__(**kw)
        self.world, self.part = world, part

    def fleet(self):
        fleets = self.session.stash.setdefault(Part.running, {})
        if self.world not in fleets:
            parts = [item.part for item in self.session.items if isinstance(item, Part) and item.world is self.world]
            fleets[self.world] = running = fleet.Fleet(self.world, parts, guests.SLOWER, guests.SILENCE, guests.TIERS)
            self.config.stash[Part.how] = f"guests: {'/dev/kvm' if running.processor is machine.KVM else 'software emulation'}, because {running.why}"
        return fleets[self.world]

    def runtest(self):
        for word in self.fleet().words(self.part):
            with self.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                self.hear(word) # on the terminal, not into this item's captured output

    def hear(self, word):
        if "start" in word:
            self.ihook.pytest_runtest_logstart(nodeid=self.inner(word["start"]), location=tuple(word["location"]))
        elif "report" in word:
            report = self.config.hook.pytest_report_from_serializable(config=self.config, data=word["report"])
            report.nodeid = self.inner(report.nodeid)
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
            assert word["status"] in (0, 1), f"pytest's status {word['status']}\n{word['output']}"
            assert " passed" in word["output"].splitlines()[-1], f"no test passed\n{word['output']}"

    def inner(self, nodeid):
        return f"{self.nodeid}::{nodeid}"

    def repr_failure(self, excinfo, style=None):
        if excinfo.errisinstance((machine.Lost, AssertionError, RuntimeError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, f"guest {self.name}"
