#define _GNU_SOURCE
#include "program.h"

#include "base64.h"
#include "text.h"
#include "transfer.h"
#include "workspace_file.h"

#include <stdlib.h>
#include <string.h>

enum program_member {
	MEMBER_CODE, MEMBER_LANGUAGE, MEMBER_INPUT, MEMBER_ARGS, MEMBER_FILES, MEMBER_FETCH,
	MEMBER_WALL, MEMBER_CPU, MEMBER_MEMORY, MEMBER_PIDS,
};

struct program_key {
	const char *key;  /* NULL: the interface has no such field */
	double      unit; /* of a number: milliseconds, or bytes */
};

/* clang-format off */
#define WALL_OF_JUDGE0   "wall_time_limit", 1000
#define MEMORY_OF_FUSION "memory_limit_MB", MIB
#define MEMORY_OF_PISTON "run_memory_limit", 1
#define CPU_OF_JUDGE0    "cpu_time_limit", 1000
#define MEMORY_OF_JUDGE0 "memory_limit", KIB
#define PIDS_OF_JUDGE0   "max_processes_and_or_threads", 1
/* The fields in. Those of SandboxFusion, NeMo-Skills, Piston, Judge0: */
static const struct program_field {
	enum program_member member;
	struct program_key  of[INTERFACE_COUNT];
} program_fields[] = {
	{ MEMBER_CODE,     { { "code" },            { "generated_code" }, { NULL },               { "source_code" } } },
	{ MEMBER_LANGUAGE, { { "language" },        { "language" },       { "language" },         { NULL } } },
	{ MEMBER_INPUT,    { { "stdin" },           { "std_input" },      { "stdin" },            { "stdin" } } },
	{ MEMBER_ARGS,     { { NULL },              { NULL },             { "args" },             { NULL } } },
	{ MEMBER_FILES,    { { "files" },           { NULL },             { NULL },               { NULL } } },
	{ MEMBER_FETCH,    { { "fetch_files" },     { NULL },             { NULL },               { NULL } } },
	{ MEMBER_WALL,     { { "run_timeout", 1000 }, { "timeout", 1000 }, { "run_timeout", 1 }, { WALL_OF_JUDGE0 } } },
	{ MEMBER_CPU,      { { NULL },            { NULL },               { "run_cpu_time", 1 }, { CPU_OF_JUDGE0 } } },
	{ MEMBER_MEMORY,   { { MEMORY_OF_FUSION }, { NULL }, { MEMORY_OF_PISTON }, { MEMORY_OF_JUDGE0 } } },
	{ MEMBER_PIDS,     { { NULL },            { NULL },               { NULL },             { PIDS_OF_JUDGE0 } } },
};
/* clang-format on */

void program_done(struct program *p)
{
	free(p->code);
	free(p->input);
	free(p->puts);
	json_decref(p->args);
	json_decref(p->files);
	json_decref(p->fetch);
	*p = (struct program){ 0 };
}

/* --- texts --- */

static int program_copy_text(char **ret, size_t *ret_len, const char *bytes, size_t len, struct err *e)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return err_set(e, ERR_LIMIT, "out of memory");
	memcpy(copy, bytes, len);
	copy[len] = 0;
	free(*ret);
	*ret     = copy;
	*ret_len = len;
	return 0;
}

int program_set_code(struct program *p, const char *bytes, size_t len, struct err *e)
{
	if (memchr(bytes, 0, len))
		return err_set(e, ERR_BAD_SPEC, "the program has a NUL character");
	return program_copy_text(&p->code, &p->code_len, bytes, len, e);
}

int program_set_input(struct program *p, const char *bytes, size_t len, struct err *e)
{
	return program_copy_text(&p->input, &p->input_len, bytes, len, e);
}

/* --- files --- */

static const char *find_file_fault(const struct program *p, const char *path)
{
	if (strcmp(path, p->language->file) == 0 || strcmp(path, "main.py") == 0)
		return "is the program's own name";
	return json_object_get(p->files, path) ? "comes twice" : NULL;
}

