/*
 * foreign.h - files for brig run that are not Python: notebooks, which become Python, and others, which are refused with what to type.
 *
 * Pure. The files are the user's own; what becomes of them runs in the jail.
 */
#pragma once
#include "file.h"

#include <jansson.h>

/* Compiled programs and scripts for another interpreter are refused. path: as the user wrote it; "-": standard input. */
must_use int foreign_refuse_other_language(const char *path, const struct bytes *text, struct err *e);

/* A Jupyter notebook becomes the Python that runs its cells one after the other, and prints the value of each, as Jupyter does. Other texts stay. */
must_use int foreign_extract_notebook(const char *path, struct bytes *text, struct err *e);
/*
 * For brig check: a notebook becomes the text of its cells, one below the other, and *cells, which the caller frees, says where each is. Of other texts
 * *cells stays NULL. foreign_line_to_cell() makes a line of that text one of a cell, and returns the number of the cell; 0: it is in none.
 */
must_use int foreign_join_notebook(const char *path, struct bytes *text, json_t **cells, struct err *e);
json_int_t   foreign_line_to_cell(const json_t *cells, json_int_t *line);
