#define _GNU_SOURCE
#include "net_secret_read.h"

#include "fd.h"
#include "file.h"
#include "text.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_secret_value(const struct net_secret_source *from, const struct credentials *held, struct bytes *ret,
			     struct err *e)
{
	const char *text = from->env ? getenv(from->env) : NULL;

	if (from->credential) {
		scoped_fd fd = credential_open(held, from->credential, e);

		return fd < 0 ? -1 : file_read_fd(fd, from->credential, NET_SECRET_VALUE_MAX, ret, e) < 0 ? err_wrap(e, "credential") : 0;
	}
	if (from->file)
		return trust_read(from->file, NET_SECRET_VALUE_MAX, ret, e) < 0 ? err_wrap(e, "file") : 0;
	if (!text)
		return err_set(e, ERR_MISSING, "env: %s is not set where brig runs", from->env);
	ret->len  = strnlen(text, NET_SECRET_VALUE_MAX);
	ret->data = strndup(text, ret->len);
	return ret->data ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

/* net_policy.c has checked the text around {}. */
static int fill_header_value(const struct net_secret_source *from, const char *value, struct net_secret *ret,
			     struct err *e)
{
	const char *place = strstr(from->value, "{}");
	int         head, n;

	if (!place || !value)
		return err_set(e, ERR_BAD_SPEC, "the text around the value has no {}");
	head = (int)(place - from->value);

	n = snprintf(ret->value, sizeof ret->value, "%.*s%s%s", head, from->value, value, place + 2);
	if (n >= (int)sizeof ret->value)
		return err_set(e, ERR_LIMIT, "the value is larger than %d bytes", NET_SECRET_VALUE_MAX - 1);
	ret->secret_from = (uint32_t)head;
	ret->secret_len  = (uint32_t)strlen(value);
	return 0;
}

static int trim_and_check_value(struct bytes *b, struct err *e)
{
	if (b->len && b->data[b->len - 1] == '\n')
		b->data[--b->len] = 0;
	if (b->len && b->data[b->len - 1] == '\r')
		b->data[--b->len] = 0;
	if (!b->len)
		return err_set(e, ERR_BAD_SPEC, "the value is empty");
	if (strlen(b->data) != b->len || text_has_control(b->data))
		return err_set(e, ERR_BAD_SPEC, "the value has control characters or more than one line");
	return 0;
}

int net_secret_read(const struct net_secret_source *from, const struct credentials *held, struct net_secret *ret, struct err *e)
{
	struct bytes      b    = { NULL, 0 };
	struct net_secret made = { .port = from->port };
	int done = read_secret_value(from, held, &b, e) < 0 || trim_and_check_value(&b, e) < 0 ? -1 :
		fill_header_value(from, b.data, &made, e);

	if (b.data)
		explicit_bzero(b.data, b.len);
	bytes_done(&b);
	memcpy(made.name, from->name, strlen(from->name)); /* net_policy.c has checked that names are shorter */
	memcpy(made.host, from->host, sizeof made.host);
	memcpy(made.header, from->header, sizeof made.header);
	if (done == 0)
		*ret = made;
	explicit_bzero(&made, sizeof made);
	return done;
}
