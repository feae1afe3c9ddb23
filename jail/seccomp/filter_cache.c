#define _GNU_SOURCE /* O_PATH */
#include "filter_cache.h"

#include "fd.h"
#include "file.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define MAGIC    "BRIGBPF1"
#define KEY_MAX  (POLICY_SOURCES_MAX * (POLICY_SOURCE_MAX + 128) + 256)
#define FILE_MAX (sizeof(struct header) + KEY_MAX + BPF_PROGRAM_MAX * sizeof(struct sock_filter))

/* The program follows, then the key. In this order the program is aligned, whatever the length of the key. */
struct header {
	char     magic[8];
	uint32_t instructions;
	uint32_t key_len;
};

struct file_name {
	char text[32];
};

/* The hash may collide: only an equal key makes a hit. */
static struct file_name cache_file_name(const struct policy_bundle *b)
{
	uint64_t         hash = 0xcbf29ce484222325u;
	struct file_name name;

	for (size_t i = 0; i < b->key_len; i++)
		hash = (hash ^ (unsigned char)b->key[i]) * 0x100000001b3u;
	snprintf(name.text, sizeof name.text, "%016" PRIx64 ".bpf", hash);
	return name;
}

/* Opens RUNTIME/filters. NULL, or the reason why it cannot be used. */
static const char *open_cache_folder(const char *runtime_dir, int *ret)
{
	struct stat st;
	scoped_fd   runtime = open(runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd   folder  = runtime < 0 ? -1 : openat(runtime, "filters", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0)
		return "there is no folder filters in the runtime directory";
	if (fstat(folder, &st) < 0 || !trust_stat_is_safe(&st) || (st.st_mode & 0777) != 0700)
		return "the folder of filters is not ours alone (0700)";
	*ret = fd_take(&folder);
	return NULL;
}

static const char *check_cache_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "not a regular file";
	if (!trust_stat_is_safe(&st))
		return "others could have written it";
	return st.st_nlink == 1 ? NULL : "it has a second name";
}

static const char *check_cached_program(const struct bytes *file, const struct policy_bundle *b, struct header *h)
{
	if (file->len < sizeof *h)
		return "shorter than its header";
	memcpy(h, file->data, sizeof *h);
	if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
		return "another format";
	size_t program = h->instructions * sizeof(struct sock_filter);
	if (h->instructions > BPF_PROGRAM_MAX || file->len != sizeof *h + program + h->key_len)
		return "not as long as its header says";
	if (h->key_len != b->key_len || memcmp(file->data + sizeof *h + program, b->key, b->key_len) != 0)
		return "compiled from another text";
	return bpf_check((const struct sock_filter *)(const void *)(file->data + sizeof *h), h->instructions);
}

const char *filter_cache_load(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret)
{
	scoped_bytes  file   = { 0 };
	scoped_fd     folder = -1;
	struct err    ignored;
	struct header h;
	const char   *no = open_cache_folder(runtime_dir, &folder);

	if (no)
		return no;
	/* O_NONBLOCK: opening a fifo must not block. */
	scoped_fd fd = openat(folder, cache_file_name(b).text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? "not compiled yet" : "it cannot be opened";
	if ((no = check_cache_file(fd)))
		return no;
	if (file_read_fd(fd, "filter", FILE_MAX, &file, &ignored) < 0)
		return "it cannot be read";
	if ((no = check_cached_program(&file, b, &h)))
		return no;
	*ret = (struct filter){ .insn = (void *)(file.data + sizeof h), .len = (unsigned short)h.instructions, .block = file.data };
	file = (struct bytes){ 0 };
	return NULL;
}

const char *filter_cache_store(const struct policy_bundle *b, const char *runtime_dir, const struct filter *f)
{
	scoped_fd     folder = -1, runtime = open(runtime_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct header h      = { MAGIC, f->len, (uint32_t)b->key_len };
	char          temporary[48];
	uint64_t      unique = 0;
	const char   *no;

	if (runtime >= 0)
		(void)!mkdirat(runtime, "filters", 0700); /* mostly it exists; open_cache_folder() checks it */
	if ((no = open_cache_folder(runtime_dir, &folder)))
		return no;
	/* Not the pid: launchers in two containers may have the same one. */
	if (getrandom(&unique, sizeof unique, 0) != sizeof unique)
		return "there is no unique name for its file";
	snprintf(temporary, sizeof temporary, ".new-%016" PRIx64, unique);
	scoped_fd fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return "its file cannot be made";
	if (file_write_all(fd, &h, sizeof h) == 0 && file_write_all(fd, f->insn, f->len * sizeof *f->insn) == 0 &&
	    file_write_all(fd, b->key, b->key_len) == 0 && renameat(folder, temporary, folder, cache_file_name(b).text) == 0)
		return NULL;
	unlinkat(folder, temporary, 0);
	return "its file cannot be written";
}
