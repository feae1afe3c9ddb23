/*
 * service_metrics.h - what brigd counts, as Prometheus reads it: a table of metrics, and where in brigd's answers each is.
 *
 * The answers (client_protocol.h: stats, and metrics for each profile) were checked when they were received, so every key is
 * there. A figure that is null has no sample, and is never 0. Labels are names of profiles, exit reasons, codes of refusals
 * and the like: no user, no program.
 */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* runs: a list of answers to metrics. */
void service_metrics_print(const json_t *stats, const json_t *runs, FILE *out);

/* The table, for the manual. */
void service_metrics_print_mdoc(FILE *out);
