#define _GNU_SOURCE
#include "filter_cache.h"
#include "policy_file.h"
#include "policy_texts.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct place {
	char runtime[64], file[PATH_MAX];
};

static int build(struct policy_bundle *ret, const char *text)
{
	struct policy_text rows[] = { { "p", text }, { 0 } };
	struct err         e;

	return policy_bundle_build(ret, "p", NULL, policy_text_read, rows, &e);
}

/* The only file in RUNTIME/filters. */
static void find_file(struct place *at)
{
	char           folder[96];
	struct dirent *entry;

	snprintf(folder, sizeof folder, "%s/filters", at->runtime);
	DIR *d = opendir(folder);
	*at->file = 0;
	while (d && (entry = readdir(d)))
		if (*entry->d_name != '.')
			snprintf(at->file, sizeof at->file, "%s/%.64s", folder, entry->d_name);
	if (d)
		closedir(d);
}

static void keep_afresh(struct place *at, const struct policy_bundle *b)
{
	scoped_filter f = { 0 };
	struct err    e;

	find_file(at);
	unlink(at->file);
	if (filter_load_or_compile(b, at->runtime, &f, &e) < 0)
		printf("# %s\n", e.text);
	find_file(at);
}

static void misses(const struct place *at, const struct policy_bundle *b, const char *why, const char *sentence)
{
	struct filter f  = { 0 };
	const char   *no = filter_cache_load(b, at->runtime, &f);

	tap_is(no ? no : "found", why, sentence);
	filter_free(&f);
}

static bool opens_anyway(const struct place *at, const struct policy_bundle *b)
{
	scoped_filter f = { 0 };
	struct err    e;

	return filter_load_or_compile(b, at->runtime, &f, &e) == 0 && f.len > 10;
}

static void change_byte(const char *path, off_t at)
{
	int  fd = open(path, O_RDWR);
	char c;

	if (fd < 0 || pread(fd, &c, 1, at) != 1)
		abort();
	c = (char)(c + 1);
	if (pwrite(fd, &c, 1, at) != 1)
		abort();
	close(fd);
}

static void check_hit(struct place *at, const struct policy_bundle *b)
{
	scoped_filter first = { 0 }, second = { 0 };
	struct err    e;

	misses(at, b, "there is no folder filters in the runtime directory", "a new host has no cache");
	tap_ok(filter_load_or_compile(b, at->runtime, &first, &e) == 0, "what is not cached is compiled");
	find_file(at);
	tap_ok(*at->file, "and kept");
	const char *no = filter_cache_load(b, at->runtime, &second);
	tap_ok(!no && second.len == first.len && memcmp(first.insn, second.insn, first.len * sizeof *first.insn) == 0,
	       "and found, the same, the next time");
}

static void check_refusals(struct place *at, const struct policy_bundle *b)
{
	struct stat st;
	char        other[PATH_MAX + 8], folder[96];

	snprintf(folder, sizeof folder, "%s/filters", at->runtime);
	chmod(at->file, 0620);
	misses(at, b, "others could have written it", "a file that a group may write is refused");
	keep_afresh(at, b);
	chmod(at->file, 0602);
	misses(at, b, "others could have written it", "a file that anyone may write is refused");
	keep_afresh(at, b);
	stat(at->file, &st);
	(void)!truncate(at->file, st.st_size - 1);
	misses(at, b, "not as long as its header says", "a truncated file is refused");
	tap_ok(opens_anyway(at, b), "and compiled again");
	misses(at, b, "found", "which replaces it");
	(void)!truncate(at->file, 7);
	misses(at, b, "shorter than its header", "a file without a header is refused");
	keep_afresh(at, b);
	change_byte(at->file, 0);
	misses(at, b, "another format", "another format is refused");
	keep_afresh(at, b);
	change_byte(at->file, st.st_size - 1);
	misses(at, b, "compiled from another text", "a file of another text is refused, whatever its name");
	keep_afresh(at, b);
	change_byte(at->file, 16);
	misses(at, b, "an instruction that our compiler does not write",
	       "a program with a strange instruction is refused");
	keep_afresh(at, b);
	snprintf(other, sizeof other, "%s.2", at->file);
	(void)!link(at->file, other);
	misses(at, b, "it has a second name", "a file with two names is refused");
	unlink(at->file);
	(void)!symlink(other, at->file);
	misses(at, b, "it cannot be opened", "a symlink is refused");
	unlink(at->file);
	(void)!mkfifo(at->file, 0600);
	misses(at, b, "not a regular file", "a fifo is refused, and does not hold us up");
	unlink(at->file);
	unlink(other);
	keep_afresh(at, b);
	chmod(folder, 0755);
	misses(at, b, "the folder of filters is not ours alone (0700)",
	       "a folder that others may look into is refused");
	chmod(folder, 0700);
	snprintf(other, sizeof other, "%s/elsewhere", at->runtime);
	(void)!rename(folder, other);
	(void)!symlink("elsewhere", folder);
	misses(at, b, "there is no folder filters in the runtime directory", "a symlink to a folder is refused");
	tap_ok(opens_anyway(at, b), "a cache that cannot be used is no failure");
	unlink(folder);
	(void)!rename(other, folder);
	misses(at, b, "found", "what was never touched is still found");
}

static void check_owner(struct place *at, const struct policy_bundle *b)
{
	if (geteuid() != 0) {
		tap_ok(true, "a file of another owner is refused # SKIP needs root (chown)");
		return;
	}
	(void)!chown(at->file, 65000, 65000);
	misses(at, b, "others could have written it", "a file of another owner is refused");
	keep_afresh(at, b);
}

static double microseconds(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e6 + (double)(to->tv_nsec - from->tv_nsec) / 1e3;
}

static double time_open(const char *runtime, unsigned rounds)
{
	const char *const dirs[] = { TEST_SOURCE "/profiles", NULL };
	struct timespec   from, to;
	struct err        e;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < rounds; i++) {
		scoped_policy_bundle b = { 0 };
		scoped_filter        f = { 0 };

		if (policy_bundle_build(&b, "python-strict", NULL, policy_file_read, (void *)dirs, &e) < 0 ||
		    filter_load_or_compile(&b, runtime, &f, &e) < 0)
			return 1e9;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	return microseconds(&from, &to) / rounds;
}

static void check_speed(const struct place *at)
{
	double miss = time_open("/proc/self/no-runtime-directory", 5),
		hit = (time_open(at->runtime, 1), time_open(at->runtime, 200));

	printf("# three files read, gathered and compiled: %.0f us; found in the cache: %.0f us\n", miss, hit);
}

int main(void)
{
	struct place         at     = { .runtime = "/tmp/brig-test-XXXXXX" };
	scoped_policy_bundle bundle = { 0 };
	char                 command[160];

	if (!mkdtemp(at.runtime) || build(&bundle, "allow read write exit_group\n") < 0)
		return 1;
	check_hit(&at, &bundle);
	check_owner(&at, &bundle);
	check_refusals(&at, &bundle);
	check_speed(&at);
	snprintf(command, sizeof command, "rm -rf %s", at.runtime);
	return system(command) == 0 ? tap_done() : 1;
}
