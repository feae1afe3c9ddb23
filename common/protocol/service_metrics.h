/*
 * service_metrics.h - prints what brigd counts in the format of Prometheus, by a table of metrics.
 *
 * The replies (client_protocol.h: stats, and metrics for each profile) were checked when they were received, so every key that
 * must be there is. A figure that is null or missing has no sample, not a sample of 0. Labels are names of profiles, exit
 * reasons, codes of refusals and the like; none names a user or a program.
 */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* stats: the reply to stats; runs: an array of the replies to metrics. */
void service_metrics_print(const json_t *stats, const json_t *runs, FILE *out);

/* The table, for the manual. */
void service_metrics_print_mdoc(FILE *out);
