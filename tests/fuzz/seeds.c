/*
 * seeds.c - what fuzzers start from, made from the same rows as the parsers and from the files that are shipped.
 *
 *   fuzz_seeds SOURCE OUT    OUT/TARGET/seed-NNN and OUT/TARGET.dict for every target
 *
 * A new row is a new seed and a new word of the dictionary by itself.
 */
#define _GNU_SOURCE
#include "audit_filter.h"
#include "call_number.h"
#include "client_protocol.h"
#include "config.h"
#include "file.h"
#include "file_stream.h"
#include "filter.h"
#include "fuzz.h"
#include "generate.h"
#include "cg_path.h"
#include "id_range.h"
#include "manifest.h"
#include "method.h"
#include "policy_value.h"
#include "policy_words.h"
#include "profile.h"
#include "program_env.h"
#include "program_report.h"
#include "recipe.h"
#include "request.h"
#include "settings.h"
#include "shape.h"
#include "tool.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

struct seeds {
	const char *source, *out;
	char        target[32];
	unsigned    n;
	FILE       *dict;
};

static FILE *create(const char *path)
{
	FILE *out = fopen(path, "we");

	if (!out) {
		fprintf(stderr, "fuzz_seeds: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return out;
}

static void begin(struct seeds *s, const char *target)
{
	char path[4096];

	if (s->dict)
		fclose(s->dict);
	snprintf(s->target, sizeof s->target, "%s", target);
	snprintf(path, sizeof path, "%s/%s", s->out, target);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		perror(path);
	snprintf(path, sizeof path, "%s/%s.dict", s->out, target);
	s->dict = create(path);
	s->n    = 0;
}

static void put(struct seeds *s, const void *bytes, size_t len)
{
	char  path[4096];
	FILE *out;

	snprintf(path, sizeof path, "%s/%s/seed-%03u", s->out, s->target, s->n++);
	out = create(path);
	fwrite(bytes, 1, len, out);
	fclose(out);
}

static void printf_like(2, 3) put_text(struct seeds *s, const char *fmt, ...)
{
	char   *text;
	va_list ap;
	int     n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	must(n >= 0);
	put(s, text, (size_t)n);
	free(text);
}

static void word(struct seeds *s, const char *text)
{
	fputc('"', s->dict);
	for (; *text; text++)
		fprintf(s->dict, *text < 0x20 || *text == '"' || *text == '\\' || *text == 0x7f ? "\\x%02x" : "%c", (unsigned char)*text);
	fputs("\"\n", s->dict);
}

/* head, `row` as often as it is said, tail: one more than fits. */
static void put_many(struct seeds *s, const char *head, const char *row, size_t times, const char *tail)
{
	char  *text = NULL;
	size_t len;
	FILE  *out = open_memstream(&text, &len);

	must(out);
	fputs(head, out);
	for (size_t i = 0; i < times; i++)
		for (const char *p = row; *p; p++)
			if (*p == '%')
				fprintf(out, "%zu", i);
			else
				fputc(*p == '\v' ? 0 : *p, out); /* where the target wants a NUL */
	fputs(tail, out);
	fclose(out);
	put(s, text, len);
	free(text);
}

static void words(struct seeds *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		word(s, list[i]);
}

/* --- shipped files --- */

typedef void file_fn(struct seeds *s, const char *name, const struct bytes *file);

static void each_shipped(struct seeds *s, const char *folder, const char *tail, file_fn *take)
{
	char            path[4096];
	struct dirent **entry = NULL;

	snprintf(path, sizeof path, "%s/%s", s->source, folder);
	int n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		scoped_bytes file = { 0 };
		struct err   e    = { 0 };
		char         name[4096 + 256];

		snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
		if (strlen(name) > strlen(tail) && strcmp(name + strlen(name) - strlen(tail), tail) == 0 && file_read(AT_FDCWD, name, MIB, &file, &e) == 0)
			take(s, entry[i]->d_name, &file);
		free(entry[i]);
	}
	free(entry);
}

static void put_file(struct seeds *s, const char *name, const struct bytes *file)
{
	(void)name;
	put(s, file->data, file->len);
}

/* --- profiles, recipes: a seed for every row and each of its ends --- */

/* What stands around a row. */
struct frame {
	const char *head, *tail;
};

static void put_row(struct seeds *s, struct frame in, const char *name, const char *value)
{
	put_text(s, "%s\"%s\":%s%s", in.head, name, value, in.tail);
}

static void put_number(struct seeds *s, struct frame in, const struct field *f, uint64_t value)
{
	char text[32], whole[40];

	field_print_value(f, value, text, sizeof text);
	snprintf(whole, sizeof whole, f->type == FIELD_SIZE ? "\"%s\"" : "%s", text);
	put_row(s, in, f->name, whole);
}

static void put_choices(struct seeds *s, struct frame in, const struct field *f)
{
	char text[80];

	for (unsigned i = 0; f->choices[i]; i++) {
		snprintf(text, sizeof text, "\"%s\"", f->choices[i]);
		put_row(s, in, f->name, text);
		word(s, text);
	}
}

static bool is_list(const struct field *f)
{
	return f->type == FIELD_LIST || f->type == FIELD_WORDS || f->type == FIELD_MIXED;
}

/* One byte, or one text of a list, more than the row holds. */
static void put_too_much(struct seeds *s, struct frame in, const struct field *f)
{
	char head[600], tail[80];
	bool list = is_list(f);

	snprintf(head, sizeof head, "%s\"%s\":%s", in.head, f->name, list ? "[\"aa\"" : "\"");
	snprintf(tail, sizeof tail, "%s%s", list ? "]" : "\"", in.tail);
	put_many(s, head, list ? ",\"aa\"" : "a", f->type == FIELD_NAME ? 64 : f->max + !list, tail);
}

static void put_rows(struct seeds *s, struct frame in, const struct field *table);

static void put_table(struct seeds *s, struct frame in, const struct field *f)
{
	char head[512], tail[64];
	bool rows = f->type == FIELD_ROWS || f->type == FIELD_MIXED;

	snprintf(head, sizeof head, rows ? "%s\"%s\":[{" : "%s\"%s\":{", in.head, f->name);
	snprintf(tail, sizeof tail, rows ? "}]%s" : "}%s", in.tail);
	put_rows(s, (struct frame){ head, tail }, f->table);
}

/* An object whose names are the file's own. */
static void put_map(struct seeds *s, struct frame in, const struct field *f)
{
	char head[512], tail[64];

	snprintf(head, sizeof head, "%s\"%s\":{\"A\":{", in.head, f->name);
	snprintf(tail, sizeof tail, "}}%s", in.tail);
	put_rows(s, (struct frame){ head, tail }, f->table);
}

static void put_rows(struct seeds *s, struct frame in, const struct field *table)
{
	char name[80];

	for (const struct field *f = table; f->name; f++) {
		snprintf(name, sizeof name, "\"%s\"", f->name);
		word(s, name);
		if (f->type <= FIELD_MILLI) {
			put_number(s, in, f, f->min);
			put_number(s, in, f, f->preset);
			put_number(s, in, f, f->max + 1);
		} else if (f->type == FIELD_BOOL) {
			put_row(s, in, f->name, f->preset ? "false" : "true");
		} else if (f->type == FIELD_CHOICE) {
			put_choices(s, in, f);
		} else if (f->type == FIELD_TABLE || f->type == FIELD_ROWS) {
			put_table(s, in, f);
		} else if (f->type == FIELD_OBJECT) {
			put_row(s, in, f->name, "{\"pids\":1}");
			if (f->table)
				put_map(s, in, f);
		} else if (f->type == FIELD_MIXED) {
			put_row(s, in, f->name, "[\"a.example\",\"https://*.a.example:443/b\"]");
			put_table(s, in, f);
			put_too_much(s, in, f);
		} else {
			put_row(s, in, f->name, is_list(f) ? "[\"aa\",\"/b\"]" : "\"a\"");
			put_too_much(s, in, f);
		}
	}
}

static const char *const json_words[] = { "{", "}", "[", "]", ",", ":", "\"", "true", "false", "null", "0.5", "1e3", "-1", "\\u0000", "\\u00e9" };

static void make_profile(struct seeds *s)
{
	begin(s, "profile");
	words(s, json_words, ARRAY_LEN(json_words));
	put_rows(s, (struct frame){ "{\"rootfs\":\"r\",\"policy\":\"p\",", "}" }, profile_fields);
	each_shipped(s, "profiles", ".json", put_file);
}

static void make_recipe(struct seeds *s)
{
	static const char *const tokens[] = { " # ", " -> ", " = ", "/", "..", "*" };

	begin(s, "recipe");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, tokens, ARRAY_LEN(tokens));
	put_many(s, "{\"suite\":\"s\",\"packages\":[\"dash\"],\"dirs\":[\"/", "a", sizeof(struct recipe_row), "\"]}");
	put_rows(s, (struct frame){ "{\"suite\":\"s\",\"packages\":[\"dash # why\"],", "}" }, recipe_fields);
	for (const struct generator *g = generators; g->name; g++) {
		word(s, g->name);
		put_text(s, "{\"suite\":\"s\",\"packages\":[\"dash\"],\"generate\":[\"/a = %s # why\"]}", g->name);
	}
	each_shipped(s, "recipes", ".json", put_file);
	put_text(s, "{\"extends\":\"base\",\"packages\":[\"bash\"],\"keep\":[\"/a*\"]}%c"
		    "{\"suite\":\"s\",\"packages\":[\"dash\"],\"prune\":[\"/a* # why\",\"/b\"]}", 0);
}

