/* module.c - the zygote's part of Python: a process that only forks, and forks that become programs */
#include "heap.h"
#include "zygote_program.h"
#include "zygote.h"

#include <string.h>
#include <sys/prctl.h>

/* State of the one module. In a fork the order stays in it as long as the program runs: environ points to it. */
struct state {
	struct zygote     zygote;
	struct zygote_run run;
	char             *environ; /* the environment of a program that asks for no other; entries as in run */
	Py_ssize_t        environ_len;
};

/* Texts of the run as bytes: the caller decodes them as the interpreter does. */
static PyObject *list_from_strings(char *const *texts)
{
	PyObject *list = PyList_New(0);

	for (; list && *texts; texts++) {
		PyObject *text = PyBytes_FromString(*texts);

		if (!text || PyList_Append(list, text) < 0)
			Py_CLEAR(list);
		Py_XDECREF(text);
	}
	return list;
}

/* None: the environment of most programs, which was set before the fork. */
static PyObject *environ_list_or_none(const struct state *state)
{
	const struct zygote_run *run = &state->run;

	if (run->env_len && run->env_len == (size_t)state->environ_len && memcmp(run->envp[0], state->environ, run->env_len) == 0)
		Py_RETURN_NONE;
	return list_from_strings(run->envp);
}

/* None: the order has no text, and the caller reads the file. */
static PyObject *bytes_or_none(const char *text, size_t len)
{
	if (text)
		return PyBytes_FromStringAndSize(text, (Py_ssize_t)len);
	Py_RETURN_NONE;
}

