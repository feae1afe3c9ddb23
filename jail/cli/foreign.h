/*
 * foreign.h - files for brig run that are not Python: notebooks, which become Python, and others, which are refused with what to type.
 *
 * Pure. The files are the user's own; what becomes of them runs in the jail.
 */
#pragma once
#include "file.h"

/* Compiled programs and scripts for another interpreter are refused. path: as the user wrote it; "-": standard input. */
must_use int foreign_check(const char *path, const struct bytes *text, struct err *e);

/* A Jupyter notebook becomes the Python that runs its cells one after the other, and prints the value of each, as Jupyter does. Other texts stay. */
must_use int foreign_take_notebook(const char *path, struct bytes *text, struct err *e);