/* The first byte is the number of descriptors: '@' none, 'A' one. */
static void make_request(struct seeds *s)
{
	char head[80];

	begin(s, "request");
	words(s, json_words, ARRAY_LEN(json_words));
	for (int i = 0; i < REQUEST_COUNT; i++) {
		snprintf(head, sizeof head, "%c{\"op\":\"%s\",", i == REQUEST_run ? 'A' : '@', request_name((enum request_kind)i));
		word(s, request_name((enum request_kind)i));
		put_rows(s, (struct frame){ head, i == REQUEST_exec ? ",\"argv\":[\"a\"]}" : "}" }, request_fields((enum request_kind)i));
	}
	for (const struct field *f = limits_fields; f->name; f++) {
		put_number(s, (struct frame){ "A{\"op\":\"run\",\"limits\":{", "}}" }, f, f->max + 1);
		word(s, f->name);
	}
	put_text(s, "C{\"op\":\"run\",\"ro\":[\"a\",\"b\"],\"env\":[\"A=1\"],\"stdin\":true,\"tag\":1}");
	put_text(s, "@{\"op\":\"reboot\",\"tag\":9007199254740991}");
}

/* One of each, made by our own printers. */
static void put_answer(struct seeds *s, json_t *answer, char fds)
{
	char *text = json_dumps(answer, JSON_COMPACT);

	must(text);
	put_text(s, "%c%s", fds, text);
	free(text);
	json_decref(answer);
}

static void put_shape_words(struct seeds *s, const struct shape *table)
{
	for (; table->name; table++) {
		word(s, table->name);
		if (table->table)
			put_shape_words(s, table->table);
	}
}

static void put_text_answer(struct seeds *s, struct json_text *t, char fds)
{
	json_text_finish(t);
	put_answer(s, json_loads(t->to, 0, NULL), fds);
}

static void put_started(struct seeds *s)
{
	char             text[512];
	struct json_text t = json_text_in(text, sizeof text);

	protocol_put_started(&t, "r", 1, true, true, true, 1);
	put_text_answer(s, &t, 'D');
}

static void put_ended(struct seeds *s, const struct record *record, const char *exec_error, const char *lost, const char *left)
{
	char             inner[RECORD_TEXT_MAX] = "{}", text[2 * RECORD_TEXT_MAX];
	struct json_text r = json_text_in(inner, sizeof inner), t = json_text_in(text, sizeof text);

	if (record)
		record_put_json(&r, record);
	else
		json_text_raw(&r, "{}");
	json_text_finish(&r);
	protocol_put_ended(&t, "r", 1, inner, exec_error, lost, left);
	put_text_answer(s, &t, '@');
}

static void make_answer(struct seeds *s)
{
	struct denial d;
	struct run_result result = RUN_RESULT_NONE;
	struct record record = { .result = &result };

	begin(s, "answer");
	words(s, json_words, ARRAY_LEN(json_words));
	for (int i = 0; i < REQUEST_COUNT; i++) {
		put_answer(s, protocol_reply((enum request_kind)i, 1), '@');
		if (reply_shape((enum request_kind)i))
			put_shape_words(s, reply_shape((enum request_kind)i));
	}
	for (int i = 0; i < EVENT_COUNT; i++)
		put_shape_words(s, event_shape((enum event_kind)i));
	for (int i = 0; i < DENIAL_COUNT; i++) {
		word(s, denial_code_name((enum denial_code)i));
		deny(&d, (enum denial_code)i, "f", "m");
		put_answer(s, protocol_error(&d, 1), '@');
	}
	put_started(s);
	put_answer(s, protocol_limit_event("r", 1, "pids", 64, true), '@');
	result.hit[result.hits++] = (struct run_hit){ LIMIT_pids, 1, 2, 3 };
	for (int i = 0; i < EXIT_REASONS; i++) {
		result.reason      = (enum exit_reason)i;
		result.wait_status = i;
		put_ended(s, &record, NULL, "[]", NULL);
		word(s, exit_reason_name((enum exit_reason)i));
	}
	put_ended(s, NULL, "ENOENT", "[{\"layers\":[\"a\"],\"why\":\"b\"}]", "l");
}

