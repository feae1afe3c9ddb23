#include "sources.h"
#include "tap.h"

#define SIGNED "[signed-by=" SOURCES_KEYRING "] "

static const struct {
	const char *name;
	bool        deb822;
	const char *text, *lines;
} rows[] = {
	/* sentence, style, file, what is kept of it */
	{ "a plain line is Debian's", false, "deb http://m.test/debian bookworm main\n", "deb " SIGNED "http://m.test/debian bookworm main\n" },
	{ "updates and security come along", false, "deb http://m/d bookworm-updates main\ndeb http://m/s bookworm-security main contrib # x\n",
	  "deb " SIGNED "http://m/d bookworm-updates main\ndeb " SIGNED "http://m/s bookworm-security main\n" },
	{ "backports do not", false, "deb http://m/d bookworm-backports main\n", "" },
	{ "another release does not", false, "deb http://m/d trixie main\n", "" },
	{ "a suite that only begins alike does not", false, "deb http://m/d bookwormish main\n", "" },
	{ "source packages do not", false, "deb-src http://m/d bookworm main\n", "" },
	{ "a comment does not", false, "# deb http://m/d bookworm main\n", "" },
	{ "other components do not", false, "deb http://m/d bookworm contrib non-free\n", "" },
	{ "a vendor's key makes it the vendor's", false, "deb [signed-by=/usr/share/keyrings/vendor.gpg] http://m/d bookworm main\n", "" },
	{ "Debian's key among others does not help", false, "deb [signed-by=/k/debian-archive-keyring.gpg,/k/vendor.gpg] http://m/d bookworm main\n", "" },
	{ "Debian's key is fine, other options are dropped", false, "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg trusted=yes] http://m/d bookworm main\n",
	  "deb " SIGNED "http://m/d bookworm main\n" },
	{ "a CD is not asked for", false, "deb cdrom:[Debian]/ bookworm main\n", "" },
	{ "a line that is cut off is nothing", false, "deb [signed-by=/k http://m/d bookworm main", "" },
	{ "a stanza gives a line for each suite", true, "Types: deb\n# a comment\nURIs: http://m/d\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n",
	  "deb " SIGNED "http://m/d bookworm main\ndeb " SIGNED "http://m/d bookworm-updates main\n" },
	{ "values may go on in the next line", true, "Types: deb\nURIs:\n http://m/d\n http://n/d\nSuites: bookworm\nComponents: contrib\n main\n",
	  "deb " SIGNED "http://m/d bookworm main\ndeb " SIGNED "http://n/d bookworm main\n" },
	{ "fields do not cross an empty line", true, "Types: deb\nURIs: http://m/d\n\nSuites: bookworm\nComponents: main\n", "" },
	{ "a disabled stanza is not used", true, "Enabled: no\nTypes: deb\nURIs: http://m/d\nSuites: bookworm\nComponents: main\n", "" },
	{ "a key inside the stanza is somebody's own", true, "Types: deb\nURIs: http://m/d\nSuites: bookworm\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n", "" },
	{ "names of fields have no case", true, "types: deb\nuris: http://m/d\nSUITES: bookworm\ncomponents: main\n", "deb " SIGNED "http://m/d bookworm main\n" },
};

static void check_hide(void)
{
	scoped_sources s      = { 0 };
	struct err     e      = { 0 };
	char           text[] = "Could not resolve 'packages.example.test'\nErr http://packages.example.test/debian bookworm [IP: 192.0.2.1 80]\nhttps://proxy.test:3128/x y\n";

	tap_ok(sources_add_list(&s, "deb http://user:secret@packages.example.test:8080/debian bookworm main", "bookworm", &e) == 0, "a mirror with a password is read");
	sources_hide_hosts(&s, text);
	tap_is(text, "Could not resolve '(mirror)'\nErr http:///debian bookworm \nhttps:///x y\n", "host names and addresses are taken out of messages");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_sources s  = { 0 };
		struct err     e  = { 0 };
		int            ok = (rows[i].deb822 ? sources_add_deb822 : sources_add_list)(&s, rows[i].text, "bookworm", &e);

		tap_ok(ok == 0, "it can be read that %s", rows[i].name);
		tap_is(s.lines ? s.lines : "", rows[i].lines, rows[i].name);
	}
	check_hide();
	return tap_done();
}
