#include "interface.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *doc;
} interfaces[INTERFACE_COUNT] = {
#define INTERFACE(name, doc) { #name, doc },
#include "interface.def"
#undef INTERFACE
};

const char *interface_name(enum interface one)
{
	return interfaces[one].name;
}

const char *interface_doc(enum interface one)
{
	return interfaces[one].doc;
}

char *interface_set_print(interface_set set, char *buf, size_t len)
{
	size_t n = 0;

	*buf = 0;
	for (int i = 0; i < INTERFACE_COUNT; i++)
		if (interface_set_has(set, (enum interface)i) && n < len)
			n += (size_t)snprintf(buf + n, len - n, "%s%s", n ? "," : "", interfaces[i].name);
	return buf;
}

static int interface_find(const char *name, size_t len)
{
	for (int i = 0; i < INTERFACE_COUNT; i++)
		if (strlen(interfaces[i].name) == len && memcmp(interfaces[i].name, name, len) == 0)
			return i;
	return -1;
}

int interface_set_parse(const char *text, interface_set *ret, struct err *e)
{
	interface_set set = 0;
	char          all[128];

	for (const char *p = text;; p++) {
		size_t len = strcspn(p, ",");
		int    one = interface_find(p, len);

		if (one < 0)
			return err_set(e, ERR_BAD_SPEC, "\"%.*s\" is not an interface; there are: %s",
				       (int)(len < 40 ? len : 40), p,
				       interface_set_print(INTERFACE_ALL, all, sizeof all));
		set |= 1u << one;
		p += len;
		if (!*p)
			break;
	}
	*ret = set;
	return 0;
}