static void make_program_report(struct seeds *s)
{
	begin(s, "program_report");
	words(s, json_words, ARRAY_LEN(json_words));
	put_shape_words(s, program_report_shape(PROGRAM_REPORT_run));
	put_shape_words(s, program_report_shape(PROGRAM_REPORT_check));
	put_text(s, "0{\"result\":{\"a\":[1,1.5,true,null]},\"result_repr\":null,\"error\":null,\"variables\":[\"x\"],\"exit_code\":null,"
		    "\"security_event\":null,\"security_warnings\":[]}");
	put_text(s, "0{\"result\":null,\"result_repr\":\"a\\u0000b\",\"error\":{\"type\":\"T\",\"message\":\"m\",\"traceback\":\"t\",\"line\":1,"
		    "\"offset\":2,\"text\":\"x\"},\"variables\":[],\"exit_code\":-1,\"security_event\":\"blocked_import\",\"security_warnings\":[\"w\"]}");
	put_shape_words(s, program_report_bundle_shape());
	put_text(s, "0{\"result\":1,\"result_repr\":null,\"error\":null,\"variables\":[],\"exit_code\":0,\"security_event\":null,\"security_warnings\":[],"
		    "\"figures\":1,\"displays\":[{\"text/plain\":\"x\",\"image/png\":\"iVBORw0KGgo=\"},{\"application/json\":{\"result\":[1]}}],"
		    "\"bundle\":{\"text/html\":\"<b>\",\"application/vnd.plotly.v1+json\":{\"data\":[]}},\"left_out\":[\"l\"]}");
	put_text(s, "1{\"valid\":false,\"message\":\"m\",\"errors\":[{\"line\":1,\"offset\":0,\"message\":\"m\"}],\"warnings\":[],\"syntax_error\":null,"
		    "\"line_count\":1,\"character_count\":2,\"estimated_complexity\":\"low\",\"imports\":[\"os.path\"],\"recommendations\":[\"r\"]}");
	put_text(s, "1{\"valid\":true,\"message\":\"\",\"errors\":[],\"warnings\":[{\"line\":null,\"offset\":null,\"message\":\"\"}],\"syntax_error\":"
		    "{\"message\":\"m\",\"line\":1,\"offset\":1,\"text\":\"(\"},\"line_count\":1,\"character_count\":1,\"estimated_complexity\":\"high\","
		    "\"imports\":[],\"recommendations\":[]}");
}

static void make_config(struct seeds *s)
{
	begin(s, "config");
	words(s, json_words, ARRAY_LEN(json_words));
	put_rows(s, (struct frame){ "{", "}" }, config_fields);
	put_rows(s, (struct frame){ "{\"access\":[{\"uid\":1,", "}]}" }, config_access_fields);
	put_text(s, "{\"ids\":{\"base\":1879048192,\"count\":65536},\"audit\":{\"file\":\"/a\",\"max_bytes\":\"64M\",\"keep\":4},"
		    "\"access\":[{\"group\":\"brig\",\"profiles\":[\"basic\"]},{\"user\":\"a\"}]}");
}

/* --- policies: every value in a condition of its call, every word of the shipped ones --- */

static void put_words(struct seeds *s, const char *name, const struct bytes *file)
{
	struct policy_reader r = policy_reader_init(name, file->data, file->len);
	struct policy_words *w = malloc(sizeof *w);
	struct err           e = { 0 };

	must(w);
	while (policy_words_next(&r, w, &e) > 0)
		for (size_t i = 0; i < w->n; i++)
			word(s, w->word[i].text);
	free(w);
}

/* "include groups" is "include a" here, and the text of groups.policy is a. */
static void put_policy(struct seeds *s, const char *name, const struct bytes *file)
{
	scoped_bytes groups = { 0 };
	struct err   e      = { 0 };
	char         path[4096], *include = strstr(file->data, "include groups");
	int          before = include ? (int)(include - file->data) : (int)file->len;

	(void)name;
	snprintf(path, sizeof path, "%s/profiles/groups.policy", s->source);
	must(file_read(AT_FDCWD, path, MIB, &groups, &e) == 0);
	put_text(s, "%.*s%s%s%c%s%c%c%s", before, file->data, include ? "include a" : "", include ? include + strlen("include groups") : "", 0,
		 groups.data, 0, 0, "deny read\n");
}

static void put_value_row(struct seeds *s, const char *call, int arg, const char *name)
{
	word(s, name);
	put_text(s, "allow %s if arg%d in %s else errno EINVAL\n", call, arg < 0 ? 1 : arg, name);
}

static void put_errnos(struct seeds *s)
{
	for (int i = 1; i < 134; i++)
		if (policy_errno_number(policy_errno_name(i)) == i)
			word(s, policy_errno_name(i));
}

/* As many conditions as fit, each as long as it may be: more instructions than a filter holds. */
static void put_longest(struct seeds *s)
{
	char   row[4096];
	size_t n = (size_t)snprintf(row, sizeof row, "allow read if");

	for (unsigned arg = 0; arg < POLICY_CLAUSE_TESTS; arg++) {
		n += (size_t)snprintf(row + n, sizeof row - n, "%s arg%u in", arg ? " and" : "", arg);
		for (unsigned i = 0; i < POLICY_TEST_VALUES; i++)
			n += (size_t)snprintf(row + n, sizeof row - n, " %u", i);
	}
	snprintf(row + n, sizeof row - n, "\n");
	put_many(s, "", row, POLICY_CLAUSES, "");
}

static void make_policy(struct seeds *s, const char *target)
{
	begin(s, target);
#define VALUE(call, arg, name)           put_value_row(s, #call, arg, #name);
#define VALUE_IS(call, arg, name, value) put_value_row(s, #call, arg, #name);
#define OPTION(arg, name)                put_value_row(s, "setsockopt", arg, #name);
#define SENT(name)                       put_value_row(s, "sendto", 3, #name);
#define RECEIVED(name)                   put_value_row(s, "recvfrom", 3, #name);
#define RESOURCE(name)                   put_value_row(s, "setrlimit", 0, #name);
#include "policy_value.def"
#undef VALUE
#undef VALUE_IS
#undef OPTION
#undef SENT
#undef RECEIVED
#undef RESOURCE
	put_errnos(s);
	put_many(s, "", "allow read if arg0 in % else errno EINVAL\n", POLICY_CLAUSES + 1, "");
	put_longest(s);
	put_many(s, "allow read if arg0 in", " 1%", POLICY_TEST_VALUES + 1, "");
	put_many(s, "allow read if arg0 in 1", " and arg1 in 1", POLICY_CLAUSE_TESTS, "");
	put_many(s, "allow", " read", POLICY_WORDS_MAX, "");
	put_many(s, "", "group g%: read\n", 65, "");
	put_many(s, "", "include x%\n", POLICY_SOURCES_MAX, "");
	put_many(s, "#", "a", POLICY_SOURCE_MAX, "");
	put_many(s, "allow ", "a", POLICY_WORD_MAX + 1, "");
	each_shipped(s, "profiles", ".policy", put_words);
	each_shipped(s, "profiles", ".policy", put_policy);
}

