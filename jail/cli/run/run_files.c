#define _GNU_SOURCE
#include "run_files.h"

#include "child_wait.h"
#include "exact.h"
#include "fd.h"
#include "file.h"
#include "file_stream.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS_MAX = 10000, ENTRIES_MAX = 200000, SMALL = 1 << 20 }; /* more than the inodes of a /workspace */

/* --- what was asked for --- */

/* "PATH:NAME" or "PATTERN:LOCAL"; second: the part after the last colon, or NULL. */
struct pair {
	char       *first; /* owned */
	const char *second;
};

static void pair_done(struct pair *p)
{
	free(p->first);
}
#define scoped_pair scoped(pair_done) struct pair

static struct pair split_at_colon(const char *text)
{
	const char *colon = strrchr(text, ':');

	return (struct pair){ .first = colon ? strndup(text, (size_t)(colon - text)) : strdup(text), .second = colon ? colon + 1 : NULL };
}

/* The pattern is made plain; "": it cannot be. */
static struct pair parse_get(const char *text)
{
	struct pair p = split_at_colon(text);
	char        plain[FILE_NAME_BYTES + 1];

	if (p.first && file_pattern_normalize(p.first, plain))
		*p.first = 0;
	else if (p.first) {
		free(p.first);
		p.first = strdup(plain);
	}
	return p;
}

/* An existing path is not split, even if it has a colon. Its name is its last component. */
static struct pair parse_put(const char *text)
{
	struct stat st;
	struct pair p;

	if (stat(text, &st) < 0)
		return split_at_colon(text);
	p = (struct pair){ .first = strdup(text) };
	for (size_t n = strlen(text); !p.second && n > 0; n--)
		if (text[n - 1] == '/' && text[n] && text[n] != '/' && strcmp(text + n, ".") != 0 && strcmp(text + n, "..") != 0)
			p.second = text + n;
	if (!p.second && !strchr(text, '/') && strcmp(text, ".") != 0 && strcmp(text, "..") != 0)
		p.second = text;
	return p;
}

bool run_files_are_wanted(const struct request *r)
{
	return *r->put || *r->get || r->out;
}

/* The option's name for messages; "" in a session, whose commands have plain arguments instead. */
static const char *option_prefix(const struct request *r, const char *name)
{
	return r->session ? "" : name;
}

static int check_put(const struct request *r, const char *text, struct err *e)
{
	const char *put = option_prefix(r, "--put ");
	scoped_pair p   = parse_put(text);
	struct stat st;
	const char *fault;

	if (!p.first || stat(p.first, &st) < 0)
		return err_sys(e, "%s%s", put, text);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s%s: is neither a file nor a directory", put, text);
	if (!p.second)
		return err_set(e, ERR_BAD_SPEC, "%s%s: has no name of its own; write %s%s:NAME", put, text, put, text);
	fault = file_name_find_fault(p.second, strlen(p.second));
	return fault ? err_set(e, ERR_BAD_SPEC, "%s%.60s: the name %.60s %s", put, text, p.second, fault) : 0;
}

int run_files_check_pattern(const char *pattern, const char *get, struct err *e)
{
	char        plain[FILE_NAME_BYTES + 1];
	const char *fault = file_pattern_normalize(pattern, plain);

	if (!fault)
		return 0;
	return err_set(e, ERR_BAD_SPEC, "%s%.60s: the pattern %s; name files as they lie below /workspace, like out/*.csv", get, pattern, fault);
}

static int check_get(const struct request *r, const char *text, struct err *e)
{
	const char *get = option_prefix(r, "--get ");
	scoped_pair p   = split_at_colon(text);

	if (run_files_check_pattern(p.first ? p.first : "", get, e) < 0)
		return -1;
	return p.second && !*p.second ? err_set(e, ERR_BAD_SPEC, "%s%s: nothing follows the colon; name a directory or a file", get, text) : 0;
}