/* Entries are appended to those before: the memory moves with the program. */
static int program_add_entry(struct program *p, const char *path, const char *bytes, size_t len, struct err *e)
{
	char  *entry = NULL, *grown = NULL;
	size_t n     = 0;
	FILE  *out   = open_memstream(&entry, &n);

	if (out) {
		transfer_add_entry(out, FILE_REGULAR, path, bytes, len);
		if (fclose(out) == 0)
			grown = realloc(p->puts, p->puts_len + n);
	}
	if (grown) {
		memcpy(grown + p->puts_len, entry, n);
		p->puts      = grown;
		p->puts_len += n;
	}
	free(entry);
	return grown ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

int program_add_file(struct program *p, const char *what, const char *path, const char *bytes, size_t len,
		     struct err *e)
{
	const char *below = workspace_file_parse_path(path, e), *fault;

	if (!below)
		return err_wrap(e, "%s", what);
	if ((fault = find_file_fault(p, below)))
		return err_set(e, ERR_BAD_SPEC, "%s: \"%.100s\" %s", what, below, fault);
	if (!p->files)
		p->files = json_object();
	p->has_modules |= text_ends_in(below, ".py");
	if (json_object_set_new(p->files, below, json_true()) < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: a path is not UTF-8", what);
	return program_add_entry(p, below, bytes, len, e);
}

static int program_read_files(struct program *p, const char *key, const json_t *value, struct err *e)
{
	const char *path;
	json_t     *text;

	if (!json_is_object(value))
		return err_set(e, ERR_BAD_SPEC, "%s: expected an object, {\"PATH\": \"BASE64\"}", key);
	json_object_foreach((json_t *)value, path, text)
	{
		const char *base64 = json_string_value(text);
		size_t      len;
		char       *bytes = base64 ? base64_decode(base64, json_string_length(text), &len) : NULL;
		int         r;

		if (!bytes && json_is_null(text))
			continue;
		if (!bytes)
			return err_set(e, ERR_BAD_SPEC, "%s: %.100s: expected base64, with its padding", key, path);
		r = program_add_file(p, key, path, bytes, len, e);
		free(bytes);
		if (r < 0)
			return -1;
	}
	return 0;
}

static int program_read_fetch(struct program *p, const char *key, const json_t *value, struct err *e)
{
	size_t  i;
	json_t *one;

	if (!json_is_array(value) || json_array_size(value) > FILE_GETS_MAX)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a list of at most %d paths", key, FILE_GETS_MAX);
	json_array_foreach(value, i, one) {
		const char *path = json_string_value(one), *below;

		if (!path || strlen(path) != json_string_length(one))
			return err_set(e, ERR_BAD_SPEC, "%s: expected a list of paths", key);
		if (!(below = workspace_file_parse_path(path, e)))
			return err_wrap(e, "%s", key);
		if (!p->fetch)
			p->fetch = json_array();
		if (json_array_append_new(p->fetch, json_string(below)) < 0)
			return err_set(e, ERR_LIMIT, "out of memory");
	}
	return 0;
}

bool program_is_exec(const struct program *p)
{
	return !p->language->is_native || p->has_modules;
}

char *program_make_transfer(struct program *p, bool in_session, size_t *len)
{
	char   *made = NULL;
	FILE   *out  = open_memstream(&made, len);
	size_t  i;
	json_t *path;

	if (!out)
		return NULL;
	if (p->puts_len)
		fwrite(p->puts, 1, p->puts_len, out);
	if (!in_session && program_is_exec(p))
		transfer_add_entry(out, FILE_REGULAR, p->language->file, p->code, p->code_len);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	json_array_foreach(p->fetch, i, path) {
		char *pattern = workspace_file_exact_pattern(json_string_value(path));

		if (pattern) /* a longer one could match no file */
			transfer_add_entry(out, FILE_GET, pattern, NULL, 0);
		free(pattern);
	}
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	if (fclose(out) == 0)
		return made;
	free(made);
	return NULL;
}

/* --- by the rows --- */

int program_read_number(const json_t *value, const char *key, double unit, uint64_t *ret, struct err *e)
{
	double x = json_number_value(value) * unit;

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_number(value) || x != x)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a number", key);
	if (x > 0) /* above it the ceiling of the profile holds, as of any large one */
		*ret = x < 1 ? 1 : x > 1e15 ? (uint64_t)1e15 : (uint64_t)x;
	return 0;
}

static int program_read_args(struct program *p, const char *key, const json_t *value, struct err *e)
{
	size_t  i;
	json_t *one;

	if (!json_is_array(value))
		return err_set(e, ERR_BAD_SPEC, "%s: expected a list of texts", key);
	json_array_foreach(value, i, one)
		if (!json_is_string(one) || strlen(json_string_value(one)) != json_string_length(one))
			return err_set(e, ERR_BAD_SPEC, "%s: expected a list of texts without NUL", key);
	p->args = json_copy((json_t *)value);
	return 0;
}

static int program_read_language(struct program *p, const char *key, const json_t *value, struct err *e)
{
	const char *name = json_string_value(value);

	p->language = name ? language_find(name) : NULL;
	if (p->language)
		return 0;
	return err_set(e, ERR_BAD_SPEC, "%s: \"%.40s\" is not served here; there are python and bash", key,
		       name ? name : "");
}

static int program_read_member(struct program *p, enum program_member member, const struct program_key *k,
			       const json_t *value, struct err *e)
{
	switch (member) {
	case MEMBER_CODE:
	case MEMBER_INPUT:
		if (!json_is_string(value))
			return err_set(e, ERR_BAD_SPEC, "%s: expected a text", k->key);
		return (member == MEMBER_CODE ? program_set_code : program_set_input)(
			       p, json_string_value(value), json_string_length(value), e) < 0 ?
			       err_wrap(e, "%s", k->key) :
			       0;
	case MEMBER_LANGUAGE:
		return program_read_language(p, k->key, value, e);
	case MEMBER_ARGS:
		return program_read_args(p, k->key, value, e);
	case MEMBER_FILES:
		return program_read_files(p, k->key, value, e);
	case MEMBER_FETCH:
		return program_read_fetch(p, k->key, value, e);
	case MEMBER_WALL:
		return program_read_number(value, k->key, k->unit, &p->wall_ms, e);
	case MEMBER_CPU:
		return program_read_number(value, k->key, k->unit, &p->cpu_ms, e);
	case MEMBER_MEMORY:
		return program_read_number(value, k->key, k->unit, &p->memory_bytes, e);
	case MEMBER_PIDS:
		return program_read_number(value, k->key, k->unit, &p->pids, e);
	}
	return 0;
}

int program_read(struct program *ret, enum interface by, const json_t *body, struct err *e)
{
	const char *code_key = NULL;

	ret->language = &languages[0];
	for (size_t i = 0; i < ARRAY_LEN(program_fields); i++) {
		const struct program_key *k     = &program_fields[i].of[by];
		const json_t             *value = k->key ? json_object_get(body, k->key) : NULL;

		if (program_fields[i].member == MEMBER_CODE)
			code_key = k->key;
		if (value && !json_is_null(value) &&
		    program_read_member(ret, program_fields[i].member, k, value, e) < 0)
			return -1;
	}
	if (code_key && !ret->code)
		return err_set(e, ERR_BAD_SPEC, "%s: missing", code_key);
	return 0;
}