/* --- what the tables do not know: the smallest sound file, made by our own printers --- */

static void make_manifest(struct seeds *s)
{
	char  sum[3][DIGEST_HEX + 1] = { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "" };
	struct tree_entry      entry[] = { { .path = (char *)"/a", .type = TREE_DIR, .mode = 0755 },
		                           { .path = (char *)"/a/b", .type = TREE_FILE, .mode = 04644, .size = 0 },
		                           { .path = (char *)"/c", .type = TREE_LINK, .target = (char *)"a/b" } };
	struct manifest        m       = { .tree = { entry, ARRAY_LEN(entry), 0 }, .sha256 = sum };
	json_t                *packages = json_array();
	struct manifest_origin from     = { "fuzz", "", "amd64", packages };
	const char            *key;
	json_t                *value;

	begin(s, "manifest");
	words(s, json_words, ARRAY_LEN(json_words));
	for (m.tree.n = 0; m.tree.n <= ARRAY_LEN(entry); m.tree.n++) {
		json_t *json = manifest_to_json(&m, &from);
		char   *text = json_dumps(json, JSON_COMPACT);

		must(text);
		put(s, text, strlen(text));
		json_object_foreach(json, key, value)
			word(s, key);
		json_object_foreach(json_array_get(json_object_get(json, "files"), m.tree.n - 1), key, value)
			word(s, key);
		json_decref(json);
		free(text);
	}
	words(s, manifest_types, TREE_OTHER + 1);
	json_decref(packages);
}

static void make_id_range(struct seeds *s)
{
	char own[64], preset[64];

	begin(s, "id_range");
	snprintf(own, sizeof own, "brig:%d:%d\n", 100000, IDS_PER_CELL);
	snprintf(preset, sizeof preset, "x:%d:%d\n", ID_RANGE_PRESET_BASE, ID_RANGE_PRESET_COUNT);
	word(s, own);
	word(s, preset);
	word(s, "brig:");
	word(s, "4294967295");
	word(s, "18446744073709551615");
	put_text(s, "%s%c%s", own, 0, own);
	put_text(s, "%s%c%s", preset, 0, own);
	put_text(s, "%s%s%c%s", preset, own, 0, own);
	put_text(s, "other:1:65536\n%c%s", 0, preset);
	put_text(s, "other:100000:65536\nanna:165536:65536\n%c1001:165536:65536\n", 0);
	word(s, "anna:");
	word(s, "1001:");
}

static void make_cg_path(struct seeds *s)
{
	static const char *const controllers[] = { "memory", "pids", "cpu", "cpuacct", "blkio", "" };

	begin(s, "cg_path");
	words(s, controllers, ARRAY_LEN(controllers) - 1);
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		put_text(s, "%zu:%s:/a/b\n", i, controllers[i]);
	put_text(s, "4:cpu,cpuacct:/\n0::/user.slice/a/\n");
	put_text(s, "low 0\nmax 3\noom_kill 1\nusage_usec 12345\n");
	put_text(s, "8:0 rbytes=10 wbytes=1\n8:16 rbytes=5 wbytes=2\n");
	word(s, "oom_kill ");
	word(s, "rbytes=");
	word(s, "9223372036854775807");
	word(s, "/../");
}

static void make_mountinfo(struct seeds *s)
{
	static const char *const tokens[] = { " - ", "\\040", "\\134", " rw", " shared:1", " cgroup2", " cgroup", " /", " / " };

	begin(s, "mountinfo");
	words(s, tokens, ARRAY_LEN(tokens));
	put_text(s, "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n%c/a%c/a/b", 0, 0);
	put_text(s, "1 2 0:3 /a\\040b /c\\134d rw - cgroup cgroup rw,memory\n1 2 0:3 / /e rw - ext4 /dev/a rw%c/%c/", 0, 0);
}

static void make_numbers(struct seeds *s)
{
	static const char *const units[] = { "K", "M", "G", "T", "KiB", "B", "ms", "s", "m", "." };
	char                     text[32];

	begin(s, "numbers");
	words(s, units, ARRAY_LEN(units));
	for (const struct field *f = limits_fields; f->name; f++)
		for (int i = 0; i < 4; i++) {
			field_print_text(f, i == 0 ? f->min : i == 1 ? f->preset : i == 2 ? f->max : f->max + 1, text, sizeof text);
			word(s, text);
			put_text(s, "%s", text);
			put_text(s, "%s%s", text, units[s->n % ARRAY_LEN(units)]);
		}
	put_text(s, "%" PRIu64, UINT64_MAX);
	put_text(s, "basic-1.0");
	put_text(s, "\u00e9\u20ac\U0001f600");
}

static void make_options(struct seeds *s)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	char              text[64];

	begin(s, "options");
	request_options(BY_ANY, rows);
	for (const struct option_row *row = rows; row->field.name; row++) {
		bool is_switch = row->field.type == FIELD_BOOL;

		snprintf(text, sizeof text, "--%s", row->field.name);
		word(s, text);
		put_text(s, is_switch ? "%s" : "%s=1", text);
		put_text(s, "%s%c%s%cmain.py", text, 0, is_switch ? "x" : "64", 0);
		if (row->letter)
			put_text(s, "-%c%s", row->letter, is_switch ? "" : "1");
	}
	put_many(s, "", "--env=A%\v", PROTOCOL_ENV_MAX + 1, "");
	put_many(s, "", "--ro=/%\v", PROTOCOL_RO_MAX + 1, "");
	put_text(s, "--%cmain.py", 0);
	put_text(s, "--help");
}

