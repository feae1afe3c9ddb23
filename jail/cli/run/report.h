/* report.h - what brig reports about a run: the record, messages on stderr, and its own exit status */
#pragma once
#include "program_report.h"
#include "run_client.h"

/* Prints everything, and returns brig's exit status. */
int report_run(const struct run_client *c);

/* The report of the guest runner, which the program may have forged: a new reference, or NULL with *e. */
json_t *report_of_program(const struct run_client *c, enum program_report_kind kind, struct err *e);

/* The parts of report_run(), for commands with another output. The record has nothing from the program's own report. */
json_t *report_make_record(const struct run_client *c); /* new reference */
void    report_print_story(const struct run_client *c, const json_t *record);
int     report_print_json(const json_t *object); /* 0, or -1 when it could not be written; the message is then printed */
