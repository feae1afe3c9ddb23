"""Who asks, and what a daemon allows them."""

ANN, BOB, EVE = 28661, 28662, 28663 # no account of Debian has such ids
MANY = {
    # for tests that are not about quotas
    "runs": 64, "access": [{"uid": 0, "profiles": ["basic", "strict"], "runs": 64, "runs_per_minute": 1000000}],
}
