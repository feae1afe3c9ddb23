"""What a service was started with does not reach the programs that a zygote forks."""
import pytest

from support import daemon as daemons
from support import warm

ASK = "import signal; print([(n, str(signal.getsignal(n))) for n in range(1, 65) if n not in (32, 33)], signal.pthread_sigmask(0, []))"
SHELL = 'trap "" INT QUIT HUP TSTP USR1; exec "$@"' # a shell's "&" does the first two, nohup the third


@pytest.fixture
def service(start_daemon):
    scratch, profiles = warm.scratch_profiles("basic")
    made = start_daemon(env={"BRIG_PRESETS": str(profiles)}, through=[*daemons.with_accounts(), "sh", "-c", SHELL, "sh"])
    with made.connect() as talk:
        warm.wait(talk)
    yield made
    scratch.cleanup()


def test_signals_that_a_service_ignores_are_not_ignored_in_a_warm_run(service):
    warm_run, cold_run = service.run(ASK), service.run(ASK, cold=True)
    assert (warm_run.record["warm"], cold_run.record["warm"]) == (True, False)
    assert "(2, '<built-in function default_int_handler>')" in warm_run.stdout and warm_run.stdout == cold_run.stdout
