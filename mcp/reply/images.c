#include "images.h"

#include "base64.h"
#include "program_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The types that clients show, with their first bytes in base64. */
static const struct kind {
	const char *type, *ending, *begins;
	const char *then; /* what follows at character 12; "": anything */
} kinds[] = {
	{ "image/png", "png", "iVBORw0KGg", "" },
	{ "image/jpeg", "jpg", "/9j/", "" },
	{ "image/gif", "gif", "R0lGOD", "" },
	{ "image/webp", "webp", "UklGR", "RUJQ" },
};

void images_init(struct images *g, struct artifacts *artifacts, const char *run)
{
	*g = (struct images){ .content = json_array(), .room = IMAGES_CAPACITY, .artifacts = artifacts };
	snprintf(g->like, sizeof g->like, "brig-%.8s", run);
}

void images_done(struct images *g)
{
	json_decref(g->content);
	g->content = NULL;
}

static const struct kind *find_image_kind(const char *type)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].type, type) == 0)
			return &kinds[i];
	return NULL;
}

static bool data_begins_with(const char *data, size_t len, const char *text)
{
	return len >= strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

static bool data_is_of_kind(const char *data, size_t len, const struct kind *kind)
{
	return data_begins_with(data, len, kind->begins) &&
	       (!*kind->then || (len > 12 && data_begins_with(data + 12, len - 12, kind->then)));
}

bool images_is_showable(const char *type, const char *data, size_t len)
{
	const struct kind *kind = find_image_kind(type);

	/* clients refuse the whole answer for one bad character */
	return kind && data_is_of_kind(data, len, kind) && program_report_is_base64(data, len);
}

const char *images_detect_type(const void *bytes, size_t len)
{
	char       *data = base64_encode(bytes, len < 15 ? len : 15); /* kinds need no more */
	const char *type = NULL;

	for (size_t i = 0; i < ARRAY_LEN(kinds) && data && !type; i++)
		if (data_is_of_kind(data, strlen(data), &kinds[i]))
			type = kinds[i].type;
	free(data);
	return type;
}

/* --- where it goes --- */

static char *images_save_file(struct images *g, const char *ending, const void *bytes, size_t len)
{
	char       like[ARTIFACT_NAME_MAX];
	struct err e;
	char      *path;

	if (!g->artifacts)
		return NULL;
	snprintf(like, sizeof like, "%s.%s", g->like, ending);
	path = artifacts_save(g->artifacts, like, bytes, len, &e);
	if (!path)
		fprintf(stderr, "brig-mcp: %s\n", e.text);
	return path;
}

json_t *images_save_unshown(struct images *g, const char *type, const char *ending, const void *bytes, size_t len)
{
	char   *path  = images_save_file(g, ending, bytes, len);
	json_t *words = path ? json_sprintf("[%s, %zu bytes, saved as %s]", type, len, path)
			     : json_sprintf("[%s, %zu bytes, not shown]", type, len);

	free(path);
	return words;
}

static json_t *images_save_too_large(struct images *g, const struct kind *kind, const char *data, size_t len,
				     size_t bytes_len)
{
	size_t  n     = 0;
	char   *bytes = g->artifacts ? base64_decode(data, len, &n) : NULL,
	     *path    = bytes ? images_save_file(g, kind->ending, bytes, n) : NULL;
	json_t *words;

	if (path)
		words = json_sprintf("[%s, %zu bytes, too large to be shown, saved as %s]", kind->type, bytes_len,
				     path);
	else
		words = json_sprintf("[%s, %zu bytes, too large to be shown: a reply has room for %u KiB of images; "
				     "save it smaller, as with dpi=60]",
				     kind->type, bytes_len, (unsigned)(IMAGES_CAPACITY / 4 * 3 / KIB));
	free(bytes);
	free(path);
	return words;
}

json_t *images_add(struct images *g, const char *type, const char *data, size_t len)
{
	size_t padding = len < 2 || data[len - 1] != '=' ? 0
			 : data[len - 2] == '='          ? 2
							 : 1,
	       bytes   = len / 4 * 3 - padding;

	if (len > g->room)
		return images_save_too_large(g, find_image_kind(type), data, len, bytes);
	g->room -= len;
	json_array_append_new(g->content,
			      json_pack("{ss ss# ss}", "type", "image", "data", data, (int)len, "mimeType", type));
	return json_sprintf("[%s, %zu bytes, shown below]", type, bytes);
}
