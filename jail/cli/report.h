/* report.h - what brig says of a run: the record, one story on stderr, and its own exit status */
#pragma once
#include "program_report.h"
#include "session.h"

/* Prints, and returns what brig exits with. */
int report_session(const struct session *s);

/* What the guest runner said, or the program in its place: a new reference, or NULL with what is wrong with it. */
json_t *report_of_program(const struct session *s, enum program_report_kind kind, struct err *e);

/* The parts of it, for who has another story to tell. What the program reported of itself is not in the record. */
json_t *report_make_record(const struct session *s); /* new reference */
void    report_print_story(const struct session *s, const json_t *record);
int     report_print_json(const json_t *object); /* 0, or -1 when it could not be written, which is told */
