/*
 * zygote_program.h - runs a program in an initialised interpreter, and ends it as the interpreter's own main does
 *
 * Only the interpreter's teardown is left out: it costs two milliseconds or
 * more.
 */
#pragma once
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdbool.h>

/* Replaces the thread state: code that is called from here on has no frame below it. The caller must never return. False: nothing has changed. */
bool program_leave_frames(void);

/* Executes in the __main__ of sys.modules. code: compiled, or the source as bytes. Returns its value, or NULL with an exception set. */
PyObject *program_execute(const char *path, PyObject *code);

/* run_exits, collect: atexit._run_exitfuncs and gc.collect, as they were before the program. */
_Noreturn void program_run(const char *path, PyObject *code, PyObject *run_exits, PyObject *collect);

/* The part of the end that affects only the program: its output is flushed, its objects are destroyed, cycles too. False: output was lost. */
bool program_wind_up(PyObject *collect);
