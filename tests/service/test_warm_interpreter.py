"""What a program sees of the interpreter, and how it ends, is the same in a fork of a zygote as in an interpreter of its own."""
import pytest

from warm_runs import assert_same, folder, kept, talk # noqa: F401

FRAMES = {
    "no frame is below the program": "import sys, inspect, traceback\nprint(sys._getframe().f_back, len(inspect.stack()))\ntraceback.print_stack()\n",
    "one frame is told of the thread": "import sys, threading\nprint([(k == threading.get_ident(), f.f_lineno, f.f_back) for k, f in sys._current_frames().items()])\nprint(len(sys._current_exceptions()))\n",
    "recursion has exactly as much room": "d = 0\ndef f():\n    global d\n    d += 1\n    f()\ntry: f()\nexcept RecursionError as e: print(d, e)\n",
    "a recursion that nobody catches": "def f(): f()\nf()\n",
    "a smaller limit of recursion": "import sys\nsys.setrecursionlimit(200)\nd = 0\ndef f():\n    global d\n    d += 1; f()\ntry: f()\nexcept RecursionError: print(d)\n",
    "the debugger sees the program alone": "import pdb, io, sys\npdb.Pdb(stdin=io.StringIO('p 1+1\\nw\\nc\\n'), stdout=sys.stdout).set_trace()\nprint('x')\n",
    "a trace function sees the program alone": "import sys\nl = []\ndef g(): pass\nsys.settrace(lambda f, e, a: l.append((f.f_code.co_name, f.f_lineno)))\ng()\nsys.settrace(None)\nprint(l)\n",
    "bytecode and flags of the main code": "import sys, dis\nc = sys._getframe().f_code\nprint(c.co_flags, c.co_filename, c.co_name, c.co_firstlineno)\ndef f(x): return x + 1\nfor i in range(20): f(i)\ndis.dis(f, adaptive=True)\n",
    "nobody is tracing": "import sys, threading, tracemalloc\nprint(sys.gettrace(), sys.getprofile(), threading.gettrace(), tracemalloc.is_tracing(), sys.exc_info(), sys.exception(), hasattr(sys, 'last_type'))\n",
    "hooks of coroutines": "import sys\nprint(sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth(), sys.getswitchinterval(), sys.get_int_max_str_digits())\n",
}
STATE = {
    "all that sys has": "import sys\nprint(sorted(sys.__dict__))\nprint([(k, v) for k, v in sys.__dict__.items() if isinstance(v, (str, int, tuple, list, type(None))) and k != '__doc__'])\n",
    "the names in every module": "import sys\nfor n, m in sorted(sys.modules.items()):\n    if hasattr(m, '__dict__'): print(n, sorted(k for k in m.__dict__ if k != '__warningregistry__'))\n",
    "filters and registries of warnings": "import sys, warnings\nprint(warnings.filters, warnings.onceregistry, warnings._defaultaction, [n for n, m in sys.modules.items() if getattr(m, '__warningregistry__', 0)])\n",
    "a warning is told once in each place": "import warnings\nfor i in 1, 2: warnings.warn('w')\nprint(sorted(k for k in __warningregistry__ if k != 'version'))\n",
    "caches of the import system": "import sys, linecache\nprint(sorted(sys.path_importer_cache), sys.meta_path, len(sys.path_hooks), sys.path, sys.dont_write_bytecode, list(linecache.cache))\n",
    "hooks and streams are the first ones": "import sys\nprint(sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook, sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__)\n",
    "exit functions, threads and contexts of nobody": "import atexit, threading, contextvars\nprint(atexit._ncallbacks(), [t.name for t in threading.enumerate()], threading.main_thread().is_alive(), list(contextvars.copy_context()))\n",
    "all classes, as their bases list them": "def below(c):\n    for s in type.__subclasses__(c):\n        yield s.__module__ + '.' + s.__qualname__\n        yield from below(s)\nprint(sorted(set(below(object))))\n",
    "the loader knows the source": "print(__loader__.path, __loader__.name, type(__loader__), __loader__.get_source('__main__'), __annotations__)\n",
    "objects of the main module are pickled": "import pickle\nclass A:\n    def __init__(s, x): s.x = x\nb = pickle.dumps(A(3)); print(b, pickle.loads(b).x)\n",
    "classes of the main module in a spawned process": "import multiprocessing as m\nclass A:\n    def __init__(s, x): s.x = x\ndef f(a): return A(a.x + 1)\nif __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [A(1)])[0].x)\n",
    "a child interpreter": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys, os; print(sys.argv, sys.flags, sorted(os.environ))'], capture_output=True, text=True))\n",
    "the program once more as a child": "import subprocess, sys\nif len(sys.argv) < 2: print(subprocess.run([sys.executable, __file__, 'x'], capture_output=True, text=True).stdout)\nelse: print('child', sys.argv)\n",
    "the environment for C": "import ctypes, os\ng = ctypes.CDLL(None).getenv; g.restype = ctypes.c_char_p\nprint(g(b'HOME'), g(b'PATH'), g(b'OPENBLAS_NUM_THREADS')); os.environ['HOME'] = '/x'; print(g(b'HOME')); os.environ.clear(); print(g(b'HOME'))\n",
    "calls back from C find the thread": "import ctypes\nq = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda a, b: 0)\na = (ctypes.c_int * 3)(3, 2, 1); ctypes.CDLL(None).qsort(a, 3, 4, q); print(list(a), ctypes.pythonapi.PyGILState_Check())\n",
    "an exception is sent to the main thread": "import ctypes, threading\nctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(ValueError))\nfor i in range(1000): pass\n",
    "the main thread is interrupted": "import _thread\n_thread.interrupt_main()\nfor i in range(1000): pass\n",
    "a timer, a wake-up descriptor and pending signals": "import signal\nrang = []\nsignal.signal(signal.SIGALRM, lambda *a: rang.append(1))\nsignal.setitimer(signal.ITIMER_REAL, .02)\nwhile not rang or signal.getitimer(0) != (0, 0): pass\nprint(rang, signal.getitimer(1), signal.getitimer(2), signal.set_wakeup_fd(-1), signal.sigpending())\n",
    "faulthandler": "import faulthandler, os\nprint(faulthandler.is_enabled(), flush=True); faulthandler.enable()\nif os.fork() == 0: os.abort()\nos.wait()\n",
    "hooks at a fork": "import os\nfor n in 'before', 'after_in_child': os.register_at_fork(**{n: lambda n=n: os.write(1, n.encode() + b'\\n')})\np = os.fork()\nif p == 0: os._exit(0)\nos.waitpid(p, 0)\n",
    "a fork in a thread": "import threading, os\ndef f():\n    p = os.fork()\n    if p == 0:\n        print(threading.main_thread() is threading.current_thread(), threading.active_count(), flush=True); os._exit(0)\n    os.waitpid(p, 0)\nt = threading.Thread(target=f); t.start(); t.join()\n",
    "used time, of children too": "import os, resource, time\nt = os.times(); r = resource.getrusage(resource.RUSAGE_CHILDREN)\nprint(t.children_user, t.children_system, r.ru_maxrss, r.ru_minflt, r.ru_utime, time.process_time() < 5, time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) < 5)\n",
    "when it was started": "import os, time\nf = open('/proc/self/stat').read().rsplit(')', 1)[1].split()\nprint(time.clock_gettime(time.CLOCK_BOOTTIME) - int(f[19]) / os.sysconf('SC_CLK_TCK') < 10)\n",
    "status, but for memory and counts": "skip = 'Vm Rss Hugetlb PPid voluntary_ctxt nonvoluntary_ctxt FDSize SigQ'.split()\nprint([l for l in open('/proc/self/status') if not l.startswith(tuple(skip))])\n",
    "more of its own files in /proc": "for n in 'oom_score_adj coredump_filter personality timerslack_ns setgroups cpuset limits'.split():\n    try: print(n, open('/proc/self/' + n).read())\n    except OSError as e: print(n, e)\n",
    "the namespaces are those of PID 1": "import os\nfor n in sorted(os.listdir('/proc/self/ns')):\n    try: print(n, os.stat(f'/proc/self/ns/{n}').st_ino == os.stat(f'/proc/1/ns/{n}').st_ino)\n    except OSError as e: print(n, e)\nprint(os.readlink('/proc/self/exe'), os.readlink('/proc/self/cwd'), os.readlink('/proc/self/root'))\n",
    "settings of the process": "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nprint([(n, l.prctl(n, 0, 0, 0, 0), ctypes.get_errno()) for n in (3, 21, 23, 27, 30, 39, 42, 47)])\nv = ctypes.c_int(9)\nprint(l.prctl(2, ctypes.byref(v)), v.value, l.prctl(37, ctypes.byref(v)), v.value)\n",
    "standard descriptors": "import os, fcntl\nfor i in 0, 1, 2: s = os.fstat(i); print(i, fcntl.fcntl(i, fcntl.F_GETFD), oct(fcntl.fcntl(i, fcntl.F_GETFL)), oct(s.st_mode), s.st_uid, os.get_blocking(i))\n",
    "main.py and what is made beside it": "import os\ns = os.stat('main.py'); print(oct(s.st_mode), s.st_uid, s.st_gid, s.st_size, os.access('main.py', os.W_OK), open('main.py').read()[:9])\nopen('a', 'w'); os.mkdir('d'); print(oct(os.stat('a').st_mode), oct(os.stat('d').st_mode), os.stat('a').st_uid)\n",
    "who can be signalled": "import os\nfor s in 0, 9, 15:\n    try: print(os.kill(1, s))\n    except OSError as e: print(e)\n",
    "scheduling": "import os; print(os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(0, 0), os.nice(0))\n",
    "locale and encodings": "import locale, sys, time\nprint(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), locale.localeconv()['decimal_point'], sys.getfilesystemencoding(), sys.getfilesystemencodeerrors(), time.localtime(0))\n",
}
END = {
    "a number too large to be a status": "import sys; sys.exit(1 << 80)",
    "a number larger than a status": "import sys; sys.exit(1 << 40)",
    "a number below zero": "import sys; sys.exit(-1)",
    "a tuple is printed": "import sys; sys.exit((1, 2))",
    "a status that was set later": "e = SystemExit(1); e.code = 'text'; raise e",
    "a subclass of the interrupt is an error like others": "class K(KeyboardInterrupt): pass\nraise K\n",
    "a hook that exits": "import sys\nsys.excepthook = lambda *a: sys.exit(7)\n1/0\n",
    "no hook": "import sys\ndel sys.excepthook\n1/0\n",
    "no stderr": "import sys\nsys.stderr = None\n1/0\n",
    "stderr was closed": "import os; os.close(2); 1/0",
    "stdout was closed": "import os; print('x'); os.close(1)",
    "stdout was closed, and another status": "import sys, os; print('x'); os.close(1); sys.exit(5)",
    "stdout is full": "import sys; sys.stdout = open('/dev/full', 'w'); print('x'); raise KeyboardInterrupt",
    "stdout is somebody's who raises": "import sys\nclass B:\n    closed = False\n    def write(s, x): pass\n    def flush(s): raise ValueError('no')\nsys.stdout = B()\n",
    "stderr is somebody's who raises": "import sys\nclass B:\n    closed = False\n    def write(s, x): pass\n    def flush(s): raise ValueError('no')\nsys.stderr = B()\n",
    "stdout was replaced when finalisers print": "import sys, io\nclass A:\n    def __del__(s): print('del')\na = A()\nsys.stdout = io.StringIO()\n",
    "objects in a frame that raised": "def f():\n    a = open('/dev/stdout', 'w'); a.write('late\\n')\n    1/0\nf()\n",
    "finalisers, in their order": "class A:\n    def __init__(s, n): s.n = n\n    def __del__(s): print(s.n, A)\nz = A('z'); _p = A('_p'); __d = A('__d'); a = A('a'); __x__ = A('__x__')\n",
    "finalisers with the collector off": "import gc; gc.disable()\nclass A:\n    def __del__(s): print('del')\na = A(); a.a = a\nb = A(); b.b = b; del b\n",
    "somebody has the main module": "import sys, json\njson.m = sys.modules['__main__']\nclass A:\n    def __del__(s): print('del')\na = A()\n",
    "the main module was replaced": "import sys\nclass M:\n    def __del__(s): print('m')\nsys.modules['__main__'] = M(); print(1)\n",
    "the main module was removed": "import sys; del sys.modules['__main__']; print(1)",
    "there are no modules": "import sys; sys.modules.clear()",
    "an exit function that raises": "import atexit\natexit.register(lambda: 1/0)\natexit.register(print, 'x')\n",
    "an exit function that exits": "import atexit, sys\natexit.register(sys.exit, 5)\nsys.exit(3)\n",
    "an exit function that starts a thread": "import threading, atexit\ndef f():\n    t = threading.Thread(target=print, args=('x',))\n    try: t.start(); t.join()\n    except RuntimeError as e: print(e)\natexit.register(f)\n",
    "all at once, in their order": "import atexit, threading, weakref\nclass A:\n    def __del__(s): print('del')\na = A()\natexit.register(print, 'atexit')\nweakref.finalize(a, print, 'fin')\nsaid = threading.Event()\ndef last():\n    said.wait(); print('thread')\nthreading.Thread(target=last).start()\nprint('main'); said.set()\n",
    "a thread that raises": "import threading\nthreading.Thread(target=lambda: 1/0, name='t').start()\n",
    "a thread that exits": "import threading, sys\nthreading.Thread(target=lambda: sys.exit(3)).start()\n",
    "a generator that was left": "def g():\n    try: yield\n    finally: print('fin')\nx = g(); next(x)\n",
    "a directory that was left": "import tempfile; t = tempfile.TemporaryDirectory()",
    "executors and pools that were left": "import concurrent.futures as c, multiprocessing as m\nif __name__ == '__main__':\n    e = c.ThreadPoolExecutor(1); e.submit(print, 'x')\n    p = m.Pool(1); print(p.map(abs, [-1]))\n",
    "what a C library has printed": "import ctypes; ctypes.CDLL(None).printf(b'hello\\n')",
    "a child that ends by itself": "import os, sys, atexit\natexit.register(lambda: print('x', flush=True))\nif os.fork() == 0: sys.exit(3)\nprint(os.wait()[1] >> 8)\n",
    "a child that raises": "import os\nif os.fork() == 0: 1/0\nos.wait(); print('p')\n",
    "a group of exceptions": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "an exception with a cause and a note": "try: 1/0\nexcept Exception as e:\n    n = ValueError('x'); n.add_note('note'); raise n from e\n",
    "a deep structure": "a = None\nclass N: pass\nfor i in range(100000):\n    b = N(); b.n = a; a = b\n",
}
SOURCE = {
    "a mark of UTF-8 and lines of Windows": "\ufeffprint(1)\r\nif 1:\r\n    print(2)\r\n",
    "a future of its own": "from __future__ import annotations\ndef f(x: y): pass\nprint(f.__annotations__)\n",
    "a warning about the source": "x = 1 is 1\nassert (1, 'x')\nprint('\\d')\n",
    "tabs and spaces": "if 1:\n\tx = 1\n        y = 2\n",
    "an end too early": "def f(",
    "await outside of a function": "await x",
    "return outside of a function": "return 1",
    "a character that is none of Python's": "x = “a”\n",
}


@pytest.mark.parametrize("name", FRAMES)
def test_no_frame_of_ours_is_seen(talk, name):
    assert_same(talk, FRAMES[name])


@pytest.mark.parametrize("name", STATE)
def test_the_interpreter_is_as_if_it_had_just_begun(talk, name):
    assert_same(talk, STATE[name])


@pytest.mark.parametrize("name", END)
def test_the_end_is_the_interpreters(talk, name):
    assert_same(talk, END[name])


@pytest.mark.parametrize("name", SOURCE)
def test_the_source_is_read_as_a_file_is(talk, name):
    assert_same(talk, SOURCE[name])


def test_the_collector_is_on_and_its_counts_are_those_of_a_beginning(talk):
    run = talk.run("import gc; print(gc.isenabled(), gc.get_threshold(), gc.get_count()[0] < 700, gc.get_count()[2] < 2, gc.get_debug(), gc.garbage)\n"
                   "class A: pass\nfor i in range(2000):\n    a = A(); a.a = a\nprint(gc.get_stats()[0]['collections'] > 1, gc.collect() >= 0)\n")
    assert run.record["warm"] and run.stdout == "True (2000, 10, 10) True True 0 []\nTrue True\n", run
