# spawn.py - multiprocessing by spawn or forkserver in a session: what was defined there is refused where it is sent to such a process
#
# These processes begin without the names of the session. A pool would start one after the other, each of which fails when it reads its work, and its
# caller would wait for ever; an executor would only report that a process ended abruptly. Processes by fork have the names.
from threading import current_thread
from weakref import WeakSet

NOT_THERE = ("is defined in this session, which processes that are started by spawn or forkserver do not have; take multiprocessing.get_context('fork'), "
             "or write it into a module and import that")


def must_be_imported(value):
    return is_a(value, (type(must_be_imported), type)) and getattr(value, "__module__", None) == "__main__" and getattr(sys.modules.get("__main__"), "__file__", None) is None


def refuse_own_names(reduction):
    """Called when multiprocessing.reduction is imported."""
    pickler, sending = reduction.ForkingPickler, WeakSet() # threads that send work to such a process

    def reducer_override(self, value):
        spawning = sys.modules["multiprocessing.context"].get_spawning_popen()
        if must_be_imported(value) and (spawning is not None or current_thread() in sending):
            raise sys.modules["pickle"].PicklingError(f"{value.__qualname__} {NOT_THERE}")
        return NotImplemented
    pickler.reducer_override = reducer_override
    return sending


def refuse_in_pools(pool, sending):
    """Called when multiprocessing.pool is imported: work that cannot be sent is an error of its call."""
    set_up = pool.Pool._setup_queues

    def _setup_queues(self):
        set_up(self)
        put = self._quick_put
        if self._ctx.get_start_method() == "fork":
            return

        def put_checked(work):
            sending.add(current_thread())
            try:
                put(work)
            finally:
                sending.discard(current_thread())
        self._quick_put = put_checked
    pool.Pool._setup_queues = _setup_queues


def refuse_in_executors(process, sending):
    """Called when concurrent.futures.process is imported: a thread of the executor sends its work, and gives an error to the work's future."""
    queue = process._SafeQueue
    set_up, start, fail = queue.__init__, queue._start_thread, queue._on_queue_feeder_error

    def __init__(self, *args, ctx, **kwargs):
        set_up(self, *args, ctx=ctx, **kwargs)
        self._forks = ctx.get_start_method() == "fork"

    def _start_thread(self):
        start(self)
        if not self._forks:
            sending.add(self._thread)

    def _on_queue_feeder_error(self, error, work):
        fail(self, error.with_traceback(None) if NOT_THERE in str(error) else error, work) # its lines are not the program's
    queue.__init__, queue._start_thread, queue._on_queue_feeder_error = __init__, _start_thread, _on_queue_feeder_error


SENDING = []
SPAWN_HOOKS = {"multiprocessing.reduction": lambda module: SENDING.append(refuse_own_names(module)),
               "multiprocessing.pool": lambda module: refuse_in_pools(module, SENDING[0]),
               "concurrent.futures.process": lambda module: refuse_in_executors(module, SENDING[0])}
