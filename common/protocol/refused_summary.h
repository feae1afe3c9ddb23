/*
 * refused_summary.h - the refused system calls of a record, in words for people
 *
 * "ptrace (2 times), socket(AF_NETLINK) and 3 more". The record comes from another process: text_make_plain() makes its
 * texts safe for a terminal.
 */
#pragma once
#include <jansson.h>

enum { REFUSED_SUMMARY_MAX = 400 };

/* The calls of the record's key "refused", at most `most` by name. "": none. Returns buf. */
char *refused_print_summary(const json_t *record, size_t most, char buf[REFUSED_SUMMARY_MAX]);
/* One row of that list: "fcntl(_, F_SETLEASE)". Returns buf. */
char *refused_call_print_summary(const json_t *row, char *buf, size_t len);
