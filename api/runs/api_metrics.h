/*
 * api_metrics.h - the figures of a brig-api for Prometheus: runs by interface and by how they ended, refusals.
 */
#pragma once
#include "interface.h"

#include <stdio.h>

struct api_count {
	char     label[2][40];
	uint64_t n;
};
/* The last row is for "other". */
struct api_counts {
	struct api_count row[128];
	size_t           n;
};

struct api_metrics {
	struct api_counts runs, refused; /* interface and reason; code */
};

void api_metrics_count_run(struct api_metrics *m, enum interface by, const char *reason);
void api_metrics_count_refused(struct api_metrics *m, const char *code);
void api_metrics_print(const struct api_metrics *m, uint64_t running, uint64_t waiting, uint64_t sessions, FILE *out);