/* An exception ends the fork: the process that would send an order is gone, or sent something that is no order. */
static PyObject *await_run_spec(PyObject *self)
{
	struct state      *state = PyModule_GetState(self);
	struct zygote_run *run   = &state->run;
	PyObject          *argv, *env, *code;

	if (zygote_receive_spec(&state->zygote, run) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	argv = list_from_strings(run->argv);
	env  = environ_list_or_none(state);
	code = bytes_or_none(run->code, run->code_len);
	if (argv && env && code)
		return Py_BuildValue("(NNON)", argv, env, run->stdin_pipe ? Py_True : Py_False, code);
	Py_XDECREF(argv);
	Py_XDECREF(env);
	Py_XDECREF(code);
	return NULL;
}

/*
 * True in a fork. The after-fork hooks run when the fork has given up its rights: what a module does in one of them,
 * it does in the cell and with the cell's memory. False in the zygote, with an exception set: it cannot begin.
 */
static bool serve_forks(PyObject *self)
{
	struct state *state = PyModule_GetState(self);

	if (zygote_start_serving(&state->zygote) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	for (;;) {
		struct fork_request *request;

		if (!fork_server_await_request(&state->zygote.server, &request))
			exit(0);
		PyOS_BeforeFork();
		if (zygote_fork(&state->zygote, request, &state->run)) {
			PyOS_AfterFork_Child();
			return true;
		}
		PyOS_AfterFork_Parent();
	}
}

/* Called before the first fork. addresses: of all objects that the caller has found, sorted. */
static PyObject *compact_heap(PyObject *self, PyObject *addresses)
{
	PyObject *iterator = PyObject_GetIter(addresses), *address;
	uintptr_t last     = 0;

	(void)self;
	heap_trim();
	heap_remap_text_on_huge_pages();
	while (iterator && (address = PyIter_Next(iterator))) {
		uintptr_t number = (uintptr_t)PyLong_AsUnsignedLongLong(address) >> HEAP_HUGE_BITS;

		if (number != last)
			heap_collapse_huge_page(number);
		last = number;
		Py_DECREF(address);
	}
	Py_XDECREF(iterator);
	if (PyErr_Occurred())
		return NULL;
	Py_RETURN_NONE;
}

/* --- the life of a process --- */

static _Noreturn void report_begin_failure_and_exit(PyObject *tell)
{
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	Py_XDECREF(PyObject_CallFunctionObjArgs(tell, value, NULL));
	_exit(EXIT_FAILURE);
}

/* In a fork, inside the cell: the error goes to stderr, as one of the program would. */
static _Noreturn void print_exception_and_exit(void)
{
	PyErr_Print();
	_exit(EXIT_FAILURE);
}

/* Reports the CPU time again after the rehearsal, so that the rehearsal is not charged to the program. */
static bool rehearse_if_idle(const struct state *state, PyObject *work)
{
	PyObject *done;

	if (!zygote_has_time_to_rehearse(&state->zygote, &state->run))
		return true;
	done = PyObject_CallFunctionObjArgs(work, zygote_expects_guest_runner(&state->zygote) ? Py_True : Py_False, NULL);
	Py_XDECREF(done);
	return done && (zygote_report_confined(&state->run) || PyErr_SetFromErrno(PyExc_OSError));
}

static _Noreturn void run_program_of_fork(PyObject *self, PyObject *const works[])
{
	enum { BEGIN_FORK, REHEARSE, BECOME, RUN_EXITS, COLLECT };
	const struct state *state = PyModule_GetState(self);
	PyObject           *begun = PyObject_CallFunctionObjArgs(works[BEGIN_FORK], NULL), *order, *program, *code;
	const char         *path;

	if (begun && !zygote_report_confined(&state->run))
		begun = PyErr_SetFromErrno(PyExc_OSError);
	order   = begun && rehearse_if_idle(state, works[REHEARSE]) ? await_run_spec(self) : NULL;
	program = order ? PyObject_CallObject(works[BECOME], order) : NULL;
	Py_XDECREF(order); /* it must not hold the program's text while the program runs */
	if (!program || !PyArg_ParseTuple(program, "yO", &path, &code))
		print_exception_and_exit();
	program_run_and_exit(path, code, works[RUN_EXITS], works[COLLECT]);
}

/*
 * live(environ, begin, tell, begin_fork, rehearse, become, run_exits, collect) does not return. The zygote calls
 * begin(), and tell(exception) if it cannot begin. A fork calls begin_fork(), rehearse(has_guest_runner) if its order
 * does not come soon, and become(argv, env, has_stdin, code) -> (path, code); env: None if it is as in environ.
 */
static PyObject *live_as_zygote(PyObject *self, PyObject *args)
{
	enum { BEGIN, TELL, OF_FORK, WORKS = 7 };
	struct state *state = PyModule_GetState(self);
	PyObject     *works[WORKS], *environ;

	/* no format with '#': headers of 3.13 make calls for it that Pythons before 3.13 refuse */
	if (!PyArg_ParseTuple(args, "SOOOOOOO", &environ, works, works + 1, works + 2, works + 3, works + 4, works + 5, works + 6) ||
	    PyBytes_AsStringAndSize(environ, &state->environ, &state->environ_len) < 0)
		return NULL;
	program_drop_frames();
	if (!PyObject_CallFunctionObjArgs(works[BEGIN], NULL) || !serve_forks(self))
		report_begin_failure_and_exit(works[TELL]);
	run_program_of_fork(self, works + OF_FORK);
}

/* rehearse(path, code, collect): like a run, but exceptions are dropped, and the process goes on. */
static PyObject *rehearse_program(PyObject *self, PyObject *args)
{
	PyObject   *code, *collect;
	const char *path;

	(void)self;
	if (!PyArg_ParseTuple(args, "yOO", &path, &code, &collect))
		return NULL;
	Py_XDECREF(program_execute(path, code));
	PyErr_Clear();
	program_clean_up_interpreter(collect);
	Py_RETURN_NONE;
}

/* prctl(option, value): for processes of a session, which programs of the cell must not read (PR_SET_DUMPABLE). */
static PyObject *call_prctl(PyObject *self, PyObject *args)
{
	int option, value;

	(void)self;
	if (!PyArg_ParseTuple(args, "ii", &option, &value))
		return NULL;
	if (prctl(option, value, 0, 0, 0) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* For sessions: what C code has printed is output of the call that did it. A client that does not read makes it wait. */
static PyObject *flush_c_streams(PyObject *self, PyObject *args)
{
	(void)self;
	(void)args;
	Py_BEGIN_ALLOW_THREADS
	fflush(stdout);
	fflush(stderr);
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "live", live_as_zygote, METH_VARARGS, NULL },
	{ "rehearse", rehearse_program, METH_VARARGS, NULL },
	{ "settle", compact_heap, METH_O, NULL },
	{ "prctl", call_prctl, METH_VARARGS, NULL },
	{ "flush", flush_c_streams, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};
static PyModuleDef_Slot   slots[]    = { { 0, NULL } };
static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, "zygote", NULL, sizeof(struct state), methods, slots, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_zygote(void)
{
	return PyModuleDef_Init(&definition);
}
