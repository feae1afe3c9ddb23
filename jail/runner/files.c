#define _GNU_SOURCE
#include "files.h"

#include "clone.h"
#include "fd.h"
#include "file_stream.h"
#include "packet.h"
#include "privilege.h"
#include "sys.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* From the helper, by write(): a policy may forbid send() and sendmsg() to the program, and so to the helper. */
struct files_message {
	enum files_answer kind;
	struct err        err;
};

/* --- the helper --- */

struct job {
	int                      sock, client, workspace;
	uint32_t                 owner_id, id;
	uint64_t                 bytes_max; /* the size of /workspace */
	bool                     has_code;
	int                      group;     /* version 2: the leaf; else -1 */
	struct child_ctx         joins;     /* version 1: the leaves */
	const struct sock_fprog *filter;
	dev_t                    dev;
	uint64_t                 sent;
	bool                     sends_folders;
	char                    *get[FILE_GETS_MAX];
	size_t                   gets;
};

static void send_files_answer(const struct job *j, enum files_answer kind, const struct err *why)
{
	struct files_message message;

	memset(&message, 0, sizeof message); /* padding too */
	message.kind = kind;
	if (why)
		message.err = *why;
	(void)!write(j->sock, &message, sizeof message);
}

/* Gives up all rights that the program does not have. */
static int drop_to_program_rights(const struct job *j)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { { 0 } };
	const struct rlimit             nothing = { 0, 0 }; /* this process forks nothing any more */

	umask(022);
	if (setrlimit(RLIMIT_NPROC, &nothing) < 0)
		return -1;
	if (setresgid(j->id, j->id, j->id) < 0 || setresuid(j->id, j->id, j->id) < 0 || syscall(SYS_capset, &head, none) < 0)
		return -1;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, j->filter, 0, 0);
}

/* --- in --- */

static int receive_workspace_file(const struct job *j, const struct file_entry *entry, const char *name, struct err *e)
{
	scoped_fd fd = -1;

	if (j->has_code && strcmp(name, "main.py") == 0)
		return err_set(e, ERR_BAD_SPEC, "files: main.py is the program itself; give the file another name");
	fd = file_stream_create(j->workspace, name, entry->kind == FILE_EXECUTABLE, false);
	if (fd < 0 && errno == EEXIST)
		return err_set(e, ERR_BAD_SPEC, "files: %.80s comes twice", name);
	if (fd >= 0 && file_stream_copy(fd, j->client, entry->bytes) == 0)
		return 0;
	if (errno == ENOSPC)
		return err_set(e, ERR_LIMIT, "files: no room in /workspace for %.80s; ask for more with --workspace-size and --inodes", name);
	return err_sys(e, "files: %.80s", name);
}

static int receive_workspace_folder(const struct job *j, const char *name, struct err *e)
{
	if (file_stream_make_folder(j->workspace, name) == 0)
		return 0;
	if (errno == ENOTDIR)
		return err_set(e, ERR_BAD_SPEC, "files: %.80s comes twice, as a file and as a directory", name);
	if (errno == ENOSPC)
		return err_set(e, ERR_LIMIT, "files: no room in /workspace for %.80s; ask for more with --inodes", name);
	return err_sys(e, "files: %.80s", name);
}

static int receive_workspace_files(const struct job *j, struct err *e)
{
	struct file_entry entry;
	char              name[FILE_NAME_BYTES + 1];

	for (;;) {
		if (file_stream_read_header(j->client, &entry, name, e) < 0)
			return -1;
		if (entry.kind == FILE_END)
			return 0;
		if (entry.kind != FILE_REGULAR && entry.kind != FILE_EXECUTABLE && entry.kind != FILE_FOLDER)
			return err_set(e, ERR_PROTOCOL, "files: only files come before the first end");
		if ((entry.kind == FILE_FOLDER ? receive_workspace_folder(j, name, e) : receive_workspace_file(j, &entry, name, e)) < 0)
			return -1;
	}
}

/* Joins the cell's control groups: what it writes is charged to the cell. */
static _Noreturn void fill_workspace_and_exit(struct job *j)
{
	struct err e;

	if (child_join_cgroups(&j->joins) < 0 || drop_to_program_rights(j) < 0)
		err_sys(&e, "set-up step files");
	else if (receive_workspace_files(j, &e) == 0)
		_exit(EXIT_SUCCESS);
	send_files_answer(j, FILES_FAILED, &e);
	_exit(EXIT_FAILURE);
}

/* Forks with the ids that PID 1 had when it was cloned: the kernel compares them with the owner of the groups. */
static pid_t fork_workspace_filler(struct job *j)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	struct err        e;
	pid_t             pid;

	if (privilege_set_userns_uid(j->owner_id, &e) < 0)
		return -1;
	pid = clone_into_group(&args, j->group);
	if (pid == 0)
		fill_workspace_and_exit(j);
	return pid;
}