static void make_environment(struct seeds *s)
{
	struct program_env env    = { 0 };
	struct limits      limits = { .cpus = 1000 };
	struct err         e      = { 0 };

	begin(s, "environment");
	must(program_env_build(&env, &limits, NULL, 0, &e) == 0);
	for (size_t i = 0; env.entry[i]; i++) {
		put_text(s, "%s", env.entry[i]);
		put_text(s, "A=1%c%s%cA=2", 0, env.entry[i], 0);
		env.entry[i][strcspn(env.entry[i], "=")] = 0;
		word(s, env.entry[i]);
	}
	program_env_done(&env);
	put_many(s, "", "A%=1\v", PROGRAM_ENV_MAX, "");
	put_many(s, "A=", "aaaaaaaaaaaaaaaa", PROGRAM_ENV_BYTES / 16, "");
	put_text(s, "LD_PRELOAD=x");
	put_text(s, "PYTHONPATH=x");
	word(s, "LD_");
	word(s, "PYTHON");
	word(s, "GLIBC_TUNABLES");
}

/* A line for every name of every setting, in each way to write one. */
static void make_dotenv(struct seeds *s)
{
	static const struct {
		const char *head, *between, *behind;
	} ways[] = { { "", "=", "\n" }, { "export ", " = \"", "\" # of each\n" }, { "", "='", "'\n" }, { "A=\"\n\" \n", "=", "" }, { "", "=\"\\\"", "" } };
	char name[SETTING_NAME_MAX];

	begin(s, "dotenv");
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_texts *row = &setting_texts[id];
		size_t                      way = (size_t)id % ARRAY_LEN(ways);

		setting_spell_name((enum setting_id)id, SPELT_VARIABLE, name, sizeof name);
		word(s, name);
		if (*row->preset)
			word(s, row->preset);
		put_text(s, "%s%s%s%s%s", ways[way].head, name, ways[way].between, *row->preset ? row->preset : "math , os.path", ways[way].behind);
		if (*row->older && !strchr(row->older, ' '))
			put_text(s, "%s=%s", row->older, row->preset);
	}
	put_many(s, "SANDBOX_ALLOWED_IMPORTS=", "a%,", 513, "");
	put_text(s, "\xef\xbb\xbfSANDBOX_TIMEOUT=5\r\n");
}

/* Each as an option and as a key. */
static void make_mcp_settings(struct seeds *s)
{
	char option[SETTING_NAME_MAX], key[SETTING_NAME_MAX];

	begin(s, "mcp_settings");
	for (int id = 0; id < SETTING_COUNT; id++) {
		const char *value = *setting_texts[id].preset ? setting_texts[id].preset : "math";

		setting_spell_name((enum setting_id)id, SPELT_OPTION, option, sizeof option);
		setting_spell_name((enum setting_id)id, SPELT_KEY, key, sizeof key);
		word(s, option);
		word(s, key);
		put_text(s, "%s=%s%c", option, value, 0);
		put_text(s, "%s%c%s%c%c{\"%s\":\"%s\"}", option, 0, value, 0, 0, key, value);
		put_text(s, "%c{\"comment\":\"\",\n\"%s\":[\"%s\"]}", 0, key, value);
		put_text(s, "--check%c%c{\"%s\":1.5}", 0, 0, key);
	}
	put_text(s, "--transport%chttp%c--insecure-loopback%c--host%c::1", 0, 0, 0, 0);
	put_text(s, "--config=x%c-h%c-V%c--print-config", 0, 0, 0);
}

static void make_elf(struct seeds *s)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segment[3];
		Elf64_Dyn  dynamic[5];
		char       text[64];
	} file = {
		.head    = { .e_ident = ELFMAG "\x02\x01\x01", .e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 3 },
		.segment = { { .p_type = PT_LOAD, .p_filesz = sizeof file, .p_vaddr = 0x1000 },
			     { .p_type = PT_DYNAMIC, .p_offset = offsetof(typeof(file), dynamic), .p_filesz = sizeof file.dynamic },
			     { .p_type = PT_INTERP, .p_offset = offsetof(typeof(file), text) + 1 } },
		.dynamic = { { .d_tag = DT_STRTAB, .d_un.d_val = 0x1000 + offsetof(typeof(file), text) },
			     { .d_tag = DT_NEEDED, .d_un.d_val = 8 }, { .d_tag = DT_RUNPATH, .d_un.d_val = 16 }, { .d_tag = DT_RPATH, .d_un.d_val = 1 } },
		.text    = "\0/ld.so\0libc.so\0/usr/lib",
	};

	begin(s, "elf");
	put(s, &file, sizeof file);
	file.dynamic[0].d_un.d_val = 0;
	put(s, &file, sizeof file);
	file.head.e_phnum = 0;
	put(s, &file, sizeof file);
	put(s, &file, sizeof file.head - 1);
}

static void make_sources(struct seeds *s)
{
	static const char *const tokens[] = { "deb ", "[signed-by=", "]", " bookworm", "-updates", "-security", " main", "Types: deb\n", "URIs: ",
		                              "Suites: ", "Components: ", "Signed-By: ", "Enabled: no\n", "://", "[IP: ", "@" };

	begin(s, "sources");
	words(s, tokens, ARRAY_LEN(tokens));
	put_text(s, "deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://a.example/debian bookworm main # why\n%cGet http://a.example/x", 0);
	put_text(s, "Types: deb deb-src\nURIs: https://u@mirror.example:8/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\n"
		    "Signed-By:\n /k/debian-archive-keyring.gpg\n\nTypes: deb\nEnabled: no\n%cErr [IP: 192.0.2.1 80]\n", 0);
}

static void make_bpf(struct seeds *s)
{
	static const struct policy_text_row {
		const char *text;
	} texts[] = { { "allow read" }, { "allow ioctl if arg1 in 1 2 and arg2 has no 4 else errno EINVAL\nkill write" } };
	static struct policy p;
	char                 bytes[sizeof(struct seccomp_data) + 8 * BPF_PROGRAM_MAX] = { 0 };

	begin(s, "bpf");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct policy_source source = { .name = "seed", .where = "seed.policy", .text = (char *)texts[i].text, .len = strlen(texts[i].text) };
		struct policy_bundle b      = { .source = { source }, .n = 1 };
		scoped_filter        f      = { 0 };
		struct err           e      = { 0 };

		must_about(e.text, policy_parse(&p, &b, call_number, &e) == 0 && filter_compile(&p, &f, &e) == 0);
		memcpy(bytes + sizeof(struct seccomp_data), f.insn, f.len * sizeof *f.insn);
		put(s, bytes, sizeof(struct seccomp_data) + f.len * sizeof *f.insn);
	}
}

