/*
 * why.h - what the jail refused to a run, and what to do about it
 *
 * Read from the record, and from the profiles and policies of this host, as
 * `brig explain` reads them.
 */
#pragma once
#include "foreground_run.h"

/* One line if the record has a refused call, a host that was not reached, or an end by SIGSYS. */
void why_print_line(const struct foreground_run *c, const json_t *record);
/* Everything that is known about refusals, for --why. */
void why_print_all(const struct foreground_run *c, const json_t *record);
