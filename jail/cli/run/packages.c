#define _GNU_SOURCE
#include "packages.h"

#include "child_wait.h"
#include "code_digest.h"
#include "command.h"
#include "fd.h"
#include "file.h"
#include "profile_file.h"
#include "report.h"
#include "summary.h"
#include "text.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REQUIREMENTS_MAX = 1 << 20, ERRORS_SHOWN = 4000 };

bool packages_are_wanted(const struct request *r)
{
	return r->requirements || *r->with || r->script;
}

/* --- the key --- */

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* What the profile says about packages, and which rootfs it has. */
static int find_profile_and_rootfs(struct request *r, struct brig_paths *places, char digest[STORE_DIGEST + 1],
				   struct err *e)
{
	scoped_store_tree tree    = STORE_TREE_NONE;
	struct profile    profile = { 0 };
	int               found;

	if (brig_paths_find(places, e) < 0 || profile_file_load(&profile, places, r->profile, e) < 0)
		return -1;
	/* a copy: the texts are the profile's */
	if (!r->find_links && !r->index && profile.packages.find_links)
		r->find_links = r->profiles_wheels = strdup(profile.packages.find_links);
	if (profile.packages.index)
		r->profiles_index = strdup(profile.packages.index);
	found = store_open_tree_in_first((const char *const[]){ places->store[0], places->store[1] }, profile.rootfs,
					 &tree, e);
	memcpy(digest, tree.digest, sizeof tree.digest);
	profile_done(&profile);
	return found;
}

/* A directory of wheels is another one when a file was added or removed. */
static int put_source(const struct request *r, FILE *key, struct err *e)
{
	struct stat st;

	if (!r->find_links)
		return fprintf(key, "index %s\n", r->index ? r->index : r->profiles_index ? r->profiles_index : "") < 0
			       ? err_sys(e, "packages") : 0;
	if (stat(r->find_links, &st) < 0)
		return err_sys(e, "--find-links %s", r->find_links);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "--find-links %s: is not a directory; name one with wheels in it",
			       r->find_links);
	fprintf(key, "wheels %ju %ju %jd.%09ld\n", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
		(intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	return 0;
}

static int put_requirements(const struct request *r, FILE *key, struct err *e)
{
	scoped_bytes text = { 0 };

	if (!r->requirements)
		return 0;
	if (file_read(AT_FDCWD, r->requirements, REQUIREMENTS_MAX, &text, e) < 0)
		return err_wrap(e, "--requirements");
	fprintf(key, "requirements %zu\n", text.len);
	fwrite(text.data, 1, text.len, key);
	return 0;
}

/* The lines from "# /// script" to the last one that begins with '#': all that can be in the block, unread. */
static void put_script_block(const struct bytes *program, FILE *key)
{
	static const char first[] = "# /// script";
	const char       *at = program->data, *end = program->data + program->len;
	bool              is_in = false;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t      n    = (size_t)((stop ? stop + 1 : end) - at);

		is_in = *at == '#' && (is_in || (n >= sizeof first - 1 && memcmp(at, first, sizeof first - 1) == 0));
		if (is_in)
			fwrite(at, 1, n, key);
		at += n;
	}
}

static int put_program(const struct request *r, int program, FILE *key, struct err *e)
{
	scoped_bytes text = { 0 };
	char         path[32];

	if (!r->script)
		return 0;
	if (program < 0)
		return err_set(e, ERR_BAD_SPEC, "--script: there is no program; name a Python file");
	snprintf(path, sizeof path, "/proc/self/fd/%d", program); /* an own offset */
	if (file_read(AT_FDCWD, path, PROTOCOL_CODE_MAX, &text, e) < 0)
		return err_wrap(e, "--script");
	if (!memmem(text.data, text.len, "# /// script", 12) && !r->requirements && !*r->with)
		return err_set(e, ERR_BAD_SPEC,
			       "--script: %s has no block # /// script, which names packages (PEP 723); --with NAME or "
			       "--requirements FILE names them, too",
			       r->program);
	fputs("script\n", key);
	put_script_block(&text, key);
	return 0;
}

static int compute_key(struct request *r, int program, char store[PATH_SIZE], char key[STORE_KEY + 1], struct err *e)
{
	struct brig_paths         places;
	char                      rootfs[STORE_DIGEST + 1], hex[CODE_DIGEST_HEX + 1];
	scoped_bytes              text = { 0 };
	scoped(file_closep) FILE *out  = open_memstream(&text.data, &text.len);

	if (!out)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (find_profile_and_rootfs(r, &places, rootfs, e) < 0)
		return -1;
	fprintf(out, "brig-layer 1\n%s\n%s\n", rootfs, r->profile);
	if (put_source(r, out, e) < 0 || put_requirements(r, out, e) < 0)
		return -1;
	for (size_t i = 0; r->with[i]; i++)
		fprintf(out, "with %zu %s\n", strlen(r->with[i]), r->with[i]);
	if (put_program(r, program, out, e) < 0)
		return -1;
	if (fflush(out) != 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	code_compute_digest(text.data, text.len, hex);
	snprintf(key, STORE_KEY + 1, "%.*s", STORE_KEY, hex);
	memcpy(store, places.store[0], PATH_SIZE);
	return 0;
}

/* --- resolving --- */

/* What pip wrote may have parts of hostile wheels in it. */
static void print_resolver_errors(const struct stream *s)
{
	size_t len  = s->len < ERRORS_SHOWN ? s->len : ERRORS_SHOWN;
	char  *text = strndup(s->data ? s->data : "", len), *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		text_make_plain(line);
		if (*line)
			fprintf(stderr, "brig: packages: %s\n", line);
	}
	free(text);
}

