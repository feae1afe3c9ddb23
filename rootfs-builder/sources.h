/*
 * sources.h - where Debian packages come from: the machine's apt, else the recipe.
 *
 * A machine may have other sources too (of a vendor, of a language). They must
 * neither be used nor need to be reachable, so apt's own list cannot be passed
 * on unchanged. An entry is taken as Debian's when it offers binary packages of
 * main for the suite, its updates or its security fixes, and names no key but
 * Debian's. A wrong guess does no harm: all packages are verified with Debian's
 * archive keyring and no other.
 *
 * The parsers are pure; sources_load() reads /etc/apt. Host names are for apt
 * alone: sources_hide_hosts() removes them from everything that people see.
 */
#pragma once
#include "err.h"

#define SOURCES_KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

struct sources {
	char  *lines; /* sources.list(5), one-line style */
	size_t len;
	char **hosts;
	size_t n_hosts;
};
void sources_done(struct sources *s);
#define scoped_sources scoped(sources_done) struct sources

must_use int sources_add_list(struct sources *s, const char *text, const char *suite, struct err *e); /* *.list */
must_use int sources_add_deb822(struct sources *s, const char *text, const char *suite, struct err *e); /* *.sources */

/*
 * Reads one file when `file` is given; a name in ".sources" means deb822 style, any other one-line style. Without one
 * reads /etc/apt, and takes the recipe's own lines where that has no source of the suite.
 */
must_use int sources_load(struct sources *ret, const char *file, const char *own, const char *suite, struct err *e);

/* True for "deb URI SUITE main", which is what a recipe may have. */
bool sources_line_is_plain(const char *line);

/* Replaces every host name by "(mirror)" and removes IP addresses that apt prints. In place. */
void sources_hide_hosts(const struct sources *s, char *text);
