#include "exposition.h"

#include <inttypes.h>

static void put_label_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			(void)fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			(void)fprintf(out, "\\%c", *text);
		else
			(void)fputc(*text >= ' ' && *text <= '~' ? *text : '?', out);
	}
}

static void put_name_and_labels(FILE *out, const char *name, const struct exposition_label *labels)
{
	const char *before = "{";

	(void)fputs(name, out);
	for (; labels && labels->name; labels++, before = ",") {
		(void)fprintf(out, "%s%s=\"", before, labels->name);
		put_label_value(out, labels->value);
		(void)fputc('"', out);
	}
	(void)fputs(*before == ',' ? "} " : " ", out);
}

void exposition_print_head(FILE *out, const char *name, const char *type, const char *help)
{
	(void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void exposition_print_count(FILE *out, const char *name, const struct exposition_label *labels, uint64_t value)
{
	put_name_and_labels(out, name, labels);
	(void)fprintf(out, "%" PRIu64 "\n", value);
}

void exposition_print_number(FILE *out, const char *name, const struct exposition_label *labels, double value)
{
	put_name_and_labels(out, name, labels);
	(void)fprintf(out, "%.14g\n", value);
}
