#define _GNU_SOURCE
#include "result.h"

#include "base64.h"
#include "fd.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The forms of a displayed value that are saved as files. */
static const struct form {
	const char *mime, *extension;
	bool        is_base64;
} forms[] = {
	{ "image/png", "png", true },
	{ "image/jpeg", "jpg", true },
	{ "image/svg+xml", "svg", false },
	{ "application/pdf", "pdf", true },
	{ NULL, NULL, false },
};

static bool bundle_is_picture(const json_t *bundle)
{
	for (const struct form *f = forms; f->mime; f++)
		if (json_object_get(bundle, f->mime))
			return true;
	return false;
}

/* --- text --- */

static void print_json_text(const json_t *text)
{
	if (!json_is_string(text))
		return;
	fwrite(json_string_value(text), 1, json_string_length(text), stdout);
	putchar('\n');
}

/* Displayed pictures are left to result_save_pictures(). The value of the last expression has a text even if it is a picture. */
int result_print_values(const json_t *report)
{
	const json_t *displays = json_object_get(report, "displays"), *bundle = json_object_get(report, "bundle");
	const json_t *text = json_object_get(bundle, "text/plain");

	for (size_t i = 0; i < json_array_size(displays); i++)
		if (!bundle_is_picture(json_array_get(displays, i)))
			print_json_text(json_object_get(json_array_get(displays, i), "text/plain"));
	print_json_text(text ? text : json_object_get(report, "result_repr"));
	if (fflush(stdout) == 0)
		return 0;
	fprintf(stderr, "brig: the value cannot be written: %m\n");
	return -1;
}

/* --- pictures --- */

struct gallery {
	const char *folder;
	int         dir;
	unsigned    call, n; /* the next picture is call-CALL-N */
	bool        is_complete;
};

/* "call-12-1.png" -> 12; 0: another name. */
static unsigned call_number_of_file(const char *name)
{
	unsigned call, n;
	char     dot;

	return sscanf(name, "call-%7u-%7u%c", &call, &n, &dot) == 3 && dot == '.' ? call : 0;
}

/* One more than the highest number in the directory. */
static unsigned next_call_number(int dir)
{
	DIR           *list = fdopendir(dup(dir));
	unsigned       most = 0;
	struct dirent *entry;

	while (list && (entry = readdir(list)))
		if (call_number_of_file(entry->d_name) > most)
			most = call_number_of_file(entry->d_name);
	if (list)
		closedir(list);
	return most + 1;
}

static int open_picture_folder(struct gallery *g, const char *folder)
{
	*g = (struct gallery){ .folder = folder, .n = 1, .is_complete = true };
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return -1;
	g->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->dir < 0)
		return -1;
	g->call = next_call_number(g->dir);
	return 0;
}

/* Another brig may write to this directory at the same time: its files are not overwritten. */
static int create_picture(struct gallery *g, const char *extension, char *name, size_t len)
{
	int fd = -1;

	do {
		snprintf(name, len, "call-%u-%u.%s", g->call, g->n, extension);
		fd = openat(g->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	} while (fd < 0 && errno == EEXIST && ++g->call);
	return fd;
}

/* -1: a message was printed. */
static int write_picture_form(struct gallery *g, const struct form *form, const json_t *datum)
{
	size_t len     = json_string_length(datum);
	char  *decoded = form->is_base64 ? base64_decode(json_string_value(datum), len, &len) : NULL;
	char   name[48] = "call";
	bool   damaged  = form->is_base64 && !decoded;
	int    r        = -1;

	scoped_fd fd = damaged ? -1 : create_picture(g, form->extension, name, sizeof name);

	if (damaged)
		fprintf(stderr, "brig: a picture of the type %s is damaged\n", form->mime);
	else if (fd < 0 || (r = file_write_all(fd, decoded ? decoded : json_string_value(datum), len)) < 0)
		fprintf(stderr, "brig: %s/%s: %m\n", g->folder, name);
	else
		fprintf(stderr, "brig: picture: %s/%s\n", g->folder, name);
	free(decoded);
	return r;
}

/* New reference: a list. */
static json_t *find_pictures(const json_t *report)
{
	json_t *displays = json_object_get(report, "displays"), *bundle = json_object_get(report, "bundle"), *found = json_array();

	for (size_t i = 0; i < json_array_size(displays); i++)
		if (bundle_is_picture(json_array_get(displays, i)))
			json_array_append(found, json_array_get(displays, i));
	if (bundle_is_picture(bundle))
		json_array_append(found, bundle);
	return found;
}

static bool write_pictures(const json_t *pictures, const char *folder)
{
	struct gallery g;

	if (open_picture_folder(&g, folder) < 0) {
		fprintf(stderr, "brig: --artifacts %s: %m\n", folder);
		return false;
	}
	for (size_t i = 0; i < json_array_size(pictures); i++, g.n++) /* all forms of a picture have the same number */
		for (const struct form *f = forms; f->mime; f++) {
			const json_t *datum = json_object_get(json_array_get(pictures, i), f->mime);

			if (datum && write_picture_form(&g, f, datum) < 0)
				g.is_complete = false;
		}
	close(g.dir);
	return g.is_complete;
}

bool result_save_pictures(const struct request *r, const json_t *report)
{
	scoped_json  *pictures = find_pictures(report);
	const json_t *left_out = json_object_get(report, "left_out");
	size_t        n        = json_array_size(pictures);
	char          plain[300];
	bool          is_complete = true;

	if (n && r->artifacts)
		is_complete = write_pictures(pictures, r->artifacts);
	else if (n && !r->quiet)
		fprintf(stderr, "brig: the call shows %zu %s; with --artifacts DIR it becomes %s\n", n, n == 1 ? "picture" : "pictures", n == 1 ? "a file" : "files");
	for (size_t i = 0; i < json_array_size(left_out) && !r->quiet; i++) {
		snprintf(plain, sizeof plain, "%s", json_string_value(json_array_get(left_out, i)));
		text_make_plain(plain);
		fprintf(stderr, "brig: left out: %s\n", plain);
	}
	return is_complete;
}

/* --- the interpreter --- */

void result_print_session_state(const json_t *session)
{
	const json_t *context = json_object_get(session, "context");
	const char   *state   = json_string_value(json_object_get(session, "state"));
	bool          is_over = !json_is_string(context) || json_integer_value(json_object_get(session, "idle_left_ms")) == 0;
	char          name[80];

	if (!state)
		return;
	snprintf(name, sizeof name, "%s", json_is_string(context) ? json_string_value(context) : "");
	text_make_plain(name);
	if (strcmp(state, "lost") == 0 && is_over)
		fputs("brig: the session has ended, with all that was in it\n", stderr);
	else if (strcmp(state, "lost") == 0)
		fprintf(stderr, "brig: the interpreter of context %s has ended, and its variables are lost\n", name);
	else if (strcmp(state, "reset") == 0)
		fprintf(stderr, "brig: context %s has a new interpreter: the variables of earlier calls are lost\n", name);
}
