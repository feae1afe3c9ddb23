/* module.c - the zygote's part of Python: one function, serve(), which returns only in a fork that has become a program */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>

#include "zygote.h"

/* Texts of the run as bytes: what they are in str is for the caller, who decodes as the interpreter does. */
static PyObject *list_of(char *const *texts)
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

static PyObject *tell(const struct zygote_run *run)
{
	PyObject *argv = list_of(run->argv), *env = list_of(run->envp);

	if (argv && env)
		return Py_BuildValue("(NNO)", argv, env, run->stdin_pipe ? Py_True : Py_False);
	Py_XDECREF(argv);
	Py_XDECREF(env);
	return NULL;
}

/*
 * The hooks run in the fork when it has given everything up: what a module does in one of them, it does in the cell and
 * with the cell's memory.
 */
static PyObject *serve(PyObject *self, PyObject *none)
{
	static struct zygote_run run; /* its texts stay for as long as the program */
	static struct zygote     z;

	(void)self;
	(void)none;
	if (zygote_open(&z) < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	for (;;) {
		struct zygote_request request;

		if (!zygote_await(&z, &request))
			exit(0);
		PyOS_BeforeFork();
		if (zygote_fork(&z, &request, &run)) {
			PyOS_AfterFork_Child();
			return tell(&run);
		}
		PyOS_AfterFork_Parent();
	}
}

/* As the interpreter tells what ended it: by sys.excepthook, and by its own means when that fails. */
static PyObject *print_error(PyObject *self, PyObject *args)
{
	PyObject *type, *value, *trace;

	(void)self;
	if (!PyArg_ParseTuple(args, "OOO", &type, &value, &trace))
		return NULL;
	Py_INCREF(type);
	Py_INCREF(value);
	if (trace == Py_None)
		trace = NULL;
	Py_XINCREF(trace);
	PyErr_Restore(type, value, trace);
	PyErr_PrintEx(1);
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "serve", serve, METH_NOARGS, NULL },
	{ "print_error", print_error, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};
static PyModuleDef_Slot   slots[]    = { { 0, NULL } };
static struct PyModuleDef definition = { PyModuleDef_HEAD_INIT, "zygote", NULL, 0, methods, slots, NULL, NULL, NULL };

PyMODINIT_FUNC PyInit_zygote(void)
{
	return PyModuleDef_Init(&definition);
}
