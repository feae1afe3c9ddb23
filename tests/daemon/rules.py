"""Who asks, for what, and what a daemon allows them."""

from support import host

ANN, BOB, EVE = host.own_id(5), host.own_id(6), host.own_id(7)
SLEEP = "import time; print('up', flush=True); time.sleep(600)"
LONG = {"wall_ms": 300000} # as much as profiles allow: a program that sleeps with it outlives every wait of a test
MANY = {
    # for tests that are not about quotas
    "runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000}],
}
