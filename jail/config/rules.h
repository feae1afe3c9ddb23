/*
 * rules.h - the rules of a service: configuration, access and profiles, read and checked together
 *
 * The reader loads them from files; the server, which can read none, gets them as
 * one text in a sealed memory file, with names of users as ids and profiles with
 * the numbers that the monitor gave them. The parsers for files read it.
 */
#pragma once
#include "access.h"
#include "config.h"
#include "monitor_protocol.h"
#include "profile_set.h"

struct rules {
	struct config      config;
	struct access      access;
	struct profile_set profiles;
	struct id_range    ids; /* of cells, in a service of the host; the server does not know them */
};

struct reader_files {
	char        config[PATH_SIZE]; /* "": presets */
	const char *name;              /* its path in messages: the one before it was copied */
	bool        is_optional;       /* presets hold where it is missing */
};

struct rules_source {
	const struct brig_paths   *places;
	const struct reader_files *files;
	enum monitor_mode          mode;
	struct id_range            ids; /* when the file names none */
};

/* Forgets an optional configuration that does not exist. One that the caller may not reach counts as existing. */
void         rules_skip_missing_config(struct reader_files *f);
/* Profiles that cannot be used are passed to left_out and skipped. *is_config: it is the configuration that is wrong. */
must_use int rules_load(struct rules *ret, const struct rules_source *from, profile_left_out_fn *left_out, void *context, bool *is_config,
			struct err *e);
/* A sealed memory file, which the caller owns; -1 with *e. numbers: the monitor's, in the order of the profiles. */
must_use int rules_to_sealed_file(const struct rules *r, const uint32_t *numbers, struct err *e);
/* From such a file, which is borrowed. places must outlive *ret. */
must_use int rules_from_sealed_file(struct rules *ret, int fd, const struct brig_paths *places, struct err *e);
void         rules_done(struct rules *r);
#define scoped_rules scoped(rules_done) struct rules
