#define _GNU_SOURCE
#include "foreign.h"

#include "text.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- other programs --- */

static const char *path_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has_extension(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && strcasecmp(path + n - m, end) == 0;
}

/* "bash" of "#!/usr/bin/env -S bash -e", or ""; options of env are passed over. */
static void find_interpreter(const char *text, char *ret, size_t len)
{
	char line[160];

	snprintf(line, sizeof line, "%.*s", (int)strcspn(text + 2, "\r\n"), text + 2);
	text_make_plain(line);
	ret[0] = 0;
	for (char *rest = line, *word; (word = strsep(&rest, " \t"));) {
		if (!*word || *word == '-')
			continue;
		snprintf(ret, len, "%s", path_last_part(word));
		if (strcmp(ret, "env") != 0)
			return;
	}
}

/* Whether another interpreter than Python runs it. */
static bool shebang_is_other_language(const char *interpreter)
{
	static const char *const others[] = { "sh", "bash", "dash", "zsh", "ksh", "fish", "perl", "ruby", "node", "php", "lua", "Rscript", "awk", "gawk", "tclsh", "make", "deno", "bun" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strcmp(others[i], interpreter) == 0)
			return true;
	return false;
}

int foreign_refuse_other_language(const char *path, const struct bytes *text, struct err *e)
{
	char interpreter[64];

	if (text->len >= 4 && memcmp(text->data, "\177ELF", 4) == 0)
		return err_set(e, ERR_BAD_SPEC, "%.120s: is a compiled program, and brig run runs Python; type:  brig exec --put %.120s -- ./%.60s", path, path, path_last_part(path));
	if (text->len < 3 || memcmp(text->data, "#!", 2) != 0 || has_extension(path, ".py"))
		return 0;
	find_interpreter(text->data, interpreter, sizeof interpreter);
	if (!shebang_is_other_language(interpreter))
		return 0;
	if (strcmp(path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin: is a program for %s, and brig run runs Python; type:  brig exec -- %s", interpreter, interpreter);
	return err_set(e, ERR_BAD_SPEC, "%.120s: is a program for %s, and brig run runs Python; type:  brig exec --put %.120s -- %s %.60s", path, interpreter, path, interpreter, path_last_part(path));
}

/* --- notebooks --- */

/* Each cell is compiled alone, so that errors name it, and what an earlier one did has happened. Its last expression is its value. */
static const char before[] =
	"def __cells(cells):\n"
	"    import ast, linecache, sys\n"
	"    scope, value = sys.modules['__main__'].__dict__, None\n"
	"    for number, text in cells:\n"
	"        name, lines = f'cell {number}', text.split('\\n')\n"
	"        for at, line in enumerate(lines):\n"
	"            word = line.strip()\n"
	"            if word.split(' ')[0] in ('%matplotlib', '%config', '%load_ext', '%autoreload'):\n"
	"                lines[at] = line[:len(line) - len(line.lstrip())] + 'pass'\n"
	"        linecache.cache[name] = len(text), None, [line + '\\n' for line in text.split('\\n')], name\n"
	"        try:\n"
	"            tree = ast.parse('\\n'.join(lines), name)\n"
	"        except SyntaxError as error:\n"
	"            word = (error.text or '').strip()\n"
	"            if word[:1] in ('!', '%') or word[-1:] == '?':\n"
	"                raise SystemExit(f'{name}, line {error.lineno}: {word[:80]}: is a command of Jupyter, and brig runs Python alone') from None\n"
	"            raise\n"
	"        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None\n"
	"        exec(compile(tree, name, 'exec'), scope)\n"
	"        value = None if last is None else eval(compile(ast.Expression(last.value), name, 'eval'), scope)\n"
	"        if value is not None and not text.rstrip().endswith(';'):\n"
	"            print(repr(value))\n"
	"    return value\n"
	"__cells(";

/* "source" is a text or a list of its lines. */
static json_t *get_cell_source(const json_t *cell)
{
	const json_t *source = json_object_get(cell, "source");
	json_t       *whole;
	char         *text = NULL;
	size_t        n    = 0;
	FILE         *to;

	if (json_is_string(source))
		return json_incref((json_t *)source);
	if (!json_is_array(source) || !(to = open_memstream(&text, &n)))
		return NULL;
	for (size_t i = 0; i < json_array_size(source); i++) {
		const json_t *line = json_array_get(source, i);

		fwrite(json_string_value(line) ? json_string_value(line) : "", 1, json_string_length(line), to);
	}
	fclose(to);
	whole = json_stringn(text, n);
	free(text);
	return whole;
}

/* [[2, "print(1)"], ...]: the number of each cell, as a person counts them, and its text. NULL: one has none. */
static json_t *extract_notebook_code(const json_t *cells)
{
	json_t *list = json_array();

	for (size_t i = 0; i < json_array_size(cells); i++) {
		const json_t *cell = json_array_get(cells, i);
		const char   *type = json_string_value(json_object_get(cell, "cell_type"));
		json_t       *text = type && strcmp(type, "code") == 0 ? get_cell_source(cell) : json_null();

		if (!text) {
			json_decref(list);
			return NULL;
		}
		if (json_is_string(text))
			json_array_append_new(list, json_pack("[IO]", (json_int_t)i + 1, text));
		json_decref(text);
	}
	return list;
}

static const char *notebook_language(const json_t *notebook)
{
	const json_t *about = json_object_get(notebook, "metadata");
	const char   *named = json_string_value(json_object_get(json_object_get(about, "kernelspec"), "language"));

	return named ? named : "python";
}

static int bytes_replace(struct bytes *text, const json_t *code, struct err *e)
{
	char *cells = json_dumps(code, JSON_COMPACT), *whole = NULL; /* a text of JSON, not ASCII alone, is one of Python, too */
	int   n     = cells ? asprintf(&whole, "%s%s)\n", before, cells) : -1;

	free(cells);
	if (n < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	bytes_done(text);
	*text = (struct bytes){ whole, (size_t)n };
	return 0;
}

/* 1: *cells are those of the notebook; 0: it is no notebook. */
static int read_cells(const char *path, const struct bytes *text, json_t **cells, struct err *e)
{
	bool         named    = has_extension(path, ".ipynb");
	scoped_json *notebook = named || (text->len && text->data[0] == '{') ? json_loadb(text->data, text->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *list    = json_object_get(notebook, "cells");

	if (!named && !(json_object_get(notebook, "nbformat") && list))
		return 0;
	if (!json_is_array(list) || !(*cells = extract_notebook_code(list)))
		return err_set(e, ERR_BAD_SPEC, "%.200s: is no notebook of Jupyter, format 4: it has no list of cells", path);
	if (strcasecmp(notebook_language(notebook), "python") != 0)
		return err_set(e, ERR_BAD_SPEC, "%.200s: is a notebook in %.40s, and brig run runs Python", path, notebook_language(notebook));
	return 1;
}

int foreign_extract_notebook(const char *path, struct bytes *text, struct err *e)
{
	scoped_json *cells = NULL;
	int          r     = read_cells(path, text, &cells, e);

	return r == 1 ? bytes_replace(text, cells, e) : r;
}

/* --- to check it --- */

static const char *cell_text(const json_t *cells, size_t i)
{
	return json_string_value(json_array_get(json_array_get(cells, i), 1));
}

int foreign_join_notebook(const char *path, struct bytes *text, json_t **cells, struct err *e)
{
	char  *whole = NULL;
	size_t n     = 0;
	FILE  *to;
	int    r     = read_cells(path, text, cells, e);

	if (r != 1)
		return r;
	if (!(to = open_memstream(&whole, &n)))
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < json_array_size(*cells); i++)
		fprintf(to, "%s\n", cell_text(*cells, i));
	if (fclose(to) != 0) {
		free(whole);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	bytes_done(text);
	*text = (struct bytes){ whole, n };
	return 0;
}

json_int_t foreign_line_to_cell(const json_t *cells, json_int_t *line)
{
	for (size_t i = 0; i < json_array_size(cells); i++) {
		json_int_t lines = 1;

		for (const char *at = cell_text(cells, i); (at = strchr(at, '\n')); at++)
			lines++;
		if (*line <= lines)
			return json_integer_value(json_array_get(json_array_get(cells, i), 0));
		*line -= lines;
	}
	return 0;
}
