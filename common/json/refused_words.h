/*
 * refused_words.h - the refused calls of a record, as people read them
 *
 * "ptrace (2 times), socket(AF_NETLINK) and 3 more". The record comes from another process: it is escaped before it
 * goes to a terminal.
 */
#pragma once
#include <jansson.h>

enum { REFUSED_WORDS_MAX = 400 };

/* Of the record's key "refused": so many by name. "" where there is none. Returns buf. */
char *refused_words(const json_t *record, size_t most, char buf[REFUSED_WORDS_MAX]);
/* One of them: "fcntl(_, F_SETLEASE)". Returns buf. */
char *refused_words_of(const json_t *row, char *buf, size_t len);
