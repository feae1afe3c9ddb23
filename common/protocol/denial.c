#include "denial.h"

#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *doc;
} codes[] = {
#define DENIAL(name, doc) { #name, doc },
#include "denial.def"
#undef DENIAL
};

const char *denial_code_name(enum denial_code code)
{
	return codes[code].name;
}

const char *denial_code_doc(enum denial_code code)
{
	return codes[code].doc;
}

int deny(struct denial *d, enum denial_code code, const char *field, const char *fmt, ...)
{
	va_list ap;

	*d = (struct denial){ .code = code };
	snprintf(d->field, sizeof d->field, "%s", field ? field : "");
	va_start(ap, fmt);
	vsnprintf(d->text, sizeof d->text, fmt, ap);
	va_end(ap);
	text_make_plain(d->field);
	text_make_plain(d->text);
	return -1;
}

int deny_err(struct denial *d, enum denial_code code, const char *field, const struct err *e)
{
	return deny(d, code, field, "%s", e->text);
}

bool denial_parse_index(const char *field, const char *list, size_t *i)
{
	size_t   n = list ? strlen(list) : strcspn(field, "[");
	unsigned index;
	int      end = 0;

	if ((list && strncmp(field, list, n) != 0) || sscanf(field + n, "[%9u]%n", &index, &end) != 1 || !end ||
	    field[n + (size_t)end])
		return false;
	*i = index;
	return true;
}

int deny_setting(struct denial *d, enum denial_code code, const char *above, const struct err *e)
{
	int  len = (int)e->field_len;
	char field[sizeof d->field];

	snprintf(field, sizeof field, "%s%s%.*s", above ? above : "", above && len ? "." : "", len, e->text);
	return deny(d, code, field, "%s", e->text + (len ? len + strlen(": ") : 0));
}
