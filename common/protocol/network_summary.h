/*
 * network_summary.h - the hosts of a record that a program did not reach, in words for people
 *
 * "evil.example:443 (not_allowed), b.example (unresolved) and 3 more". The program chose the names: text_make_plain() makes them
 * safe for a terminal.
 */
#pragma once
#include <jansson.h>
#include <stdbool.h>

enum { NETWORK_SUMMARY_MAX = 400 };

/* The refused and failed connections of the record's key "network", without repetitions, at most `most` by name. "": none. Returns buf. */
char *network_print_summary(const json_t *record, size_t most, char buf[NETWORK_SUMMARY_MAX]);
/* Whether the run lost its network, because brig-proxy ended or could not start. */
bool network_proxy_is_lost(const json_t *record);
