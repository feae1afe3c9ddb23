/*
 * why.h - what the jail refused to a run, and what to do about it
 *
 * From the record, and from the profiles and policies that this host has: the
 * lines that `brig explain` would print.
 */
#pragma once
#include "run_client.h"

/* One line, where a run that did not end well was refused a call. */
void why_print_line(const struct run_client *c, const json_t *record);
/* All that is known, however the run ended. */
void why_print_all(const struct run_client *c, const json_t *record);
