"""How the runs of this session begin: $BRIG_TEST_RUNS, which ./dev test --warm, --ready and --cold set.

warm, ready   every profile says "warm": "demand", or "ready"; whoever would start a brigd of his own asks the session's service instead, for a
              private one has no zygotes. A test whose subject is the private way says so: @pytest.mark.private("why").
cold          every profile says "never".
nothing       the profiles are as they are shipped, and whoever would start a brigd of his own does.
"""
import collections
import os

KEYS = {"warm": "demand", "ready": "ready", "cold": "never"}
EVERY = ["basic", "strict", "filesystem", "network", "data-science"]
CONFIG = {"runs": 128, "access": [{"uid": 0, "profiles": EVERY, "runs": 128, "runs_per_minute": 1000000}]}


def mode():
    wanted = os.environ.get("BRIG_TEST_RUNS", "")
    if wanted and wanted not in KEYS:
        raise ValueError(f"BRIG_TEST_RUNS={wanted}: there are {', '.join(KEYS)}")
    return wanted


def are_warm():
    """Whether a service's runs must be warm."""
    return mode() in ("warm", "ready")


class Session:
    """The profiles of all of its services, and the service that stands in for private ones, from its first run on."""

    def __init__(self):
        self.scratch, self.service, self.private, self.count = None, None, None, collections.Counter()

    def begin(self):
        if mode():
            from support import warm # pylint: disable=import-outside-toplevel
            self.scratch, profiles = warm.scratch_profiles(warm=KEYS[mode()])
            os.environ["BRIG_PRESETS"] = str(profiles)

    def end(self):
        if self.service:
            self.service.close()
        if self.scratch:
            self.scratch.cleanup()

    def stands_in(self):
        """Whether the service is asked in the place of a private brigd."""
        return are_warm() and not self.private and os.geteuid() == 0

    def socket(self):
        """Of the service to be asked in the place of a private one; None: have a private one."""
        if not self.stands_in():
            return None
        self.start()
        if not self.service.alive():
            raise RuntimeError(f"the session's service has ended:\n{self.service.words()}")
        return self.service.path

    def start(self):
        if self.service is None and are_warm() and os.geteuid() == 0:
            from support import daemon, warm_load # pylint: disable=import-outside-toplevel
            self.service = daemon.Daemon(CONFIG)
            warm_load.is_warm_again(self.service) # until its zygotes stand, runs are cold

    def wrong(self):
        """A session that is not what it was asked to be would show nothing."""
        if are_warm() and self.count["cold"] and not self.count["warm"]:
            return f"all of {self.count['cold']} runs were cold, though the session is {mode()}"
        return None

    def saw(self, record):
        """Every record of a run that this session gets goes by here."""
        if "warm" in record:
            self.count["warm" if record["warm"] else "cold"] += 1
        return record


SESSION = Session()


def settled():
    """Waits until the session's service does nothing, and returns it; None: there is none."""
    service = SESSION.service
    if service and service.alive():
        service.settle()
    return service


def of_service():
    """What belongs to it: (pids, the word that its control groups have in their paths). Cells come and go, so what counts is how many there are."""
    service = SESSION.service
    if not service or not service.alive():
        return set(), None
    return {service.pid, *service.below()}, f"/brigd-{service.pid}/"
