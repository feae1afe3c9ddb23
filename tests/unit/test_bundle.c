/* What a program showed: a picture where there is one, else text; what has no room is said, and saved where there is a place. */
#include "artifacts.h"
#include "base64.h"
#include "bundle.h"
#include "scratch.h"
#include "tap.h"

#include <sys/stat.h>

#define PNG "iVBORw0KGgo="

/* clang-format off */
static const struct { const char *name, *bundle, *want; size_t images; } rows[] = {
	{ "a picture is shown, and not its text", "{\"text/plain\":\"<Figure>\",\"image/png\":\"" PNG "\"}", "[image/png, 8 bytes, shown below]", 1 },
	{ "png goes before jpeg",                 "{\"image/jpeg\":\"/9j/\",\"image/png\":\"" PNG "\"}", "[image/png, 8 bytes, shown below]", 1 },
	{ "jpeg alone",                           "{\"image/jpeg\":\"/9j/\"}", "[image/jpeg, 3 bytes, shown below]", 1 },
	{ "what is no picture is not shown as one", "{\"text/plain\":\"x\",\"image/png\":\"AAAA\"}", "x", 0 },
	{ "bad base64 is no picture",             "{\"text/plain\":\"x\",\"image/png\":\"iVBORw0KGg*=\"}", "x", 0 },
	{ "text is read before its markup",       "{\"text/html\":\"<table>\",\"text/plain\":\"a  b\"}", "a  b", 0 },
	{ "markup alone",                         "{\"text/html\":\"<b>x</b>\"}", "<b>x</b>", 0 },
	{ "latex",                                "{\"text/latex\":\"$x^2$\"}", "$x^2$", 0 },
	{ "json",                                 "{\"application/json\":{\"a\":[1,0.41]}}", "{\"a\":[1,0.41]}", 0 },
	{ "what no client shows is named",        "{\"image/svg+xml\":\"<svg/>\"}", "[image/svg+xml, 6 bytes, not shown]", 0 },
	{ "a figure of plotly is told with what to use", "{\"text/plain\":\"Figure()\",\"application/vnd.plotly.v1+json\":{\"data\":[]}}", "[application/vnd.plotly.v1+json, 11 bytes, not shown]\nA figure of plotly is not drawn here: draw it with matplotlib, which is shown, or save it with write_html().", 0 },
	{ "a pdf is counted in bytes",            "{\"application/pdf\":\"JVBERg==\"}", "[application/pdf, 4 bytes, not shown]", 0 },
	{ "a damaged pdf is nothing",             "{\"application/pdf\":\"JVBER\"}", "(null)", 0 },
	{ "nothing",                              "{}", "(null)", 0 },
	{ "what a terminal obeys goes",           "{\"text/plain\":\"a\\u001b[31mb\\u0007\\u0000c\"}", "abc", 0 },
};
/* clang-format on */

static void check_room(void)
{
	struct images g;
	char         *bytes = calloc(1, 500 * KIB), *data;
	json_t       *bundle, *words;

	memcpy(bytes, "\x89PNG\r\n\x1a\n", 8);
	data   = base64_encode(bytes, 500 * KIB);
	bundle = json_pack("{ss}", "image/png", data);
	images_init(&g, NULL, "6f0c0d5e-0000");
	json_decref(bundle_add_to_reply(bundle, &g));
	words = bundle_add_to_reply(bundle, &g);
	tap_ok(json_array_size(g.content) == 1, "a reply has room for so many pictures");
	tap_is(json_string_value(words), "[image/png, 512000 bytes, too large to be shown: a reply has room for 720 KiB of images; save it smaller, as with dpi=60]", "and says what to do");
	json_decref(words);
	json_decref(bundle);
	images_done(&g);
	free(data);
	free(bytes);
}

static void check_saved(const char *folder)
{
	struct err        e;
	struct images     g;
	struct stat       st;
	struct artifacts *a;
	json_t           *bundle = json_loads("{\"image/svg+xml\":\"<svg/>\"}", 0, NULL), *words;
	char              path[300], want[400], *saved;

	snprintf(path, sizeof path, "%s/new", folder);
	a = artifacts_create(path, &e);
	tap_ok(a != NULL, "the directory is made");
	images_init(&g, a, "6f0c0d5e-0000");
	for (int i = 1; i <= 2; i++) {
		snprintf(want, sizeof want, "[image/svg+xml, 6 bytes, saved as %s/brig-6f0c0d5e%s.svg]", path, i == 1 ? "" : "-2");
		words = bundle_add_to_reply(bundle, &g);
		tap_is(json_string_value(words), want, i == 1 ? "it is saved, and the path told" : "the next one beside it");
		json_decref(words);
	}
	json_decref(bundle);
	images_done(&g);
	saved = artifacts_save(a, "../../etc/\n.x/.hidden", "x", 1, &e);
	snprintf(want, sizeof want, "%s/_._.._etc__.x_.hidden", path);
	tap_is(saved, want, "a name becomes plain, and stays in the directory");
	tap_ok(saved && stat(saved, &st) == 0 && (st.st_mode & 0777) == 0600, "only its owner reads it");
	free(saved);
	saved = artifacts_save(a, "", "x", 1, &e);
	tap_ok(saved && strcmp(strrchr(saved, '/'), "/_") == 0, "even no name becomes one");
	free(saved);
	snprintf(want, sizeof want, "%s/link.txt", path);
	tap_ok(symlink("/etc/passwd", want) == 0 && (saved = artifacts_save(a, "link.txt", "x", 1, &e)) && strcmp(strrchr(saved, '/'), "/link-2.txt") == 0, "what is there, a link too, is never written to");
	free(saved);
	artifacts_destroy(a);
	tap_ok(!artifacts_create("/proc/nothing/here", &e) && strncmp(e.text, "--artifacts /proc/nothing/here", 30) == 0, "where no directory can be the setting is named");
}

int main(void)
{
	char folder[] = "/tmp/brig-test-XXXXXX";

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct images g;
		json_t       *bundle = json_loads(rows[i].bundle, JSON_ALLOW_NUL, NULL), *words;

		images_init(&g, NULL, "6f0c0d5e-0000");
		words = bundle_add_to_reply(bundle, &g);
		tap_is(json_string_value(words), rows[i].want, rows[i].name);
		tap_ok(json_array_size(g.content) == rows[i].images && bundle_has_picture(bundle) == (rows[i].images > 0), "%s: %zu images", rows[i].name, rows[i].images);
		json_decref(words);
		json_decref(bundle);
		images_done(&g);
	}
	check_room();
	if (mkdtemp(folder))
		check_saved(folder);
	return tap_done();
}
