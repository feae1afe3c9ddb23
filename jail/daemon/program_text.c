#define _GNU_SOURCE
#include "program_text.h"

#include "client_protocol.h"
#include "sealed.h"
#include "text.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * What a client never wrote is NUL bytes, and becomes memory when it is read: ours, in the books, for as long as the
 * client keeps the file. Nobody can make new holes: the file is sealed.
 */
static bool has_hole(int fd, size_t len)
{
	return lseek(fd, 0, SEEK_HOLE) < (off_t)len;
}

static int refuse_nul(struct denial *why)
{
	return deny(why, DENIAL_bad_field, "code", "has a NUL byte; a Python program is text");
}

static int check_text(const char *text, size_t len, struct denial *why)
{
	if (memchr(text, 0, len))
		return refuse_nul(why);
	if (!text_is_utf8(text, len))
		return deny(why, DENIAL_bad_field, "code", "is not UTF-8; save it as UTF-8");
	return 0;
}

int program_text_check(int fd, size_t *len, struct denial *why)
{
	struct err e;
	void      *text;
	int        r;

	if (sealed_check(fd, PROTOCOL_CODE_MAX, len, &e) < 0)
		return deny_err(why, DENIAL_bad_descriptors, "code", &e);
	if (*len == 0)
		return deny(why, DENIAL_bad_field, "code", "is empty");
	if (has_hole(fd, *len))
		return refuse_nul(why);
	text = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return deny(why, DENIAL_bad_descriptors, "code", "cannot be mapped: %s", strerror(errno));
	r = check_text(text, *len, why);
	munmap(text, *len);
	return r;
}
