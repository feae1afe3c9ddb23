"""The guest's pytest plugin: every report goes to the host as a line of JSON."""
import json
import os


class Teller:
    def __init__(self, config):
        self.config = config
        self.channel = open(os.environ["BRIG_VM_CHANNEL"], "w")

    def say(self, word):
        self.channel.write(json.dumps(word) + "\n")
        self.channel.flush()

    def pytest_runtest_logstart(self, nodeid, location):
        self.say({"start": nodeid, "location": location})

    def pytest_runtest_logreport(self, report):
        self.say({"report": self.config.hook.pytest_report_to_serializable(config=self.config, report=report)})

    def pytest_collectreport(self, report):
        if report.failed:
            self.say({"report": self.config.hook.pytest_report_to_serializable(config=self.config, report=report)})


def pytest_configure(config):
    config.pluginmanager.register(Teller(config), "vm-teller")
