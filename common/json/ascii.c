#include "ascii.h"

#include <string.h>

struct escaping {
	json_dump_callback_t put;
	void                *into;
};

static int put_with_del_escaped(const char *bytes, size_t len, void *owner)
{
	const struct escaping *to = owner;

	for (const char *end = bytes + len, *del; bytes < end; bytes = del + 1) {
		del = memchr(bytes, 0x7f, (size_t)(end - bytes));
		if (to->put(bytes, (size_t)((del ? del : end) - bytes), to->into) < 0)
			return -1;
		if (!del)
			break;
		if (to->put("\\u007f", 6, to->into) < 0)
			return -1;
	}
	return 0;
}

int json_dump_ascii(const json_t *value, size_t flags, json_dump_callback_t put, void *into)
{
	struct escaping to = { put, into };

	return json_dump_callback(value, put_with_del_escaped, &to, flags | JSON_ENSURE_ASCII);
}
