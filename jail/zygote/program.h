/*
 * program.h - a program in an interpreter that has begun: executed and ended as the interpreter's own main does it
 *
 * What the interpreter would do at its end and a fork does not is to take
 * itself apart, which costs two milliseconds and more.
 */
#pragma once
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdbool.h>

/* What is called from here on has no frame below it. Nothing may return to the caller. False: as it was. */
bool program_leave_frames(void);

/* In the __main__ of sys.modules. code: compiled, or the source as bytes. Its value, or NULL with an exception set. */
PyObject *program_execute(const char *path, PyObject *code);

/* run_exits, collect: atexit._run_exitfuncs and gc.collect, as they were before the program. */
_Noreturn void program_run(const char *path, PyObject *code, PyObject *run_exits, PyObject *collect);

/* The part of its end that has no effect but on the program: what it holds goes, cycles too, and what it has printed. */
bool program_wind_up(PyObject *collect);
