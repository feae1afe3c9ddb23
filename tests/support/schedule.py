"""Which tests a worker of pytest-xdist runs next.

A file stays with one worker, because its tests share what they set up; a file of APART is divided. First come the unit tests, then the files
that catch a mutant (tools/mutants.py): a guard that is broken fails within minutes. Of the others those that took longest (tests/times) begin
first, so that no worker is left with a long one at the end. Tests marked `alone` look at counters of the whole machine: they run last, one at a time, when all other
workers have ended.
"""
import collections
import re

from xdist.scheduler import LoadScopeScheduling

from support import host, tiers

APART = ("tests/fuzz/test_fuzzing.py", "tests/release/test_whole_programs.py") # their tests share nothing but a build, and each takes minutes


def is_alone(scope):
    return scope.endswith(tiers.ALONE)


def guards():
    """The files that tools/mutants.py names: each catches a guard that was broken on purpose."""
    return set(re.findall(r'"(tests/[^":]+)', host.read(host.REPO / "tools" / "mutants.py")))


class Schedule(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        if is_alone(nodeid) or tiers.file_of(nodeid) in APART:
            return nodeid
        return tiers.file_of(nodeid)

    def schedule(self):
        if self.collection is None and self._check_nodes_have_same_collection():
            self.put_in_order()
        super().schedule()

    def put_in_order(self):
        """The base class fills these units with their tests."""
        taken = tiers.times(self.config)
        scopes = {self._split_scope(nodeid): taken[tiers.file_of(nodeid)] for nodeid in next(iter(self.registered_collections.values()))}
        first = guards()
        for scope in sorted(scopes, key=lambda scope: (is_alone(scope), not scope.startswith("tests/unit/"), scope not in first, -scopes[scope], scope)):
            self.workqueue[scope] = collections.OrderedDict()

    def _assign_work_unit(self, node):
        if self.workqueue and is_alone(next(iter(self.workqueue))) and len(self.nodes) > 1:
            if node is not self.nodes[0]: # which waits until it is the only one
                node.shutdown() # runs what it still has, first
            return
        super()._assign_work_unit(node)

    def remove_node(self, node):
        crashed = super().remove_node(node)
        if crashed is None and len(self.nodes) == 1:
            self._reschedule(self.nodes[0])
        return crashed
