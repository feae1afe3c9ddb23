"""Runs one module of CPython's tests as its own regrtest does, and says of each method what became of it.

Arguments: a mark, the resources, the module. A line of stdout that begins with the mark is ours and one JSON object; all else is what tests print.
    {"begin": id}   {"id": ..., "was": "pass"|"skip"|"xfail"|"xpass"|"fail"|"error", "why": text}   {"module": regrtest's word for all of it}
"""
import fcntl
import json
import os
import sys
import unittest

RANK = ("pass", "skip", "xfail", "xpass", "fail", "error")


class Report:
    """A descriptor of its own: tests close, replace and capture the standard ones. Forks of this process have nothing to say."""

    def __init__(self, mark):
        self.mark, self.pid = mark, os.getpid()
        self.fd = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 200)

    def say(self, **row):
        if os.getpid() == self.pid:
            os.write(self.fd, f"\n{self.mark}{json.dumps(row)}\n".encode()) # one write: nobody's output gets into it


def last_line(error):
    """Of a traceback, what was raised: type and first line."""
    kind, value, _ = error
    words = str(value).strip().splitlines() or [""]
    return f"{kind.__name__}: {words[0]}"[:300]


class Result(unittest.TestResult):
    report = None

    def startTest(self, test):
        super().startTest(test)
        self.was, self.why = None, ""
        self.report.say(begin=test.id())

    def stopTest(self, test):
        super().stopTest(test)
        self.report.say(id=test.id(), was=self.was or "pass", why=self.why)
        self.was = None

    def note(self, test, was, why=""):
        if not isinstance(test, unittest.TestCase): # setUpClass, setUpModule and their like
            self.report.say(id=test.id(), was=was, why=why)
        elif self.was is None or RANK.index(was) > RANK.index(self.was):
            self.was, self.why = was, why

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "pass")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skip", str(reason)[:300])

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.note(test, "xfail")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "xpass")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "fail", last_line(err))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "error", last_line(err))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "fail" if issubclass(err[0], test.failureException) else "error", last_line(err))


def take_over(support, report):
    """Methods are run by our result; what counts for regrtest stays as it is."""
    Result.report = report
    run_doctest = support.run_doctest

    def run_suite(suite):
        result = Result()
        suite.run(result)
        if not result.testsRun and not result.skipped:
            raise support.TestDidNotRun
        if not result.wasSuccessful():
            raise support.TestFailed("see its methods")

    def run_one_doctest(module, *args, **kw):
        try:
            done = run_doctest(module, *args, **kw)
        except support.TestFailed as e:
            report.say(id=f"{module.__name__}.__doc__", was="fail", why=str(e))
            raise
        report.say(id=f"{module.__name__}.__doc__", was="pass", why="")
        return done
    support._run_suite, support.run_doctest = run_suite, run_one_doctest


def main(mark, resources, module):
    from test import support
    from test.libregrtest import cmdline, runtest, setup
    from test.support import os_helper
    report = Report(mark)
    options = cmdline._parse_args(["-u", resources])
    setup.setup_tests(options)
    take_over(support, report)
    with os_helper.temp_cwd("/workspace/test", quiet=False):
        was = runtest.runtest(options, module)
    report.say(module=type(was).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