static int report_resolve(const struct foreground_run *c)
{
	scoped_json     *record = report_make_record(c);
	enum exit_reason reason;
	bool             has_ended = summary_get_exit_reason(record, &reason) && reason == EXIT_exited;

	if (has_ended && summary_exit_status(record) == 0 && !run_files_print_left_out(c->files, "saved", false))
		return STATUS_OK;
	print_resolver_errors(&c->run.err.stream);
	if (!has_ended)
		report_print_ending(c, record);
	if (c->ended)
		why_print_line(c, record);
	return STATUS_FAILED;
}

static _Noreturn void resolve_in_child(const struct request *r, int program, carry_out_fn *carry_out,
				       const char *archive)
{
	char           file[RESOLVE_FILES][PATH_SIZE];
	struct request q;
	struct err     e;
	int            status;

	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	request_init(&q, BY_RUN);
	q.get[0] = archive;
	if (request_set_resolve(&q, file, r, program, &e) < 0)
		status = command_print_error("packages", &e, STATUS_FAILED);
	else
		status = carry_out(&q, report_resolve);
	request_done(&q);
	_exit(status);
}

static _Noreturn void exec_brig_rootfs(const char *key, const char *file)
{
	char *argv[] = { (char *)"rootfs", (char *)"layer", (char *)key, (char *)file, NULL };
	int   null   = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(EXIT_FAILURE);
	_exit(exec_program_of_command(4, argv));
}

static int wait_for_success(pid_t pid, struct err *e)
{
	int status = pid < 0 ? -1 : child_wait(pid);

	/* it has printed why */
	return status == 0 ? 0 : err_set(e, ERR_MISSING, "the packages could not be resolved, so nothing was run");
}

static int make_layer_in(const char *folder, const struct request *r, int program, carry_out_fn *carry_out,
			 const char *key, struct err *e)
{
	char  file[PATH_SIZE], archive[PATH_SIZE];
	pid_t pid;
	int   made;

	snprintf(file, sizeof file, "%.900s/layer.tar", folder);
	snprintf(archive, sizeof archive, "out/layer.tar:%.900s", file);
	fflush(NULL);
	signal(SIGINT, SIG_IGN); /* the children end of it, and what they leave is removed */
	signal(SIGTERM, SIG_IGN);
	pid = fork();
	if (pid == 0)
		resolve_in_child(r, program, carry_out, archive);
	if (wait_for_success(pid, e) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		exec_brig_rootfs(key, file);
	made = wait_for_success(pid, e);
	return made;
}

static int make_layer(const struct request *r, int program, carry_out_fn *carry_out, const char *key, struct err *e)
{
	const char *top = getenv("TMPDIR");
	char        folder[PATH_SIZE], file[PATH_SIZE];
	int         made;

	snprintf(folder, sizeof folder, "%.900s/brig-packages-XXXXXX", top && *top == '/' ? top : "/var/tmp");
	if (!mkdtemp(folder))
		return err_sys(e, "%s", folder);
	if (!r->quiet)
		fputs("brig: resolving packages in a jail; the next run with them has them at once\n", stderr);
	made = make_layer_in(folder, r, program, carry_out, key, e);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	snprintf(file, sizeof file, "%.900s/layer.tar", folder);
	unlink(file);
	rmdir(folder);
	return made;
}

int packages_open(struct request *r, int program, carry_out_fn *carry_out, struct err *e)
{
	char store[PATH_SIZE], key[STORE_KEY + 1];

	if (r->index && r->find_links)
		return err_set(e, ERR_BAD_SPEC, "--index and --find-links: only one of them");
	if (compute_key(r, program, store, key, e) < 0)
		return -1;
	if (!r->upgrade && store_open_layer(store, key, &r->layer, e) == 0)
		return 0;
	if (!r->upgrade && e->kind != ERR_MISSING)
		return -1;
	if (make_layer(r, program, carry_out, key, e) < 0)
		return -1;
	return store_open_layer(store, key, &r->layer, e);
}

/* The program is the first descriptor of a run; the socket for files stays the last one. */
int packages_add_layer(struct request *r, carry_out_fn *carry_out, struct err *e)
{
	int    program = r->by == BY_RUN && r->fds ? r->fd[0] : -1, fd;
	size_t at;

	if (!packages_are_wanted(r))
		return 0;
	if (packages_open(r, program, carry_out, e) < 0)
		return -1;
	if (r->fds == ARRAY_LEN(r->fd))
		return err_set(e, ERR_BAD_SPEC, "--ro: with packages at most %d", PROTOCOL_RO_MAX - 1);
	fd = fcntl(r->layer.tree_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_sys(e, "packages");
	at = r->fds - r->has_files_fd;
	memmove(&r->fd[at + 1], &r->fd[at], (r->fds - at) * sizeof *r->fd);
	r->fd[at] = fd;
	r->fds++;
	json_object_set_new(r->message, "layer", json_true());
	return 0;
}