int run_files_check(const struct request *r, struct err *e)
{
	for (size_t i = 0; r->put[i]; i++)
		if (check_put(r, r->put[i], e) < 0)
			return -1;
	for (size_t i = 0; r->get[i]; i++)
		if (check_get(r, r->get[i], e) < 0)
			return -1;
	return 0;
}

int run_files_open(struct request *r, struct err *e)
{
	int pair[2];

	if (!run_files_are_wanted(r))
		return 0;
	if (run_files_check(r, e) < 0)
		return -1;
	if (r->out && mkdir(r->out, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "--out %s", r->out);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	r->files_sock     = pair[0];
	r->fd[r->fds++]   = pair[1];
	r->has_files_fd   = true;
	json_object_set_new(r->message, "files", json_true());
	return 0;
}

/* --- in: the process that moves them --- */

struct giver {
	int         sock;
	const char *option; /* "--put ", or "" */
};

/* All bytes of a file that is small: the size that one of /proc or /sys reports is not the size that is read. NULL: it is large, or memory is short. */
static char *read_small_file(int fd, off_t size, size_t *len)
{
	char   *bytes = size < SMALL ? malloc(SMALL) : NULL;
	ssize_t n     = 1;

	for (*len = 0; bytes && n > 0 && *len < SMALL; *len += n > 0 ? (size_t)n : 0)
		n = read(fd, bytes + *len, SMALL - *len);
	if (bytes && n == 0)
		return bytes;
	free(bytes);
	(void)lseek(fd, 0, SEEK_SET);
	return NULL;
}

static int send_file(const struct giver *g, int dir, const char *path, const char *name)
{
	scoped_fd   fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	size_t      len;
	char       *small;

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "brig: %s%s: %m\n", g->option, name);
		return -1;
	}
	small = read_small_file(fd, st.st_size, &len);
	if (file_stream_write_header(g->sock, st.st_mode & 0111 ? FILE_EXECUTABLE : FILE_REGULAR, name, small ? len : (uint64_t)st.st_size) < 0) {
		free(small);
		return -1;
	}
	if (small) {
		int r = file_stream_write(g->sock, small, len);

		free(small);
		return r;
	}
	if (file_stream_copy(g->sock, fd, (uint64_t)st.st_size) == 0)
		return 0;
	if (errno == ENODATA)
		fprintf(stderr, "brig: %s%s: became shorter while it was read\n", g->option, name);
	return -1;
}

static int send_tree(const struct giver *g, int dir, const char *name);

/* A link is not followed: its target may be anywhere. */
static int send_entry(const struct giver *g, int dir, const char *last, const char *name)
{
	struct stat st;

	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (S_ISREG(st.st_mode))
		return send_file(g, dir, last, name);
	if (S_ISDIR(st.st_mode)) {
		scoped_fd below = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below >= 0)
			return send_tree(g, below, name);
	}
	fprintf(stderr, "brig: %s%s is left out: it is %s\n", *g->option ? "--put: " : "", name, S_ISLNK(st.st_mode) ? "a link" : S_ISDIR(st.st_mode) ? "not readable" : "no regular file");
	return 0;
}

