#include "requirements.h"
#include "tap.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define b "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define H " --hash=sha256:"

static const struct {
	const char *name, *text, *is; /* what pip gets, or the beginning of the error */
	bool        fine;
} rows[] = {
	/* sentence, file, answer */
	{ "a version and a hash", "six==1.16.0" H A "\n", "six==1.16.0" H A "\n", true },
	{ "without a newline at the end", "six==1.16.0" H A, "six==1.16.0" H A "\n", true },
	{ "as pip-compile writes it", "# by pip-compile\n\nsix==1.16.0 \\\n   " H A " \\\n   " H B "\n    # via -r x.in\nx==1" H A "\n",
	  "six==1.16.0" H A H b "\nx==1" H A "\n", true },
	{ "names are as pip compares them", "Zope._Interface==1" H A, "zope-interface==1" H A "\n", true },
	{ "extras are another package's", "uvicorn[standard, a_b] == 0.1" H A, "uvicorn==0.1" H A "\n", true },
	{ "a marker is kept", "six==1 ; python_version < \"3.8\" " H A, "six==1 ; python_version < \"3.8\"" H A "\n", true },
	{ "one package under two markers", "six==1;os_name=='nt'" H A "\nsix==2;os_name!='nt'" H A, "six==1 ; os_name=='nt'" H A "\nsix==2 ; os_name!='nt'" H A "\n", true },
	{ "a local version with an epoch", "six==1!2.0+cpu" H A, "six==1!2.0+cpu" H A "\n", true },
	{ "lines that end in a carriage return", "six==1" H A "\r\nx==1" H A "\r\n", "six==1" H A "\nx==1" H A "\n", true },
	{ "no hash", "x==1" H A "\nsix==1.16.0\n", "line 2: six==1.16.0 has no hash: add --hash=sha256:..., which `pip hash FILE.whl` prints, or let `pip-compile --generate-hashes`", false },
	{ "a backslash at the end of the file", "six==1 \\", "line 1: six==1 has no hash", false },
	{ "no version", "six" H A, "line 1: six: expected six==VERSION", false },
	{ "an open version", "six>=1" H A, "line 1: six: expected six==VERSION", false },
	{ "a version with a star", "six==1.*" H A, "line 1: six: expected six==VERSION", false },
	{ "three equals signs", "six===1" H A, "line 1: six: expected six==VERSION", false },
	{ "an address", "six @ https://example.org/six.whl" H A, "line 1: six: expected six==VERSION", false },
	{ "an address alone", "https://example.org/six.whl" H A, "line 1: https: expected https==VERSION", false },
	{ "a path", "./six.whl" H A, "line 1: ./six.whl", false },
	{ "an index", "--index-url https://example.org\nsix==1" H A, "line 1: --index-url https://example.org: options are not taken", false },
	{ "another file", "-r more.txt", "line 1: -r more.txt: options are not taken", false },
	{ "an option behind", "six==1" H A " --no-binary x", "line 1: six==1: --no-binary x: expected --hash=sha256:", false },
	{ "another kind of hash", "six==1 --hash=md5:" A, "line 1: six==1: --hash=md5:", false },
	{ "a short hash", "six==1" H "abc", "line 1: six==1: --hash=sha256:abc: expected --hash=sha256:... with 64 digits", false },
	{ "a long hash", "six==1" H A "a", "line 1: six==1: --hash=sha256:aa", false },
	{ "a variable in a marker", "six==1;os_name=='${HOME}'" H A, "line 1: six: what follows its ';' is no marker", false },
	{ "a marker without words", "six==1;" H A, "line 1: six: what follows its ';' is no marker", false },
	{ "twice", "six==1" H A "\n\nSIX==2" H A, "line 3: six: line 1 has it already", false },
	{ "a character that cannot be shown", "six==1" H A "\n\x1b[2J", "line 2: has a character that cannot be shown", false },
	{ "nothing", "\n# nothing\n", "nothing is required", false },
	{ "an empty file", "", "nothing is required", false },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_requirements r    = { 0 };
		struct err          e    = { 0 };
		char               *text = strdup(rows[i].text);
		bool                fine = requirements_parse(&r, text, &e) == 0;
		const char         *is   = fine ? r.text : e.text;

		if (!tap_ok(fine == rows[i].fine && strncmp(is, rows[i].is, strlen(rows[i].is)) == 0 && (!fine || strlen(is) == r.len), "%s", rows[i].name))
			printf("#   %s\n", is);
		free(text);
	}
	return tap_done();
}
