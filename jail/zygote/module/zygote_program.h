/*
 * zygote_program.h - runs a program in an initialised interpreter, and ends it as the interpreter's own main does
 *
 * Only the interpreter's teardown is left out: it costs two milliseconds or
 * more.
 */
#pragma once
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <stdbool.h>

/* Replaces the thread state: later calls have no frame below them. The caller must never return. False: no change. */
bool program_drop_frames(void);

/* Executes in __main__ of sys.modules. code: compiled, or bytes of source. Returns its value, or NULL with an exception. */
PyObject *program_execute(const char *path, PyObject *code);

/* run_exits, collect: atexit._run_exitfuncs and gc.collect, as they were before the program. */
_Noreturn void program_run_and_exit(const char *path, PyObject *code, PyObject *run_exits, PyObject *collect);

/* The program's part of the end: its output is flushed, its objects and cycles are destroyed. False: output was lost. */
bool program_clean_up_interpreter(PyObject *collect);
