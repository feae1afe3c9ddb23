/*
 * network_words.h - the hosts of a record that a program did not reach, as people read them
 *
 * "evil.example:443 (not_allowed), b.example (unresolved) and 3 more". A program chose the names: they are escaped before they go to
 * a terminal.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

enum { NETWORK_WORDS_MAX = 400 };

/* Of the record's key "network": what was refused, or failed, so many by name, each once. "" where there is none. Returns buf. */
char *network_words(const json_t *record, size_t most, char buf[NETWORK_WORDS_MAX]);
/* The run had a network, and lost it: brig-proxy ended, or could not begin. */
bool network_is_lost(const json_t *record);
