/*
 * reports.c - what the sanitizers find goes to a file that is mapped before main(). A process of brig may have no path to it
 * later, no descriptor left, a filter, and nobody who reads its stderr.
 *
 * Linked into each program of the build with BRIG_SANITIZE, and into nothing else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of libsanitizer; no header of gcc has all of them. */
extern void __asan_set_error_report_callback(void (*callback)(const char *));
extern void __ubsan_get_current_report_data(const char **kind, const char **message, const char **file, unsigned *line,
					    unsigned *column, char **address);
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
void        __asan_on_error(void);
void        __ubsan_on_report(void);

/* tests/release/test_whole_programs.py makes it, and reads it. */
static struct reports {
	uint64_t used;
	char     text[];
} * reports;
static size_t room;

static void add(const char *what, const char *text)
{
	char     name[16] = "", line[8192];
	int      len;
	uint64_t at;

	if (prctl(PR_GET_NAME, name) < 0) /* brig-proxy may not ask */
		snprintf(name, sizeof name, "%.15s", program_invocation_short_name);
	len = snprintf(line, sizeof line, "%s (%d): %s%s\n", name, (int)getpid(), what, text);
	if (len > (int)sizeof line - 1)
		len = sizeof line - 1;
	if (!reports)
		return;
	at = __atomic_fetch_add(&reports->used, (uint64_t)len, __ATOMIC_RELAXED);
	if (at + (uint64_t)len <= room)
		memcpy(reports->text + at, line, (size_t)len);
}

/* The text comes at the end of a report: by then its process may have died of the report itself. */
void __asan_on_error(void)
{
	add("an error, found by AddressSanitizer", "");
}

static void add_text(const char *text)
{
	add("", text);
}

void __ubsan_on_report(void)
{
	const char *kind, *message, *file;
	unsigned    line, column;
	char       *address, where[512];

	__ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
	snprintf(where, sizeof where, "%s:%u:%u: %s: %s", file, line, column, kind, message);
	add("undefined behaviour: ", where);
}

/* No search for leaks: processes of brig end by _exit() and by signals, and let the kernel free their memory. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0:symbolize=0:quarantine_size_mb=8";
}

const char *__ubsan_default_options(void)
{
	return "symbolize=0";
}

__attribute__((constructor)) static void open_reports(void)
{
	int         fd = open(REPORTS_FILE, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && (size_t)st.st_size > sizeof *reports) {
		void *map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		reports = map == MAP_FAILED ? NULL : map;
		room    = (size_t)st.st_size - sizeof *reports;
	}
	if (fd >= 0)
		close(fd);
	__asan_set_error_report_callback(add_text);
}
