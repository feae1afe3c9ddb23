/*
 * request.h - what `brig run` and `brig exec` were asked, and the order made of it.
 *
 * request_init(), request_parse(), request_prepare(), then order is ready to
 * be started; request_done() frees everything.
 */
#pragma once
#include "option.h"
#include "place.h"
#include "policy_bundle.h"
#include "profile.h"
#include "program_env.h"
#include "run.h"

enum { REQUEST_ENV_MAX = 64, REQUEST_PATHS_MAX = 4, PROGRAM_BYTES_MAX = 8 * 1024 * 1024 };

struct request {
	/* asked */
	const char *profile_name;
	const char *limit_text[LIMIT_COUNT]; /* NULL: the profile's default */
	const char *env[REQUEST_ENV_MAX];
	size_t      env_len;
	const char *shown[MOUNT_SHOWN_MAX]; /* --ro */
	size_t      shown_len;
	const char *stdin_path; /* NULL: empty; "-": ours */
	bool        json, verbose;

	/* made of it */
	struct places        places;
	struct profile       profile;
	struct policy_bundle policy;
	struct limits        limits;
	struct mount_plan    mounts;
	struct program_env   program_env;
	char                *program; /* the text of main.py */
	char                *shown_to[MOUNT_SHOWN_MAX];
	int                  shown_fd[MOUNT_SHOWN_MAX];
	int                  stdin_fd;
	char                *exec_path[REQUEST_PATHS_MAX];
	char               **argv;
	struct run_order     order;
};

extern const struct option_row request_options[];

void         request_init(struct request *r);
void         request_done(struct request *r);
/* Profile, limits, policy, mounts, environment. */
must_use int request_prepare(struct request *r, struct err *e);
/* The program of brig run: a file, or "-" for stdin. words: the program's arguments. */
must_use int request_take_program(struct request *r, const char *path, char **words, int n, struct err *e);
/* The command of brig exec. */
must_use int request_take_command(struct request *r, char **words, int n, struct err *e);