/* As a line, and as texts and figures of an entry. */
static void make_audit_line(struct seeds *s)
{
	static const char *const bad[] = { "\x1b[2J", "\x7f", "\xc2\x9b", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\xff", "\n" };
	struct audit_entry       entry;
	char                     line[AUDIT_LINE_MAX + 1];

	begin(s, "audit_line");
	words(s, bad, ARRAY_LEN(bad));
	for (const struct audit_row *row = audit_rows; row->name; row++)
		word(s, row->name);
	audit_entry_init(&entry);
	entry.time_us   = 1763647402012345;
	entry.peer_comm = bad[0];
	entry.granted   = (struct audit_limits){ AUDIT_LIMITS_ALL, { .cpus = 500 } };
	for (int i = 0; i < EXIT_REASONS; i++) {
		entry.reason = i;
		entry.signal = i;
		json_t *json = audit_entry_to_json(&entry);
		audit_json_to_line(json, line);
		json_decref(json);
		put(s, line, strlen(line) - 1);
		word(s, exit_reason_name((enum exit_reason)i));
	}
	put_many(s, "busy\v", "\x1b[%;1H\v\xff", 12, "12345678abcdefgh");
}

/* --- the frontend: a message for every method in every revision --- */

#define MODERN_META "\"_meta\":{\"" META_VERSION "\":\"2026-07-28\",\"" META_CAPABILITIES "\":{}}"

static const char *const mcp_words[] = { "\"jsonrpc\":\"2.0\"", "\"id\":", "\"method\":", "\"params\":", "\"result\":", "\"error\":", "\"_meta\":", "\"name\":", "\"arguments\":",
	"\"progressToken\":", "\"requestId\":", "\"cursor\":", "\"protocolVersion\":", "\"code\":", "\\ud83d", "\r\n", "\xef\xbb\xbf", "hold", "ask-1",
	"notifications/cancelled", "notifications/initialized", META_VERSION, META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL };

static void put_methods(struct seeds *s, const char *behind)
{
	for (const struct method *m = methods; m->name; m++) {
		word(s, m->name);
		put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"%s\"}%s", m->name, behind);
		put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"%s\",\"params\":{" MODERN_META "}}%s", m->name, behind);
	}
}

static void make_output(struct seeds *s)
{
	static const char *const pieces[] = { "\x1b[", "\x1b]0;", "\x1b\\", "\x07", "31m", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\x9b", "\xff", "\\\"" };

	begin(s, "output");
	words(s, pieces, ARRAY_LEN(pieces));
	for (int flags = 0; flags < 4; flags++)
		put_text(s, "%c@\x1b[31mred\x1b[0m \xe2\x82\xac\xff\x1b]0;title\x07\n\x01\x7f\xc2\x9b" "2J \xf0\x9f\x98\x80 %01500d", '0' + flags, 7);
}

static void make_rpc(struct seeds *s)
{
	begin(s, "rpc");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, mcp_words, ARRAY_LEN(mcp_words));
	put_methods(s, "");
	put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"x\"}");
	put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"result\":{}}");
	put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"\\ud83d \\u0000\"}}");
	put_text(s, "[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]");
}

static void make_mcp_line(struct seeds *s)
{
	begin(s, "mcp_line");
	words(s, mcp_words, ARRAY_LEN(mcp_words));
	put_text(s, "\x01{}\r\n\n\xef\xbb\xbf[]\n  \nhalf");
	put_text(s, "\x07%s\nab\n%s\n", "12345678901234567890123456789012", "123456789012345678901234567890123\r");
	put_many(s, "\x40", "aaaaaaaaaaaaaaaa", 8, "\nb\n");
}

static void make_bridge_line(struct seeds *s)
{
	static const char *const known[] = { "\"op\":\"call\"", "\"op\":\"cancel\"", "\"op\":\"find\"", "\"op\":\"describe\"", "\"op\":\"names\"", "\"args\":{}", "\"words\":", "\"under\":", "\"max\":" };

	begin(s, "bridge_line");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, known, ARRAY_LEN(known));
	put_text(s, "{\"id\":1,\"op\":\"call\",\"name\":\"a.b\",\"args\":{\"x\":[1,2.5,null,true,\"y\"]}}");
	put_text(s, "{\"id\":1,\"op\":\"cancel\"}");
	put_text(s, "{\"id\":2,\"op\":\"find\",\"words\":\"x\",\"max\":100}");
	put_text(s, "{\"id\":3,\"op\":\"describe\",\"name\":\"a.b\"}");
	put_text(s, "{\"id\":9223372036854775807,\"op\":\"names\",\"under\":\"\"}");
	put_text(s, "{\"id\":-1,\"op\":\"names\",\"under\":\"\",\"more\":1}");
}

static void make_tool_catalog(struct seeds *s)
{
	static const char *const known[] = { "\"tools\":", "\"name\":", "\"inputSchema\":", "\"outputSchema\":", "\"properties\":", "\"$ref\":\"#/$defs/", "\"$defs\":", "\"items\":", "\"enum\":",
					     "\"anyOf\":", "\"required\":", "\"additionalProperties\":", "\"annotations\":", "\"readOnlyHint\":", "\"content\":", "\"structuredContent\":", "\"isError\":" };

	begin(s, "tool_catalog");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, known, ARRAY_LEN(known));
	put_text(s, "{\"tools\":[{\"name\":\"a-b\",\"description\":\"\\u001b[2Jx. y\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"},\"n\":{\"type\":[\"integer\",\"null\"],\"default\":5}},"
		    "\"required\":[\"q\"],\"additionalProperties\":false},\"annotations\":{\"readOnlyHint\":true}},{\"name\":\"a_b\"}],\"args\":{\"q\":1}}");
	put_text(s, "{\"tools\":[{\"name\":\"c\",\"inputSchema\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"},\"b\":{\"enum\":[\"p\",1]},\"c\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"number\"},{\"$ref\":\"#\"}]}}},"
		    "\"$defs\":{\"x\":{\"$ref\":\"#/$defs/x\"}}}}],\"args\":{\"a\":1,\"b\":\"p\",\"c\":[1,[2]]}}");
	put_text(s, "{\"tools\":[],\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"image\",\"data\":\"AA==\",\"mimeType\":\"image/png\"},{\"type\":\"resource\",\"resource\":{\"uri\":\"x:y\",\"text\":\"t\"}}]}");
	put_text(s, "{\"content\":[{\"type\":\"text\",\"text\":\"no\"}],\"isError\":true,\"resultType\":\"complete\"}");
}

