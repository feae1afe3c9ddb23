#include "zygote_program.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { STATUS_FLUSH = 120 }; /* the interpreter's exit status when it cannot flush stdout */

extern PyInterpreterState *PyInterpreterState_Get(void) __attribute__((weak)); /* 3.9 */
extern void PyErr_FormatUnraisable(const char *, ...) __attribute__((weak));   /* 3.13 */

/* --- begin --- */

static void replace_thread_state(PyInterpreterState *interpreter)
{
	PyThreadState *state = PyThreadState_New(interpreter), *old = PyThreadState_Swap(state);

	PyThreadState_Clear(old);
	PyThreadState_Delete(old);
}

/*
 * Frames belong to a thread state. It is replaced twice, because PyGILState_Ensure() finds the first state that a
 * thread has made and not deleted: the first new one is made while the old one still exists, so that only the second
 * one is found.
 */
bool program_drop_frames(void)
{
	if (!PyInterpreterState_Get)
		return false;
	replace_thread_state(PyInterpreterState_Get());
	replace_thread_state(PyInterpreterState_Get());
	return true;
}

/* --- run --- */

PyObject *program_execute(const char *path, PyObject *code)
{
	PyObject *names = PyModule_GetDict(PyImport_AddModule("__main__")), *value;

	Py_INCREF(names);
	Py_INCREF(code);
	if (PyBytes_Check(code)) {
		PyObject *source = code;

		code = Py_CompileString(PyBytes_AsString(source), path, Py_file_input);
		Py_DECREF(source);
	}
	value = code ? PyEval_EvalCode(code, names, names) : NULL;
	Py_XDECREF(code);
	Py_DECREF(names);
	return value;
}

/* --- end --- */

/* Prints a value of sys.exit() that is no number. */
static int print_exit_value(PyObject *value)
{
	PyObject *to = PySys_GetObject("stderr");

	if (to && to != Py_None && PyFile_WriteObject(value, to, Py_PRINT_RAW) < 0)
		PyErr_Clear();
	PySys_WriteStderr("\n");
	return 1;
}

static int exit_status_of_value(PyObject *value)
{
	if (value == Py_None)
		return 0;
	if (PyLong_Check(value))
		return (int)PyLong_AsLong(value);
	return print_exit_value(value);
}

static int exit_status_of_system_exit(void)
{
	PyObject *type, *value, *trace, *code;
	int       status;

	PyErr_Fetch(&type, &value, &trace);
	PyErr_NormalizeException(&type, &value, &trace);
	code = value ? PyObject_GetAttrString(value, "code") : NULL;
	PyErr_Clear();
	status = code ? exit_status_of_value(code) : value ? exit_status_of_value(value) : 0;
	PyErr_Clear();
	Py_XDECREF(code);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return status;
}

static int exit_status_of_exception(void)
{
	if (PyErr_ExceptionMatches(PyExc_SystemExit))
		return exit_status_of_system_exit();
	PyErr_Print();
	return 1;
}

static void call_python_hook(PyObject *work, PyObject *blamed)
{
	PyObject *done = PyObject_CallFunctionObjArgs(work, NULL);

	if (!done)
		PyErr_WriteUnraisable(blamed);
	Py_XDECREF(done);
}

static void join_python_threads(void)
{
	PyObject *name = PyUnicode_FromString("threading"), *threading = PyImport_GetModule(name);
	PyObject *shutdown = threading ? PyObject_GetAttrString(threading, "_shutdown") : NULL;

	if (shutdown)
		call_python_hook(shutdown, threading);
	else if (PyErr_Occurred())
		PyErr_WriteUnraisable(threading);
	Py_XDECREF(shutdown);
	Py_XDECREF(threading);
	Py_DECREF(name);
}

static bool is_stream_closed(PyObject *stream)
{
	PyObject *closed = PyObject_GetAttrString(stream, "closed");
	int       is     = closed ? PyObject_IsTrue(closed) : 0;

	Py_XDECREF(closed);
	PyErr_Clear();
	return is > 0;
}

