/*
 * exposition.h - figures as Prometheus reads them: its text format, version 0.0.4.
 *
 * Nothing is kept between calls: the caller writes the head of a metric once, then all of its samples, in base units
 * (seconds, bytes). Names of metrics and labels must be valid and are not escaped. The value of a label may be any text:
 * quotes, backslashes and newlines are escaped, every other byte that is not printable ASCII becomes a question mark.
 */
#pragma once
#include "defs.h"

#include <stdio.h>

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition_label {
	const char *name, *value;
};

/* type: "counter", "gauge" or "histogram"; help: one line. */
void exposition_print_head(FILE *out, const char *name, const char *type, const char *help);

/* labels end with a row whose name is NULL; labels == NULL: none. */
void exposition_print_count(FILE *out, const char *name, const struct exposition_label *labels, uint64_t value);
void exposition_print_number(FILE *out, const char *name, const struct exposition_label *labels, double value);
