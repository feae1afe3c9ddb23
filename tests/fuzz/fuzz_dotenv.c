/* fuzz_dotenv.c - any bytes as .env: rows stand in their lines, settings keep their bounds, no port is opened, nothing is expanded */
#include "fuzz_settings.h"

static void must_be_a_name(const char *name)
{
	must_about(name, strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == strlen(name));
	must_about(name, *name < '0' || *name > '9');
}

static void must_read_lines(const char *bytes, size_t size)
{
	scoped_dotenv    d;
	struct err       e     = { 0 };
	unsigned         line  = 0, lines = 1;
	enum dotenv_step step;

	for (size_t i = 0; i < size; i++)
		lines += bytes[i] == '\n';
	dotenv_init(&d, bytes, size);
	while ((step = dotenv_next(&d, &e)) != DOTENV_END) {
		must(d.line > line && d.line <= lines);
		line = d.line;
		must_be_a_name(d.name);
		if (step == DOTENV_BAD) {
			must_say_why(&e);
			must(!d.value);
		} else {
			must(*d.name && strlen(d.value) <= size);
		}
	}
}

static void must_open_nothing(const struct settings *s)
{
	must(!s->http && !s->insecure_loopback && strcmp(s->host, "127.0.0.1") == 0);
	must(json_array_size(s->allow_origin) == 0 && json_array_size(s->allow_host) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_settings s;
	struct err      e = { 0 };

	must_read_lines((const char *)data, size);
	settings_init(&s);
	if (settings_parse_dotenv(&s, (const char *)data, size, &e) < 0 || settings_judge(&s, &e) < 0)
		must_say_why(&e);
	else
		must_make_sense(&s);
	must_open_nothing(&s);
	return 0;
}