static bool flush_sys_stream(const char *name, bool tells)
{
	PyObject *stream = PySys_GetObject(name), *done;

	if (!stream || stream == Py_None || is_stream_closed(stream))
		return true;
	Py_INCREF(stream);
	done = PyObject_CallMethod(stream, "flush", NULL);
	if (!done && tells && PyErr_FormatUnraisable)
		PyErr_FormatUnraisable("Exception ignored on flushing sys.%s", name);
	else if (!done && tells)
		PyErr_WriteUnraisable(stream);
	PyErr_Clear();
	Py_XDECREF(done);
	Py_DECREF(stream);
	return done != NULL;
}

static bool flush_sys_streams(bool tells)
{
	bool good = flush_sys_stream("stdout", tells);

	return flush_sys_stream("stderr", false) && good;
}

/* Drops what sys holds of the program: its last traceback, and streams that replaced the original ones. */
static void reset_sys_module(void)
{
	static const char *const none[]   = { "last_type", "last_value", "last_traceback", "last_exc" /* since 3.12 */ };
	static const char *const stream[] = { "stdin", "stdout", "stderr" };
	static const char *const first[]  = { "__stdin__", "__stdout__", "__stderr__" };

	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		if (PySys_GetObject(none[i]))
			PySys_SetObject(none[i], Py_None);
	for (size_t i = 0; i < sizeof stream / sizeof *stream; i++) {
		PyObject *old = PySys_GetObject(first[i]); /* compared first, because each write copies a page that is shared with the zygote */

		if (PySys_GetObject(stream[i]) != old)
			PySys_SetObject(stream[i], old ? old : Py_None);
	}
	PyErr_Clear();
}

/* As the interpreter clears a module: names with one leading underscore go first, __builtins__ stays. */
static void clear_module_names(PyObject *names, bool private)
{
	PyObject *keys = PyDict_Keys(names);

	for (Py_ssize_t i = 0; keys && i < PyList_Size(keys); i++) {
		PyObject *key        = PyList_GetItem(keys, i);
		bool      is_name    = PyUnicode_Check(key) && PyUnicode_GetLength(key) > 1;
		bool      is_private = is_name && PyUnicode_ReadChar(key, 0) == '_' && PyUnicode_ReadChar(key, 1) != '_';

		if (is_private == private && (!is_name || PyUnicode_CompareWithASCIIString(key, "__builtins__") != 0))
			PyDict_SetItem(names, key, Py_None);
	}
	Py_XDECREF(keys);
	PyErr_Clear();
}

/*
 * Objects that only the module holds are destroyed at once, in the order in which they were bound; the rest with
 * their cycles. If the module survives because something else holds it, it is emptied.
 */
static void drop_main_module(PyObject *collect)
{
	PyObject *modules = PyImport_GetModuleDict(), *main = PyDict_GetItemString(modules, "__main__");
	PyObject *known   = main ? PyWeakref_NewRef(main, NULL) : NULL;

	if (main)
		PyDict_DelItemString(modules, "__main__");
	call_python_hook(collect, collect);
	main = known ? PyObject_CallFunctionObjArgs(known, NULL) : NULL;
	if (main && PyModule_Check(main)) {
		clear_module_names(PyModule_GetDict(main), true);
		clear_module_names(PyModule_GetDict(main), false);
	}
	Py_XDECREF(main);
	Py_XDECREF(known);
	PyErr_Clear();
}

/*
 * False when output is lost, as at the end of the interpreter. A failure to flush what finalisers have printed is
 * ignored, because the streams go with the rest.
 */
bool program_clean_up_interpreter(PyObject *collect)
{
	bool good = flush_sys_streams(true);

	PyGC_Collect();
	reset_sys_module();
	drop_main_module(collect);
	flush_sys_streams(false);
	return good;
}

static _Noreturn void kill_self_by_sigint(void)
{
	signal(SIGINT, SIG_DFL);
	kill(getpid(), SIGINT);
	_exit(128 + SIGINT);
}

void program_run_and_exit(const char *path, PyObject *code, PyObject *run_exits, PyObject *collect)
{
	PyObject *value  = program_execute(path, code);
	bool      is_int = !value && PyErr_Occurred() == PyExc_KeyboardInterrupt; /* no subclass of it */
	int       status = value ? 0 : exit_status_of_exception();
	bool      good;

	Py_XDECREF(value);
	join_python_threads();
	call_python_hook(run_exits, run_exits);
	good = program_clean_up_interpreter(collect);
	fflush(NULL); /* what libraries have printed with the C library */
	if (is_int)
		kill_self_by_sigint();
	_exit(good ? status : STATUS_FLUSH);
}
