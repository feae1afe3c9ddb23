/* page.h - what brigd answers, in lines for people: brig ps, stats and top. Names are made plain. */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* Of a reply to list. */
void ps_print_runs(const json_t *reply, FILE *out);

/* Of a reply to stats. */
void stats_print_service(const json_t *reply, FILE *out);
void stats_print_processes(const json_t *reply, FILE *out);
