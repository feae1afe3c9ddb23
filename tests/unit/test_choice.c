/* Which modules a run may import: the server's list, the profile's, the call's. */
#include "choice.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name; unsigned mode; const char *server, *profile, *asked, *run; } rows[] = {
	{ "advise-lets-all",                   IMPORTS_ADVISE,  "[]", "[\"math\"]", "null", "any" },
	{ "a-call-narrows",                    IMPORTS_ADVISE,  "[]", "[\"math\"]", "[\"os\"]", "[\"os\"]" },
	{ "an-empty-list-was-not-said",        IMPORTS_ADVISE,  "[]", "[\"math\"]", "[]", "any" },
	{ "enforce-takes-the-profile's",       IMPORTS_ENFORCE, "[]", "[\"math\",\"json\"]", "null", "[\"math\",\"json\"]" },
	{ "enforce-and-a-call-intersect",      IMPORTS_ENFORCE, "[]", "[\"math\",\"json\"]", "[\"json\",\"os\"]", "[\"json\"]" },
	{ "a-profile-without-a-list",          IMPORTS_ENFORCE, "[]", "[]", "null", "any" },
	{ "the-server's-list-counts-instead",  IMPORTS_ADVISE,  "[\"os\"]", "[\"math\"]", "null", "[\"os\"]" },
	{ "the-server's-list-is-narrowed",     IMPORTS_ENFORCE, "[\"os\",\"re\"]", "[\"math\"]", "[\"re\",\"math\"]", "[\"re\"]" },
	{ "a-part-of-a-package-is-below-it",   IMPORTS_ENFORCE, "[]", "[\"xml\"]", "[\"xml.etree\"]", "[\"xml.etree\"]" },
	{ "a-package-is-narrowed-to-its-part", IMPORTS_ENFORCE, "[]", "[\"xml.etree\"]", "[\"xml\"]", "[\"xml.etree\"]" },
	{ "a-longer-name-is-another-module",   IMPORTS_ENFORCE, "[]", "[\"os\"]", "[\"ossaudiodev\"]", "[]" },
	{ "nothing-twice",                     IMPORTS_ENFORCE, "[]", "[\"os\",\"os.path\"]", "[\"os.path\"]", "[\"os.path\"]" },
};
/* clang-format on */

static char *text_of(json_t *list)
{
	char *text = list ? json_dumps(list, JSON_COMPACT) : strdup("any");

	json_decref(list);
	return text;
}

static json_t *parse(const char *text)
{
	return json_loads(text, JSON_DECODE_ANY, NULL);
}

static void test_profile(void)
{
	struct settings s;

	settings_init(&s);
	tap_is(choice_default_profile(&s), "basic", "the preset is basic");
	s.filesystem = true;
	tap_is(choice_default_profile(&s), "filesystem", "SANDBOX_ENABLE_FILESYSTEM names filesystem");
	s.network = true;
	tap_is(choice_default_profile(&s), "network", "network counts before filesystem");
	s.data_science = true;
	tap_is(choice_default_profile(&s), "data-science", "data-science counts before both");
	s.origin[SETTING_profile] = ORIGIN_OPTION;
	s.profile                 = "strict";
	tap_is(choice_default_profile(&s), "strict", "a profile that was named counts before all");
	settings_done(&s);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct settings s       = { .imports = rows[i].mode, .allowed_imports = parse(rows[i].server) };
		json_t         *profile = parse(rows[i].profile), *asked = parse(rows[i].asked);
		char           *run = text_of(choice_allowed_imports(&s, profile, asked));

		tap_is(run, rows[i].run, rows[i].name);
		free(run);
		json_decref(profile);
		json_decref(asked);
		json_decref(s.allowed_imports);
	}
	test_profile();
	return tap_done();
}
