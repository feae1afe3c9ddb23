/* page.h - replies of brigd as text for people: brig ps, stats and top. Names are made safe for a terminal. */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* Prints a reply to `list`. */
void ps_print_runs(const json_t *reply, FILE *out);

/* Print parts of a reply to `stats`. */
void stats_print_service(const json_t *reply, FILE *out);
void stats_print_processes(const json_t *reply, FILE *out);