static void make_servers_file(struct seeds *s)
{
	static const char *const known[] = { "\"mcpServers\":", "\"command\":", "\"args\":", "\"env\":", "\"cwd\":", "\"url\":\"https://", "\"headers\":", "\"type\":\"http\"", "${PATH}", "${X:-y}", "\"disabled\":true" };

	begin(s, "servers_file");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, known, ARRAY_LEN(known));
	put_text(s, "{\"mcpServers\":{\"a-b\":{\"command\":\"x\",\"args\":[\"${PATH}\",\"${NOT_SET}\"],\"env\":{\"K\":\"${X:-y}\"},\"cwd\":\"/tmp\",\"more\":1},"
		    "\"h\":{\"type\":\"streamable-http\",\"url\":\"https://x/\",\"headers\":{\"A\":\"b\"}},\"me\":{\"command\":\"/usr/bin/brig-mcp\"},\"off\":{\"disabled\":true}},\"inputs\":[]}");
	put_text(s, "{\"servers\":{}}");
	put_text(s, "{\"mcpServers\":{\"import\":{\"command\":\"$ ${ ${} ${:-} ${1}\"}}}");
}

/* The first byte is the interface, in the order of interface.def; behind the last one, a file of tokens. */
static void make_api_request(struct seeds *s)
{
	static const char *const known[] = { "\"code\":", "\"language\":", "\"run_timeout\":", "\"files\":", "\"fetch_files\":",
					     "\"cells\":", "\"generated_code\":", "\"timeout\":", "\"version\":",
					     "\"content\":", "\"source_code\":", "\"language_id\":71", "\"expected_output\":",
					     "profile=", "runs=", "per_minute=", "apis=" };
	static const char *const bodies[] = {
		"{\"code\":\"print(1)\",\"language\":\"python\",\"files\":{\"a\":\"aGk=\"},\"fetch_files\":[\"o\"]}",
		"{\"generated_code\":\"1\",\"language\":\"ipython\",\"timeout\":1.5}",
		"{\"language\":\"python\",\"version\":\"*\",\"files\":[{\"name\":\"a.py\",\"content\":\"1\"}]}",
		"{\"source_code\":\"print(1)\",\"language_id\":71,\"expected_output\":\"1\"}",
		"a:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef runs=1 apis=nemo",
	};

	begin(s, "api_request");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, known, ARRAY_LEN(known));
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		char text[200];
		int  n = snprintf(text, sizeof text, "%c%s", (char)i, bodies[i]);

		put(s, text, (size_t)n);
	}
}

static void make_events(struct seeds *s)
{
	static const char *const known[] = { "data:", "data: ", "event: message", "id: 1", "retry: 5", "\r\n\r\n", "\n\n", "\r\r" };

	begin(s, "events");
	words(s, known, ARRAY_LEN(known));
	put_text(s, "\x03: hello\n\nid: 1\ndata:\n\ndata: {\"a\":1}\r\n\r\ndata: x\rdata: y\r\r");
	put_many(s, "\x10", "data: aaaaaaaaaaaaaaaa", 8, "\n\n");
}

/* Behind the size of a piece: a file, what is left out, what is listed, the end. */
static void make_file_entries(struct seeds *s)
{
	char   list[400];
	size_t n = 0;

	begin(s, "file_entries");
	list[n++] = 7;
	for (uint32_t kind = FILE_LIST + 1; kind-- > FILE_END;) {
		const char       *name  = kind == FILE_END ? "" : kind % 2 ? "a/b.txt" : "\xff";
		struct file_entry entry = { .kind = kind, .name_len = (uint32_t)strlen(name), .bytes = kind == FILE_EXECUTABLE ? 3 : kind };

		memcpy(list + n, &entry, sizeof entry);
		memcpy(list + n + sizeof entry, name, entry.name_len);
		n += sizeof entry + entry.name_len;
		if (kind == FILE_EXECUTABLE || kind == FILE_REGULAR)
			memcpy(list + n, "abc", (size_t)entry.bytes), n += (size_t)entry.bytes;
		put(s, list, n);
		if (kind == FILE_GET) /* never comes from there */
			n -= sizeof entry + entry.name_len;
	}
}

static void make_http(struct seeds *s)
{
	static const char *const known[] = { "POST /mcp\n", "Host: localhost\n", "Origin: http://localhost:1\n", "Content-Type: application/json\n", "Content-Length: 5\n",
					     "Transfer-Encoding: chunked\n", "Authorization: Bearer 0123456789abcdef0123456789abcdef\n", "MCP-Protocol-Version: ",
					     "Mcp-Method: ", "Mcp-Name: ", "Mcp-Param-Region: ", "=?base64?ZXU=?=", "Accept: */*\n", "https://app.example", "ok.example:99" };
	static const char head[] = "POST /mcp\r\nHost: 127.0.0.1:9015\r\nOrigin: https://app.example\r\nContent-Type: application/json; charset=utf-8\r\n"
				   "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n";

	begin(s, "http");
	words(s, known, ARRAY_LEN(known));
	words(s, mcp_words, ARRAY_LEN(mcp_words));
	put_text(s, "%sMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: =?base64?eA==?=\r\nMcp-Param-Region: eu\r\nmcp-param-n: 7.0\r\n\r\n"
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"arguments\":{\"region\":\"eu\",\"n\":7}," MODERN_META "}}", head);
	put_text(s, "%sMCP-Protocol-Version: 2025-11-25\r\nContent-Length: 40\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", head);
	put_text(s, "%sTransfer-Encoding: chunked\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", head);
	put_text(s, "OPTIONS /mcp\nHost: [::1]:80\nOrigin: https://app.example\n\n");
	put_text(s, "GET /metrics\nHost: localhost\nOrigin: null\n\n");
	put_text(s, "HEAD /healthz\n\n");
}

static void make_dispatch(struct seeds *s)
{
	begin(s, "dispatch");
	words(s, json_words, ARRAY_LEN(json_words));
	words(s, mcp_words, ARRAY_LEN(mcp_words));
	put_methods(s, "\n");
	for (unsigned i = 0; i < REVISION_COUNT; i++) {
		word(s, revision_name((enum revision)i));
		put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\"}}\n"
			    "[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}]\n", revision_name((enum revision)i));
	}
	for (size_t i = 0; tools[i]; i++) {
		word(s, tools[i]->name);
		put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\",\"arguments\":{\"code\":\"1\"}," MODERN_META "}}\n", tools[i]->name);
		for (const struct argument *a = tools[i]->arguments; a && a->field.name; a++)
			word(s, a->field.name);
	}
	put_text(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"hold\",\"_meta\":{\"progressToken\":1}}}\n"
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
}

/* --- brig-proxy --- */

/* Bytes with zeros in them, of which the compiler counts how many. */
#define PUT(s, text) put(s, text, sizeof(text) - 1)

