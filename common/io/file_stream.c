#define _GNU_SOURCE
#include "file_stream.h"

#include "fd.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

const char *file_left_reason_name(enum file_left why)
{
	static const char *const names[] = {
		[FILE_LEFT_link] = "link", [FILE_LEFT_special] = "special", [FILE_LEFT_size] = "size", [FILE_LEFT_unreadable] = "unreadable",
		[FILE_LEFT_deep] = "deep", [FILE_LEFT_room] = "room", [FILE_LEFT_unwritable] = "unwritable", [FILE_LEFT_changed] = "changed",
		[FILE_LEFT_missing] = "missing", [FILE_LEFT_not_empty] = "not_empty",
	};

	return (unsigned)why < FILE_LEFT_COUNT ? names[why] : "unknown";
}

/* --- names --- */

static const char *find_component_fault(const char *at, size_t n)
{
	if (n == 0)
		return "has an empty component";
	if (n > 255)
		return "has a component of more than 255 bytes";
	if ((n == 1 && *at == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
		return "has . or .. in it";
	return NULL;
}

const char *file_name_find_fault(const char *name, size_t len)
{
	const char *fault = NULL;
	unsigned    depth = 0;

	if (len == 0 || len > FILE_NAME_BYTES)
		return len ? "is longer than 1024 bytes" : "is empty";
	if (memchr(name, 0, len))
		return "has a NUL in it";
	for (const char *at = name, *end = name + len; !fault && at <= end; depth++) {
		const char *slash = memchr(at, '/', (size_t)(end - at));
		size_t      n     = (size_t)((slash ? slash : end) - at);

		fault = find_component_fault(at, n);
		at += n + 1;
	}
	return fault ? fault : depth > FILE_DEPTH_MAX ? "is more than 32 directories deep" : NULL;
}

/* --- patterns --- */

const char *file_pattern_normalize(const char *pattern, char ret[FILE_NAME_BYTES + 1])
{
	static const char workspace[] = "/workspace";
	const char       *at          = pattern;
	size_t            n           = sizeof workspace - 1, len = 0;

	*ret = 0;
	if (!*pattern)
		return "is empty";
	if (strncmp(pattern, workspace, n) == 0 && (!pattern[n] || pattern[n] == '/'))
		at += n;
	if (at == pattern && *at == '/')
		return "begins with a slash, and is not below /workspace";
	for (; *at; at += n + (at[n] == '/')) {
		n = strcspn(at, "/");
		if (n == 0 || (n == 1 && *at == '.'))
			continue;
		if (len + n + 1 > FILE_NAME_BYTES)
			return "is longer than 1024 bytes";
		if (len)
			ret[len++] = '/';
		memcpy(ret + len, at, n);
		len += n;
	}
	memcpy(ret + len, len ? "" : "**", len ? 1 : 3);
	return file_name_find_fault(ret, strlen(ret));
}

/* Is a component `**`, which stands for any number of directories? Its length, or 0. */
static size_t any_depth_component_length(const char *component)
{
	return begins_with(component, "**") && (!component[2] || component[2] == '/') ? 2 : 0;
}

static bool component_matches(const char *pattern, const char *name)
{
	char   part[2][FILE_NAME_BYTES + 1];
	size_t n = strcspn(pattern, "/"), m = strcspn(name, "/");

	if (n > FILE_NAME_BYTES || m > FILE_NAME_BYTES)
		return false;
	memcpy(part[0], pattern, n);
	memcpy(part[1], name, m);
	part[0][n] = part[1][m] = 0;
	return fnmatch(part[0], part[1], 0) == 0;
}

static const char *next_component(const char *at)
{
	at += strcspn(at, "/");
	return *at ? at + 1 : at;
}

/* Goes back to the last `**` only: with the rest of a name below what matched, the earliest place of each part is as good as any. */
size_t file_pattern_matches(const char *pattern, const char *name)
{
	const char *p = pattern, *n = name, *any = NULL, *mark = NULL;

	if (!*pattern || strlen(name) > FILE_NAME_BYTES)
		return 0;
	while (*n && *p) {
		if (any_depth_component_length(p)) {
			any = p = next_component(p);
			mark = n;
		} else if (component_matches(p, n)) {
			p = next_component(p);
			n = next_component(n);
		} else if (any) {
			p = any;
			n = mark = next_component(mark);
		} else {
			return 0;
		}
	}
	while (any_depth_component_length(p))
		p = next_component(p);
	if (*p)
		return 0;
	if (!*n)
		return strlen(name);
	return n > name ? (size_t)(n - name) - 1 : strlen(name);
}

const char *file_pattern_rest_below(const char *pattern, const char *name)
{
	while (*pattern && *name && !any_depth_component_length(pattern)) {
		pattern = next_component(pattern);
		name    = next_component(name);
	}
	return *pattern && *name ? name : NULL;
}

/* Behind a `**` the places of name and pattern are not the same: then any component of the pattern counts. */
static bool pattern_names_hidden_part(const char *pattern, bool any_depth, size_t place, const char *part)
{
	size_t i = 0;

	for (; *pattern; pattern = next_component(pattern), i++)
		if ((any_depth || i == place) && pattern[*pattern == '\\'] == '.' && component_matches(pattern, part))
			return true;
	return false;
}

size_t file_pattern_hidden_length(const char *pattern, const char *name)
{
	bool   any_depth = false;
	size_t place     = 0;

	for (const char *wanted = pattern; *wanted; wanted = next_component(wanted))
		any_depth |= any_depth_component_length(wanted) > 0;
	for (const char *part = name; *part; part = next_component(part), place++)
		if (*part == '.' && !pattern_names_hidden_part(pattern, any_depth, place, part))
			return (size_t)(part - name) + strcspn(part, "/");
	return 0;
}

/* --- bytes --- */

static bool may_read_again(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (errno == EINTR)
		return true;
	return errno == EAGAIN && (poll(&p, 1, -1) >= 0 || errno == EINTR);
}

int file_stream_read(int fd, void *bytes, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(fd, (char *)bytes + done, len - done);

		if (n == 0)
			errno = EPIPE;
		if (n == 0 || (n < 0 && !may_read_again(fd)))
			return -1;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int file_stream_write(int fd, const void *bytes, size_t len)
{
	return file_write_all(fd, bytes, len);
}

int file_stream_write_header(int fd, enum file_kind kind, const char *name, uint64_t bytes)
{
	struct file_entry entry = { .kind = kind, .name_len = (uint32_t)strlen(name), .bytes = bytes };

	return file_stream_write(fd, &entry, sizeof entry) < 0 ? -1 : file_stream_write(fd, name, entry.name_len);
}

int file_stream_read_header(int fd, struct file_entry *entry, char name[FILE_NAME_BYTES + 1], struct err *e)
{
	const char *fault;

	if (file_stream_read(fd, entry, sizeof *entry) < 0)
		return errno == EPIPE ? err_set(e, ERR_PROTOCOL, "files: they ended in the middle") : err_sys(e, "files");
	if (entry->kind >= FILE_KINDS || entry->name_len > FILE_NAME_BYTES)
		return err_set(e, ERR_PROTOCOL, "files: a header makes no sense");
	if (file_stream_read(fd, name, entry->name_len) < 0)
		return err_sys(e, "files");
	name[entry->name_len] = 0;
	if (entry->kind == FILE_GET) {
		char plain[FILE_NAME_BYTES + 1];

		strcpy(name, memchr(name, 0, entry->name_len) || file_pattern_normalize(name, plain) ? "" : plain);
		return 0;
	}
	fault = entry->kind == FILE_END || (entry->kind == FILE_STAT && !entry->name_len) ? NULL : file_name_find_fault(name, entry->name_len);
	return fault ? err_set(e, ERR_BAD_SPEC, "files: the name \"%.80s\" %s", name, fault) : 0;
}

int file_stream_copy(int to, int from, uint64_t len)
{
	char block[64 * 1024];

	while (len) {
		size_t  want = len < sizeof block ? (size_t)len : sizeof block;
		ssize_t n    = read(from, block, want);

		if (n == 0)
			errno = ENODATA;
		if (n == 0 || (n < 0 && !may_read_again(from)) || (n > 0 && file_stream_write(to, block, (size_t)n) < 0))
			return -1;
		len -= n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* --- files --- */

static int make_and_open_folder(int dir, const char *name)
{
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return -1;
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int create_file(int dir, const char *name, bool executable, bool replace)
{
	int         fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, executable ? 0755 : 0644);
	struct stat st;

	if (fd >= 0 || errno != EEXIST || !replace)
		return fd;
	fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) == 0)
		return fd;
	fd_closep(&fd);
	errno = EEXIST;
	return -1;
}

/* Enters the directories of a path, and leaves *name at its last component. Returns dir, or the descriptor that *entered owns then. */
static int make_and_open_parents(int dir, const char **name, int *entered)
{
	char        part[256];
	const char *slash;

	while ((slash = strchr(*name, '/'))) {
		size_t n = (size_t)(slash - *name);
		int    next;

		if (n >= sizeof part) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, *name, n);
		part[n] = 0;
		next = make_and_open_folder(*entered < 0 ? dir : *entered, part);
		fd_closep(entered);
		*entered = next;
		if (next < 0)
			return -1;
		*name = slash + 1;
	}
	return *entered < 0 ? dir : *entered;
}

int file_stream_create(int dir, const char *name, bool executable, bool replace)
{
	scoped_fd entered = -1;
	int       above   = make_and_open_parents(dir, &name, &entered);

	return above < 0 && above != AT_FDCWD ? -1 : create_file(above, name, executable, replace);
}

int file_stream_make_folder(int dir, const char *name)
{
	scoped_fd entered = -1, made = -1;
	int       above   = make_and_open_parents(dir, &name, &entered);

	if (above >= 0 || above == AT_FDCWD)
		made = make_and_open_folder(above, name);
	return made < 0 ? -1 : 0;
}
