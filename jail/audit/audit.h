/*
 * audit.h - the log of what peers asked for and what came of it, kept where peers cannot reach it.
 *
 * One line per attempt, and per call of a tool that a client reports: to the journal
 * with fields, and to a file of JSON Lines when one is configured. Opened before the
 * server confines itself. From then on nothing here blocks, and nothing fails: an entry
 * that could not be kept is counted (docs/decisions/0054 has the reason why no run is refused
 * because of it). If the file lost entries, the journal gets a message at the first
 * one, and one when the file is written again; if the journal lost entries, it gets
 * their number when it takes messages again.
 *
 * A confined server must still be allowed openat, newfstatat, renameat, write, sendto
 * and poll; and by Landlock, below audit_folder_fd(), WRITE_FILE, MAKE_REG and
 * REMOVE_FILE (a rename needs the last two). The right to read is not needed. The
 * process must ignore SIGXFSZ.
 */
#pragma once
#include "audit_entry.h"
#include "audit_file.h"
#include "audit_throttle.h"
#include "journal.h"

struct audit_plan {
	const char *file;      /* absolute; NULL: none */
	uint64_t    max_bytes; /* of one file */
	unsigned    keep;      /* number of rotated files: file.1, the youngest, to file.keep */
	const char *journal;   /* JOURNAL_SOCKET, NULL: none */
	int         text_fd;   /* gets the line for people when there is no journal; -1: nothing does */
};

struct audit_counts {
	uint64_t entries;      /* all attempts, with those that were suppressed or lost */
	/* refusals and calls of tools of one uid beyond the most of a minute: counted, not written */
	uint64_t suppressed;
	uint64_t journal_lost; /* messages that the journal, or text_fd, did not take */
	uint64_t file_lost;    /* lines that are not in the file */
};

struct audit {
	struct journal        journal;
	struct audit_file     file;
	struct audit_throttle refusals, calls;
	uint64_t              entries, suppressed, file_lost;
	uint64_t              losing; /* lines lost in a row; the journal got a message at the first */
};

/* Fails when the file cannot be opened. A missing journal is not an error. */
must_use int audit_open(struct audit *ret, const struct audit_plan *plan, struct err *e);
/* entry->time_us AUDIT_NONE means now. a may be NULL (a private server): nothing is written. */
void                audit_write(struct audit *a, const struct audit_entry *entry);
void                audit_close(struct audit *a); /* a may be NULL; may be called twice */
struct audit_counts audit_get_counts(const struct audit *a);
/* The descriptor of the file's folder, for the Landlock rule; borrowed; -1 without a file. */
int audit_folder_fd(const struct audit *a);
