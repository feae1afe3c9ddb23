#define _GNU_SOURCE
#include "orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

int64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void figures_add(struct figures *f, struct figure row)
{
	if (f->n == f->room) {
		f->room = f->room ? 2 * f->room : 4096;
		f->row  = realloc(f->row, f->room * sizeof *f->row);
		if (!f->row)
			abort();
	}
	f->row[f->n++] = row;
}

static int64_t own_cpu_us(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

/* From half as long to half as long again: a pause that is always the same may meet what a service does so long after each run. */
static void pause_about(int64_t usual_us)
{
	int64_t         us = usual_us / 2 + (int64_t)(drand48() * (double)usual_us);
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	while (us > 0 && clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

static int paced(const struct orders *o, unsigned rounds, int64_t pause, struct figures *f)
{
	for (unsigned i = 0; i < rounds; i++) {
		pause_about(pause);
		if (o->once(o->self, f) < 0)
			return -1;
	}
	return 0;
}

static void print(const struct figures *f, int64_t cpu, int64_t took)
{
	for (size_t i = 0; i < f->n; i++)
		printf("%s %" PRId64 " %" PRId64 " %" PRId64 "\n", f->row[i].kind, f->row[i].first, f->row[i].record, f->row[i].setup);
	printf("cpu %" PRId64 "\ntook %" PRId64 "\ndone\n", cpu, took);
	fflush(stdout);
}

static int complain(const char *line)
{
	fprintf(stderr, "no such order: %s", line);
	return -1;
}

static int follow(const struct orders *o, const char *line)
{
	struct figures f = { 0 };
	int64_t        began = clock_us(), cpu = own_cpu_us(), pause;
	unsigned       n;
	double         seconds;
	int            r;

	if (sscanf(line, "paced %u %" SCNd64, &n, &pause) == 2)
		r = paced(o, n, pause, &f);
	else if (sscanf(line, "sustained %lf %u", &seconds, &n) == 2)
		r = o->sustained(o->self, began + (int64_t)(seconds * 1e6), n, &f);
	else
		r = complain(line);
	if (r == 0)
		print(&f, own_cpu_us() - cpu, clock_us() - began);
	free(f.row);
	return r;
}

int orders_serve(const struct orders *o)
{
	char line[256];

	while (fgets(line, sizeof line, stdin))
		if (follow(o, line) < 0)
			return 1;
	return 0;
}
