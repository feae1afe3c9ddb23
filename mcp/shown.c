#define _GNU_SOURCE
#include "shown.h"

#include "fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Splits "PATH:NAME", unless the whole text is an existing path. The path is malloc'ed; the name is "" if there is none. */
static char *split(const char *text, const char **name)
{
	const char *colon = access(text, F_OK) == 0 ? NULL : strrchr(text, ':');

	*name = colon ? colon + 1 : "";
	return colon ? strndup(text, (size_t)(colon - text)) : strdup(text);
}

/* name: "" for the last part of the path. */
static int add_path(struct shown *s, const char *text, const char *path, const char *name, struct err *e)
{
	scoped_fd fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "--ro %s", text);
	if (strcmp(path, "/") == 0)
		return err_set(e, ERR_BAD_SPEC, "--ro %s: show a directory or a file, not the whole host", text);
	s->fd[s->n++] = fd_take(&fd);
	json_array_append_new(s->names, json_string(*name ? name : strrchr(path, '/') + 1));
	if (json_array_size(s->names) < s->n)
		return err_set(e, ERR_BAD_SPEC, "--ro %s: the name is not UTF-8", text);
	return 0;
}

static int add(struct shown *s, const char *text, struct err *e)
{
	const char *name;
	char       *path  = split(text, &name), *whole = path ? realpath(path, NULL) : NULL;
	int         r     = whole ? add_path(s, text, whole, name, e) : err_sys(e, "--ro %s", text);

	free(path);
	free(whole);
	return r;
}

int shown_open(struct shown *ret, const json_t *rows, struct err *e)
{
	*ret = (struct shown){ .names = json_array() };
	for (size_t i = 0; i < json_array_size(rows); i++) {
		if (add(ret, json_string_value(json_array_get(rows, i)), e) == 0)
			continue;
		shown_close(ret);
		return -1;
	}
	return 0;
}

void shown_close(struct shown *s)
{
	for (size_t i = 0; i < s->n; i++)
		fd_closep(&s->fd[i]);
	json_decref(s->names);
	*s = (struct shown){ 0 };
}

void shown_into(const struct shown *s, json_t *message)
{
	if (s->n)
		json_object_set(message, "ro", s->names);
}

int shown_copy(const struct shown *s, int *fds, struct err *e)
{
	for (size_t i = 0; i < s->n; i++) {
		fds[i] = fcntl(s->fd[i], F_DUPFD_CLOEXEC, 3);
		if (fds[i] < 0)
			return err_sys(e, "dup");
	}
	return 0;
}