static void make_dns_question(struct seeds *s)
{
	begin(s, "dns_question");
	PUT(s, "\0\7\1\0\0\1\0\0\0\0\0\0\4shop\7example\0\0\1\0\1");
	PUT(s, "\0\7\1\0\0\1\0\0\0\0\0\1\4Shop\7Example\0\0\34\0\1\0\0\51\4\320\0\0\0\0\0\0");
	PUT(s, "\0\7\1\0\0\1\0\0\0\0\0\1\1x\0\0\20\0\1\0\0\51\4\320\0\1\0\0\0\0");
	PUT(s, "\0\7\1\0\0\1\0\0\0\0\0\0\1" "1\1" "2\1" "3\1" "4\0\0\1\0\1");
	PUT(s, "\0\7\1\0\0\1\0\0\0\0\0\0\300\14\0\1\0\1"); /* compressed */
}

#define HELLO_BEGIN "\3\3" "0123456789abcdef0123456789abcdef" "\0\0\2\23\1\1\0"
#define HELLO_SNI   "\0\0\0\21\0\17\0\0\14shop.example"
#define HELLO_ALPN  "\0\20\0\16\0\14\2h2\10http/1.1"

static void make_client_hello(struct seeds *s)
{
	begin(s, "client_hello");
	word(s, "shop.example");
	PUT(s, "\0\5\26\3\1\0\124\1\0\0\120" HELLO_BEGIN "\0\47" HELLO_SNI HELLO_ALPN);
	PUT(s, "\0\5\26\3\1\0\102\1\0\0\76" HELLO_BEGIN "\0\25" HELLO_SNI);
	PUT(s, "\0\5\26\3\1\0\5\1\0\0\76\3\26\3\1\0\75\3" "0123456789abcdef0123456789abcdef" "\0\0\2\23\1\1\0" "\0\25" HELLO_SNI); /* in two records */
	PUT(s, "\0\5GET / HTTP/1.1\r\n");
}

static void make_socks(struct seeds *s)
{
	begin(s, "socks");
	PUT(s, "\0\1\5\1\0");
	PUT(s, "\0\2\5\2\0\2");
	PUT(s, "\0\3\5\1\0\3\14shop.example\1\273");
	PUT(s, "\0\3\5\1\0\1\1\2\3\4\0\120");
	PUT(s, "\0\3\5\1\0\4" "0123456789abcdef" "\1\273");
}

static void make_request_head(struct seeds *s)
{
	static const char *const known[] = { "\r\n", " HTTP/1.1\r\n", "Host: shop.example\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Connection: upgrade\r\n",
					     "Upgrade: websocket\r\n", "Authorization: x\r\n", "accept_encoding: gzip\r\n", "https://shop.example", "http://", "[::1]:80", "%2e%2e" };

	begin(s, "request_head");
	words(s, known, ARRAY_LEN(known));
	PUT(s, "\0 GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
	PUT(s, "\0 POST /a?b HTTP/1.1\r\nHost: shop.example:8443\r\nContent-Length: 5\r\nAuthorization: x\r\n\r\nhello");
	PUT(s, "\0 POST http://shop.example/x HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\nConnection: close, x-a\r\nX-A: 1\r\nX_B: 1\r\n\r\n");
	PUT(s, "\0 GET /ws HTTP/1.1\r\nHost: [::1]\r\nConnection: upgrade\r\nUpgrade: websocket\r\nRange: bytes=0-1\r\nContent_Length: 7\r\n\r\n");
	PUT(s, "\0 CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n");
	PUT(s, "\0 OPTIONS * HTTP/1.0\r\nHost: a\r\n\r\n");
}

static void make_request_body(struct seeds *s)
{
	static const char *const known[] = { "\r\n", "0\r\n\r\n", "5\r\n" };

	begin(s, "request_body");
	words(s, known, ARRAY_LEN(known));
	PUT(s, "\0\1" "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nGET");
	PUT(s, "\0\360" "a\r\n0123456789\r\n0\r\nX: y\r\n\r\n");
	PUT(s, "\13\23hello, world");
}

static void make_secret_mask(struct seeds *s)
{
	begin(s, "secret_mask");
	PUT(s, "\5abcabd\0\0\0xabcabcabdx");
	PUT(s, "\3sesame-0123456789\0sesame\0x\0{\"authorization\": \"Bearer sesame-0123456789\"}");
	PUT(s, "\100aaaa\0aab\0\0aaaaaaaaaabaaa");
}

static void make_reply(struct seeds *s)
{
	static const char *const known[] = { "sesame", "Transfer-Encoding: chunked\r\n", "HTTP/1.1 200 OK\r\n", "0\r\n\r\n", "6\r\n" };

	begin(s, "reply");
	words(s, known, ARRAY_LEN(known));
	PUT(s, "\5HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nses\r\n3;x\r\name\r\n0\r\n\r\n");
	PUT(s, "\3HTTP/1.1 200 OK\r\nX: sesame\r\n\r\nsesame ses");
	PUT(s, "\7HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\n\r\nsesame");
}

static void make_net_rule(struct seeds *s)
{
	static const char *const known[] = { "https://", "http://", "tcp://", "*.", ":443", "[::1]", "%2e", "%2f", "%5c", "..", "xn--" };

	begin(s, "net_rule");
	words(s, known, ARRAY_LEN(known));
	PUT(s, "https://shop.example/repos/\0*.example\0a.shop.example\0/repos/x");
	PUT(s, "tcp://1.2.3.4:22\0[::1]:80\0::1\0/%2e%2e/x");
	PUT(s, "*\0*.a.b:8443\0B.a.b.\0/a/..;x/b");
	PUT(s, "http://a/b\0a\0" "010.1\0/b/%5c..%2f");
}

int main(int argc, char **argv)
{
	struct seeds s = { 0 };

	if (argc != 3)
		return 2;
	s.source = argv[1];
	s.out    = argv[2];
	make_profile(&s);
	make_recipe(&s);
	make_request(&s);
	make_answer(&s);
	make_program_report(&s);
	make_config(&s);
	make_policy(&s, "policy");
	make_policy(&s, "filter");
	make_manifest(&s);
	make_id_range(&s);
	make_cg_path(&s);
	make_mountinfo(&s);
	make_numbers(&s);
	make_options(&s);
	make_environment(&s);
	make_dotenv(&s);
	make_mcp_settings(&s);
	make_elf(&s);
	make_sources(&s);
	make_bpf(&s);
	make_audit_line(&s);
	make_output(&s);
	make_rpc(&s);
	make_mcp_line(&s);
	make_bridge_line(&s);
	make_tool_catalog(&s);
	make_servers_file(&s);
	make_api_request(&s);
	make_events(&s);
	make_file_entries(&s);
	make_http(&s);
	make_dispatch(&s);
	make_dns_question(&s);
	make_client_hello(&s);
	make_socks(&s);
	make_request_head(&s);
	make_request_body(&s);
	make_secret_mask(&s);
	make_reply(&s);
	make_net_rule(&s);
	return fclose(s.dict) != 0;
}
