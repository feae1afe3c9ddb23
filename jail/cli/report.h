/* report.h - what brig says of a run: the record, one story on stderr, and its own exit status */
#pragma once
#include "program_report.h"
#include "run_client.h"

/* Prints, and returns what brig exits with. */
int report_run(const struct run_client *c);

/* What the guest runner said, or the program in its place: a new reference, or NULL with what is wrong with it. */
json_t *report_of_program(const struct run_client *c, enum program_report_kind kind, struct err *e);

/* The parts of it, for who has another story to tell. What the program reported of itself is not in the record. */
json_t *report_make_record(const struct run_client *c); /* new reference */
void    report_print_story(const struct run_client *c, const json_t *record);
int     report_print_json(const json_t *object); /* 0, or -1 when it could not be written, which is told */
