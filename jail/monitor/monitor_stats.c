/* monitor_stats.c - figures for the server */
#include "monitor_parts.h"

#include "fd.h"
#include "packet.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t read_resident_bytes(void)
{
	scoped_fd fd       = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char      text[64] = "";
	unsigned long pages;

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%*u %lu", &pages) != 1)
		return 0;
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int monitor_handle_stats(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e)
{
	struct monitor_answer a;
	struct rusage         used;

	(void)m, (void)fds, (void)e;
	memset(&a, 0, sizeof a);
	for (size_t i = 0; i < k->top; i++) {
		const struct monitored_cell *s = &k->cell[i];

		a.stats.ready[s->profile] += s->state == MONITORED_CELL_READY;
		a.stats.building[s->profile] += s->state == MONITORED_CELL_BUILDING;
		a.stats.running[s->profile] += s->state == MONITORED_CELL_TAKEN;
	}
	for (uint32_t i = 0; i < k->monitored_top; i++)
		zygote_report_read(k->kept[i].userns.report_fd, &a.stats.zygote[i]);
	getrusage(RUSAGE_SELF, &used);
	a.stats.made         = k->made;
	a.stats.cpu_us       = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
			 (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	a.stats.memory_bytes = read_resident_bytes();
	a.kind = MONITOR_STATS;
	(void)packet_send_nowait(k->server, &a, sizeof a, NULL, 0); /* a server that does not read has no figures */
	return 0;
}

