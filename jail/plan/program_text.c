#define _GNU_SOURCE
#include "program_text.h"

#include "client_protocol.h"
#include "sealed.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COPIED_MAX = 64 * 1024 };

/*
 * PEP 263: "coding:" or "coding=" in a comment of the first two lines. Which coding that is, and whether the text fits,
 * Python finds out.
 */
static bool declares_encoding(const char *text, size_t len)
{
	const char *end = text + len, *newline;

	for (int line = 0; line < 2 && text < end; line++, text = newline + 1) {
		newline = memchr(text, '\n', (size_t)(end - text));
		newline = newline ? newline : end;
		for (const char *at = memchr(text, '#', (size_t)(newline - text)); at && newline - at > 6; at++)
			if (memcmp(at, "coding", 6) == 0 && (at[6] == ':' || at[6] == '='))
				return true;
	}
	return false;
}

/* --- short ones --- */

static int program_text_copy(struct program_text *t, int fd, struct denial *why)
{
	ssize_t n;

	t->text = malloc(t->len + 1); /* an empty program has a text, too */
	if (!t->text)
		return deny(why, DENIAL_broken, NULL, "out of memory");
	n = pread(fd, t->text, t->len, 0);
	if (n == (ssize_t)t->len)
		return 0;
	return deny(why, DENIAL_bad_descriptors, "code", "cannot be read: %s", n < 0 ? strerror(errno) : "it is shorter than it was");
}

/* --- long ones --- */

static int program_text_map(struct program_text *t, int fd, struct denial *why)
{
	void *text = mmap(NULL, t->len, PROT_READ, MAP_PRIVATE, fd, 0);

	if (text == MAP_FAILED)
		return deny(why, DENIAL_bad_descriptors, "code", "cannot be mapped: %s", strerror(errno));
	t->text      = text;
	t->is_mapped = true;
	return 0;
}

int program_text_open(struct program_text *ret, int fd, struct denial *why)
{
	struct program_text t = { 0 };
	struct err          e;
	bool                is_short, has_nul;
	int                 done = -1;

	if (sealed_check(fd, PROTOCOL_CODE_MAX, &t.len, &e) < 0)
		return deny_err(why, DENIAL_bad_descriptors, "code", &e);
	is_short = t.len <= COPIED_MAX;
	/*
	 * A hole reads as NUL bytes. To read it through a mapping would allocate memory that is charged to the server
	 * for as long as the client keeps the file. New holes cannot appear: the file is sealed.
	 */
	has_nul = !is_short && lseek(fd, 0, SEEK_HOLE) < (off_t)t.len;
	if (!has_nul && (is_short ? program_text_copy : program_text_map)(&t, fd, why) < 0) {
		program_text_close(&t);
		return -1;
	}
	if (has_nul || memchr(t.text, 0, t.len))
		deny(why, DENIAL_bad_field, "code", "has a NUL byte; a Python program is text");
	else if (!text_is_utf8(t.text, t.len) && !declares_encoding(t.text, t.len))
		deny(why, DENIAL_bad_field, "code", "is not UTF-8; save it as UTF-8");
	else
		done = 0;
	if (done < 0)
		program_text_close(&t);
	else
		*ret = t;
	return done;
}

void program_text_close(struct program_text *t)
{
	if (t->is_mapped)
		munmap(t->text, t->len);
	else
		free(t->text);
	*t = (struct program_text){ 0 };
}