/* --- out --- */

static int receive_file_patterns(struct job *j)
{
	struct file_entry entry;
	char              name[FILE_NAME_BYTES + 1];
	struct err        e;

	while (file_stream_read_header(j->client, &entry, name, &e) == 0) {
		if (entry.kind == FILE_END)
			return 0;
		if (entry.kind != FILE_GET || j->gets == FILE_GETS_MAX || !(j->get[j->gets++] = strdup(name)))
			return -1;
		j->sends_folders |= entry.bytes == FILE_GET_FOLDERS;
	}
	return -1;
}

static bool is_file_wanted(const struct job *j, const char *name)
{
	if (j->has_code && strcmp(name, "main.py") == 0)
		return false;
	for (size_t i = 0; i < j->gets; i++)
		if (file_pattern_matches(j->get[i], name))
			return true;
	return false;
}

static int send_file_left_out(const struct job *j, const char *name, enum file_left why)
{
	return file_stream_write_header(j->client, FILE_LEFT, name, why);
}

/* A file with holes can be larger than /workspace: at most the size of /workspace is sent in all. */
static int send_workspace_file(struct job *j, int dir, const char *last, const char *name)
{
	scoped_fd   fd = openat(dir, last, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return send_file_left_out(j, name, FILE_LEFT_unreadable);
	if ((uint64_t)st.st_size > j->bytes_max - j->sent)
		return send_file_left_out(j, name, FILE_LEFT_size);
	j->sent += (uint64_t)st.st_size;
	if (file_stream_write_header(j->client, st.st_mode & 0100 ? FILE_EXECUTABLE : FILE_REGULAR, name, (uint64_t)st.st_size) < 0)
		return -1;
	return file_stream_copy(j->client, fd, (uint64_t)st.st_size);
}

static int send_workspace_tree(struct job *j, int dir, char *name, size_t len, unsigned depth);

static int send_workspace_entry(struct job *j, int dir, const char *last, char *name, size_t len, unsigned depth)
{
	struct stat st;

	if (fstatat(dir, last, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != j->dev) /* a shown directory is the host's, and is not sent */
		return 0;
	if (S_ISDIR(st.st_mode)) {
		scoped_fd below = openat(dir, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (below >= 0 && depth < FILE_DEPTH_MAX)
			return send_workspace_tree(j, below, name, len, depth + 1);
		return is_file_wanted(j, name) ? send_file_left_out(j, name, below < 0 ? FILE_LEFT_unreadable : FILE_LEFT_deep) : 0;
	}
	if (!is_file_wanted(j, name))
		return 0;
	if (S_ISREG(st.st_mode))
		return send_workspace_file(j, dir, last, name);
	return send_file_left_out(j, name, S_ISLNK(st.st_mode) ? FILE_LEFT_link : FILE_LEFT_special);
}

static int compare_dirent_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Where a shown directory was mounted there is an empty one of the cell's PID 1 behind it. */
static bool is_dir_of_program(const struct job *j, int dir)
{
	struct stat st;

	return fstat(dir, &st) == 0 && st.st_uid == j->id;
}

/* Sends the entries by name. If a path is too long for a header, its directory is named as left out. */
static int send_workspace_tree(struct job *j, int dir, char *name, size_t len, unsigned depth)
{
	struct dirent **list;
	int             n = scandirat(dir, ".", &list, NULL, compare_dirent_names), r = 0;

	if (n == 2 && len && j->sends_folders && is_file_wanted(j, name) && is_dir_of_program(j, dir)) /* "." and ".." */
		r = file_stream_write_header(j->client, FILE_FOLDER, name, 0);
	for (int i = 0; i < n; i++) {
		const char *last = list[i]->d_name;
		size_t      more = strlen(last), slash = len > 0;

		if (r == 0 && strcmp(last, ".") != 0 && strcmp(last, "..") != 0) {
			if (len + slash + more > FILE_NAME_BYTES) {
				r = is_file_wanted(j, name) ? send_file_left_out(j, name, FILE_LEFT_deep) : 0;
			} else {
				if (slash)
					name[len] = '/';
				memcpy(name + len + slash, last, more + 1);
				r = send_workspace_entry(j, dir, last, name, len + slash + more, depth);
				name[len] = 0;
			}
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return n < 0 && errno == ENOMEM ? -1 : r;
}

static void send_wanted_files(struct job *j)
{
	char        name[FILE_NAME_BYTES + 1] = "";
	scoped_fd   top                       = openat(j->workspace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (receive_file_patterns(j) < 0 || top < 0 || fstat(top, &st) < 0)
		return;
	j->dev = st.st_dev;
	if (!j->gets || send_workspace_tree(j, top, name, 0, 1) == 0)
		(void)!file_stream_write_header(j->client, FILE_END, "", 0);
}

/* --- from its start to its end --- */

static bool reap_workspace_filler(const struct job *j, pid_t filler_pid)
{
	struct err e;
	int        status;

	while (waitpid(filler_pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	if (WIFSIGNALED(status)) {
		err_set(&e, ERR_LIMIT, "files: no memory for them; ask for more with --memory");
		send_files_answer(j, FILES_FAILED, &e);
	}
	return status == 0;
}

static _Noreturn void run_files_helper(struct job *j)
{
	int        keep[3 + CG_TREES_MAX] = { j->sock, j->client, j->group };
	size_t     n                      = 3, came;
	char       go;
	pid_t      pid;
	struct err e;

	prctl(PR_SET_NAME, "brig-files");
	for (int i = 0; i < j->joins.join_len; i++)
		keep[n++] = j->joins.join_fd[i];
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_close_all_but(keep, n) < 0)
		_exit(EXIT_FAILURE);
	if (packet_receive(j->sock, &go, sizeof go, &j->workspace, 1, &came) != sizeof go || came != 1)
		_exit(EXIT_FAILURE);
	pid = fork_workspace_filler(j);
	if (pid < 0 || drop_to_program_rights(j) < 0) {
		err_sys(&e, "set-up step files");
		send_files_answer(j, FILES_FAILED, &e);
		_exit(EXIT_FAILURE);
	}
	if (!reap_workspace_filler(j, pid))
		_exit(EXIT_FAILURE);
	send_files_answer(j, FILES_FILLED, NULL);
	if (read(j->sock, &go, sizeof go) == sizeof go) {
		send_wanted_files(j);
		send_files_answer(j, FILES_DONE, NULL);
	}
	_exit(EXIT_SUCCESS);
}

/* --- the process that watches the run --- */

int files_fork_helper(struct files *f, int client, const struct cell *c, const struct cell_spec *spec, struct err *e)
{
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&f->pidfd, .exit_signal = SIGCHLD };
	struct job        job;
	int               pair[2];
	pid_t             pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "set-up step files");
	memset(&job, 0, sizeof job);
	job.sock           = pair[1];
	job.client         = client;
	job.owner_id       = c->slot.init_id;
	job.id             = c->slot.program_id;
	job.bytes_max      = spec->limits->workspace_bytes;
	job.has_code       = spec->has_code;
	job.group          = cg_clone_fd(&c->group);
	job.joins.join_len = cg_join_fds(&c->group, job.joins.join_fd);
	job.filter         = spec->filter;
	pid                = clone3(&args, sizeof args);
	if (pid == 0)
		run_files_helper(&job);
	close(pair[1]);
	if (pid < 0) {
		f->pidfd = -1;
		close(pair[0]);
		return err_sys(e, "set-up step files");
	}
	f->sock  = pair[0];
	f->state = FILES_FILLS;
	return 0;
}

void files_send_workspace_fd(struct files *f, int dir)
{
	if (f->state == FILES_FILLS)
		(void)packet_send(f->sock, "w", 1, &dir, 1); /* if the helper is gone, files_receive_answer() reports it */
}

enum files_answer files_receive_answer(struct files *f, struct err *e)
{
	struct files_message message;
	ssize_t              n = recv(f->sock, &message, sizeof message, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return FILES_GO_ON;
	if (n == sizeof message && message.kind == FILES_FILLED && f->state == FILES_FILLS) {
		f->state = FILES_WAITS;
		return FILES_FILLED;
	}
	if (n == sizeof message && message.kind == FILES_FAILED) {
		*e                          = message.err;
		e->kind                     = message.err.kind <= ERR_BROKEN ? message.err.kind : ERR_SETUP;
		e->text[sizeof e->text - 1] = 0;
		text_make_plain(e->text);
	} else {
		err_set(e, ERR_SETUP, "files: the process that moves them has ended");
	}
	n = f->state == FILES_SENDS;
	files_close(f);
	return n ? FILES_DONE : FILES_FAILED;
}

bool files_start_sending(struct files *f, bool has_run)
{
	if (f->state == FILES_WAITS && has_run && send(f->sock, "g", 1, MSG_NOSIGNAL) == 1) {
		f->state = FILES_SENDS;
		return true;
	}
	files_close(f);
	return false;
}

void files_close(struct files *f)
{
	if (f->pidfd >= 0)
		pidfd_send_signal(f->pidfd, SIGKILL, NULL, 0);
	fd_closep(&f->pidfd);
	fd_closep(&f->sock);
	f->state = FILES_NONE;
}