static int send_tree(const struct giver *g, int dir, const char *name)
{
	struct dirent **list;
	int             n = scandirat(dir, ".", &list, NULL, alphasort), r = 0;

	if (n == 2) /* "." and ".." */
		r = file_stream_write_header(g->sock, FILE_FOLDER, name, 0);
	for (int i = 0; i < n; i++) {
		char *path = NULL;

		if (r == 0 && strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0)
			r = asprintf(&path, "%s/%s", name, list[i]->d_name) < 0 ? -1 : send_entry(g, dir, list[i]->d_name, path);
		free(path);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n < 0 ? -1 : r;
}

static int send_files(const struct request *r, int sock)
{
	const struct giver g = { sock, option_prefix(r, "--put ") };

	for (size_t i = 0; r->put[i]; i++) {
		scoped_pair p     = parse_put(r->put[i]);
		scoped_fd   below = p.first ? open(p.first, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

		if (!p.first || (below >= 0 ? send_tree(&g, below, p.second) : send_file(&g, AT_FDCWD, p.first, p.second)) < 0)
			return -1;
	}
	return file_stream_write_header(sock, FILE_END, "", 0);
}

static int send_patterns(const struct request *r, const char *list, int sock)
{
	for (size_t i = 0; r->get[i]; i++) {
		scoped_pair p = parse_get(r->get[i]);

		if (!p.first || file_stream_write_header(sock, FILE_GET, p.first, FILE_GET_FOLDERS) < 0)
			return -1;
	}
	if (r->out && file_stream_write_header(sock, FILE_GET, "out", FILE_GET_FOLDERS) < 0)
		return -1;
	if (list && file_stream_write_header(sock, FILE_LIST, list, 0) < 0)
		return -1;
	return file_stream_write_header(sock, FILE_END, "", 0);
}

/* --- out --- */

struct taker {
	const struct request *request;
	const char           *list; /* a pattern, or NULL */
	json_t               *rows;
	uint64_t              left; /* bytes that may still come */
	bool                  found[FILE_GETS_MAX + 1]; /* of each pattern; --out is the last one */
};

json_t *run_files_name_to_json(const char *name)
{
	size_t  len;
	char   *text = text_as_utf8(name, strlen(name), &len);
	json_t *j    = text ? json_stringn_nocheck(text, len) : json_null();

	free(text);
	return j;
}

static void add_file_row(struct taker *t, const char *name, json_t *bytes, const char *saved, const char *left_out)
{
	if (json_array_size(t->rows) < ROWS_MAX)
		json_array_append_new(t->rows, json_pack("{so so so ss?}", "name", run_files_name_to_json(name), "bytes", bytes, "saved", saved ? run_files_name_to_json(saved) : json_null(),
							 "left_out", left_out));
	else
		json_decref(bytes);
}

/* For a stream that ends, or makes no sense, outside of a file that was asked for. Returns -1. */
static int add_cut_row(struct taker *t)
{
	if (*t->request->get || t->request->out || t->request->session)
		add_file_row(t, "", json_null(), NULL, "cut");
	return -1;
}

static json_t *entry_size_to_json(const struct file_entry *entry)
{
	return json_integer(entry->bytes > INT64_MAX ? INT64_MAX : (json_int_t)entry->bytes);
}

/* Where a file is written: below dir, which is created, or to the file that the user named. */
struct target {
	char       *dir; /* owned; NULL: path is what the user wrote */
	const char *path;
	bool        replace; /* it was asked for by its name */
	size_t      hidden;  /* no target: bytes of the name that end with a component that does not come, see file_pattern_hidden_length() */
};

static struct target make_target(const struct pair *p, const char *name, size_t matched)
{
	bool          is_same = strcmp(p->first, name) == 0;
	const char   *slash = strrchr(name, '/'), *below = file_pattern_rest_below(p->first, name);
	struct stat   st;
	struct target to = { .path = name, .replace = is_same };

	if (!p->second)
		to.dir = strdup(".");
	else if (is_same && p->second[strlen(p->second) - 1] != '/' && (stat(p->second, &st) < 0 || !S_ISDIR(st.st_mode)))
		to.path = p->second; /* points into the request's text */
	else {
		to.dir  = strdup(p->second);
		to.path = below ? below : name[matched] ? name + matched + 1 : slash ? slash + 1 : name;
	}
	return to;
}

static bool pattern_hides_name(const struct taker *t, const char *pattern, const char *name, struct target *ret)
{
	size_t n = t->request->hidden ? 0 : file_pattern_hidden_length(pattern, name);

	if (n)
		ret->hidden = n;
	return n;
}

/* Of the first pattern that matches and does not hide it; all that match are found. */
static bool find_target_of_name(struct taker *t, const char *name, struct target *ret)
{
	bool is_out = t->request->out && begins_with(name, "out") && (!name[3] || name[3] == '/'), is_found = false;

	for (size_t i = 0; t->request->get[i]; i++) {
		scoped_pair p = parse_get(t->request->get[i]);
		size_t      n = p.first ? file_pattern_matches(p.first, name) : 0;

		if (!n)
			continue;
		t->found[i] = true;
		if (is_found || pattern_hides_name(t, p.first, name, ret))
			continue;
		*ret     = make_target(&p, name, n);
		is_found = true;
	}
	t->found[FILE_GETS_MAX] |= is_out;
	is_out = is_out && !is_found && !pattern_hides_name(t, "out", name, ret);
	if (is_out)
		*ret = (struct target){ .dir = strdup(t->request->out), .path = name[3] ? name + 4 : name };
	return is_found || is_out;
}

/* The folders of a path that the user named, up to its last slash. What fails is reported when the file is opened. */
static void make_parent_folders(const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *folder = slash > path ? strndup(path, (size_t)(slash - path)) : NULL;

		if (folder)
			(void)mkdir(folder, 0777);
		free(folder);
	}
}

static int make_and_open_folder(const char *path)
{
	make_parent_folders(path);
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The file is never executable, even if the program made it so. */
static int open_target(const struct target *to)
{
	scoped_fd dir = -1;

	if (!to->dir) {
		make_parent_folders(to->path);
		return open(to->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	}
	dir = make_and_open_folder(to->dir);
	return dir < 0 ? -1 : file_stream_create(dir, to->path, false, to->replace);
}

/* One row for all files below a hidden directory: they come one after the other. */
static void add_hidden_row(struct taker *t, const char *name, size_t n)
{
	size_t      rows = json_array_size(t->rows);
	char        upto[FILE_NAME_BYTES + 1];
	json_t     *last = rows ? json_array_get(t->rows, rows - 1) : NULL, *its;
	const char *why  = json_string_value(json_object_get(last, "left_out"));

	snprintf(upto, sizeof upto, "%.*s", (int)n, name);
	its = run_files_name_to_json(upto);
	if (!why || strcmp(why, "hidden") != 0 || !json_equal(json_object_get(last, "name"), its))
		add_file_row(t, upto, json_null(), NULL, "hidden");
	json_decref(its);
}

/* An empty directory. It has a row only if it cannot be made. */
static void receive_folder(struct taker *t, const char *name)
{
	struct target to  = { .path = NULL };
	scoped_fd     dir = -1;

	if (find_target_of_name(t, name, &to)) {
		dir = make_and_open_folder(to.dir ? to.dir : to.path);
		if (dir < 0 || (to.dir && *to.path && file_stream_make_folder(dir, to.path) < 0))
			add_file_row(t, name, json_null(), NULL, strerror(errno));
	} else if (to.hidden) {
		add_hidden_row(t, name, to.hidden);
	}
	free(to.dir);
}

/* Reads all bytes of the file even if it cannot be written, because the next entry follows them. -1: nothing more can be read. */
static int receive_file(struct taker *t, int sock, const struct file_entry *entry, const char *name)
{
	struct target to = { .path = NULL };
	bool          is_ours = find_target_of_name(t, name, &to);
	scoped_fd     fd      = is_ours ? open_target(&to) : -1;
	int           why     = fd < 0 ? errno : 0, r = 0;
	uint64_t      left    = entry->bytes;
	char          block[64 * 1024], *saved = NULL;

	while (left && r == 0) {
		size_t n = left < sizeof block ? (size_t)left : sizeof block;

		r = file_stream_read(sock, block, n);
		if (r == 0 && fd >= 0 && why == 0 && file_stream_write(fd, block, n) < 0)
			why = errno;
		left -= n;
	}
	if (r < 0)
		why = why ? why : EPIPE;
	if (is_ours && asprintf(&saved, "%s%s%s", to.dir && strcmp(to.dir, ".") != 0 ? to.dir : "", to.dir && strcmp(to.dir, ".") != 0 ? "/" : "", to.path) < 0)
		saved = NULL;
	if (is_ours)
		add_file_row(t, name, entry_size_to_json(entry), why ? NULL : saved, why == 0 ? NULL : r < 0 ? "cut" : why == EEXIST ? "exists" : strerror(why));
	else if (r < 0)
		(void)add_cut_row(t);
	else if (to.hidden)
		add_hidden_row(t, name, to.hidden);
	free(saved);
	free(to.dir);
	return r;
}

static void add_missing_rows(struct taker *t)
{
	for (size_t i = 0; t->request->get[i]; i++) {
		scoped_pair p = parse_get(t->request->get[i]);

		if (!t->found[i] && p.first)
			add_file_row(t, p.first, json_null(), NULL, "none");
	}
	if (t->request->out && !t->found[FILE_GETS_MAX])
		add_file_row(t, "out", json_null(), NULL, "no_out");
}

/* The file's bytes came already, with NULs for those that had vanished: marks its row. False: the last row is of another file. */
static bool mark_row_changed(struct taker *t, const char *name)
{
	size_t  n    = json_array_size(t->rows);
	json_t *last = n ? json_array_get(t->rows, n - 1) : NULL, *its = run_files_name_to_json(name);
	bool    is_same = last && json_equal(json_object_get(last, "name"), its);

	json_decref(its);
	if (is_same)
		json_object_set_new(last, "left_out", json_string(file_left_reason_name(FILE_LEFT_changed)));
	return is_same;
}

/* -1: stop reading; a row has the reason. */
static int receive_entry(struct taker *t, int sock, const struct file_entry *entry, const char *name)
{
	struct target left = { .dir = NULL };

	switch (entry->kind) {
	case FILE_REGULAR:
	case FILE_EXECUTABLE:
		if (entry->bytes > t->left) {
			add_file_row(t, name, entry_size_to_json(entry), NULL, "max");
			return -1;
		}
		t->left -= entry->bytes;
		return receive_file(t, sock, entry, name);
	case FILE_FOLDER:
		receive_folder(t, name);
		return 0;
	case FILE_LEFT:
		(void)find_target_of_name(t, name, &left);
		free(left.dir);
		if (entry->bytes != FILE_LEFT_changed || !mark_row_changed(t, name))
			add_file_row(t, name, json_null(), NULL, file_left_reason_name((enum file_left)entry->bytes));
		return 0;
	case FILE_LIST:
		if (t->list && file_pattern_matches(t->list, name))
			add_file_row(t, name, entry_size_to_json(entry), NULL, NULL);
		return 0;
	default:
		return add_cut_row(t);
	}
}

/* A program of the session may control the sender, so the number of entries is limited, as t->left limits the bytes. */
static void receive_files(struct taker *t, int sock)
{
	struct file_entry entry;
	char              name[FILE_NAME_BYTES + 1];
	struct err        e;

	for (int i = 0; i < ENTRIES_MAX && file_stream_read_header(sock, &entry, name, &e) == 0; i++) {
		if (entry.kind == FILE_END) {
			add_missing_rows(t);
			return;
		}
		if (receive_entry(t, sock, &entry, name) < 0)
			return;
	}
	(void)add_cut_row(t);
}

/* Ignores SIGINT and SIGTERM, which brig itself handles: this process copies until the stream ends. */
static _Noreturn void files_process_main(const struct request *r, int sock, int rows)
{
	struct taker t    = { .request = r, .rows = json_array(), .left = UINT64_MAX };
	size_t       len  = 0;
	char        *text = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	if (send_files(r, sock) == 0 && send_patterns(r, NULL, sock) == 0)
		receive_files(&t, sock);
	text = json_dump_exact(t.rows, 0, &len);
	if (text)
		(void)!file_write_all(rows, text, len);
	_exit(EXIT_SUCCESS);
}

/* --- in a session --- */

/* One process sends while the other receives: the other side may answer at length before it has read everything. */
json_t *run_files_exchange(const struct request *r, int sock, int *sent)
{
	char         plain[FILE_NAME_BYTES + 1]; /* was checked: run_files_check_pattern() */
	const char  *pattern = r->list && !file_pattern_normalize(r->list, plain) ? plain : NULL;
	struct taker t       = { .request = r, .list = pattern, .rows = json_array(), .left = r->max_bytes };
	int          status  = 0;
	pid_t        giver   = fork();

	if (giver == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGPIPE, SIG_IGN);
		if (send_files(r, sock) == 0 && send_patterns(r, pattern, sock) == 0)
			_exit(EXIT_SUCCESS);
		shutdown(sock, SHUT_WR); /* otherwise both sides would wait for each other */
		_exit(EXIT_FAILURE);
	}
	if (giver > 0)
		receive_files(&t, sock);
	else
		add_file_row(&t, "", json_null(), NULL, strerror(errno));
	shutdown(sock, SHUT_RDWR); /* if reading stopped early, this ends the sender */
	while (giver > 0 && waitpid(giver, &status, 0) < 0 && errno == EINTR)
		;
	*sent = giver > 0 && status == 0 ? 0 : -1;
	return t.rows;
}

/* --- brig --- */

int run_files_start(struct run_files *f, struct request *r, struct err *e)
{
	if (r->files_sock < 0)
		return 0;
	f->rows = memfd_create("files", MFD_CLOEXEC);
	f->pid  = f->rows < 0 ? -1 : fork();
	if (f->pid == 0) {
		fd_closep(&r->fd[r->fds - 1]);
		files_process_main(r, r->files_sock, f->rows);
	}
	fd_closep(&r->files_sock);
	if (f->pid > 0)
		return 0;
	f->pid = 0;
	return err_sys(e, "--put and --get");
}

void run_files_close_peer(struct request *r)
{
	if (r->has_files_fd)
		fd_closep(&r->fd[--r->fds]);
	r->has_files_fd = false;
}

json_t *run_files_finish(struct run_files *f)
{
	json_t *rows = NULL;

	if (f->pid > 0)
		(void)child_wait(f->pid);
	if (f->pid > 0 && lseek(f->rows, 0, SEEK_SET) == 0)
		rows = json_loadfd(f->rows, JSON_ALLOW_NUL, NULL);
	fd_closep(&f->rows);
	f->pid = 0;
	return rows;
}

static const char *left_out_text(const char *left_out)
{
	static const char *const rows[][2] = {
		{ "none", "there is no such file in /workspace" },
		{ "no_out", "the program left no directory out in /workspace, or nothing in it" },
		{ "exists", "there is a file of this name already" },
		{ "link", "it is a link" },
		{ "special", "it is no regular file" },
		{ "size", "it is larger than /workspace" },
		{ "unreadable", "the program may not read it" },
		{ "deep", "its path is too long" },
		{ "room", "there is no room for it in /workspace" },
		{ "unwritable", "it cannot be written" },
		{ "changed", "it changed while it was read, and what was missing became NUL bytes" },
		{ "missing", "there is no such file or directory" },
		{ "not_empty", "it is a directory that is not empty; rm --recursive removes one with all that is in it" },
		{ "max", "it would be more than --max" },
		{ "hidden", "its name begins with a dot, and other programs may obey it; name it, or add --hidden" },
		{ "cut", "it did not come as a whole: what moves files ended first, as when memory is used up" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i][0], left_out) == 0)
			return rows[i][1];
	return left_out;
}

bool run_files_print_left_out(const json_t *rows, const char *done, bool is_quiet)
{
	bool is_missing = false;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row  = json_array_get(rows, i);
		const char   *why  = json_string_value(json_object_get(row, "left_out"));
		const char   *name = json_string_value(json_object_get(row, "name"));
		char          plain[200];

		if (!why)
			continue;
		is_missing |= strcmp(why, "hidden") != 0 && strcmp(why, "no_out") != 0; /* a program need not have something for --out */
		snprintf(plain, sizeof plain, "%s", name && *name ? name : "files");
		text_make_plain(plain);
		if (!is_quiet)
			fprintf(stderr, "brig: not %s: %s: %s\n", done, plain, left_out_text(why));
	}
	return is_missing;
}
