/* report.h - what brig reports about a run: the record, messages on stderr, and its own exit status */
#pragma once
#include "foreground_run.h"

/* Prints everything, and returns brig's exit status. */
int report_run(const struct foreground_run *c);

/* The parts of report_run(), for commands with another output. The record has nothing from the program's own report. */
json_t *report_make_record(const struct foreground_run *c); /* new reference */
void    report_print_ending(const struct foreground_run *c, const json_t *record);
int     report_print_json(const json_t *object); /* 0, or -1 when it could not be written; the message is then printed */
