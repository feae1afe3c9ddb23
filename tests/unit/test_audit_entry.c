#include "audit_entry.h"
#include "denial.h"
#include "tap.h"
#include "text.h"

#include <math.h>
#include <sys/socket.h>

#define NOW 1763647402012345ll

static struct audit_entry entry_of(const char *profile)
{
	struct audit_entry entry;

	audit_entry_init(&entry);
	entry.time_us  = NOW;
	entry.op       = "run";
	entry.mode     = "report";
	entry.profile  = profile;
	entry.peer_uid = 1000;
	return entry;
}

static size_t line_of(const struct audit_entry *entry, char line[AUDIT_LINE_MAX + 1])
{
	json_t *json = audit_entry_to_json(entry);
	size_t  len  = audit_json_to_line(json, line);

	json_decref(json);
	return len;
}

static size_t words_of(const struct audit_entry *entry, char words[AUDIT_LINE_MAX + 1])
{
	json_t *json = audit_entry_to_json(entry);
	size_t  len  = audit_json_to_words(json, words);

	json_decref(json);
	return len;
}

static bool is_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return true;
}

static void check_line(void)
{
	struct audit_entry entry = entry_of("basic");
	char               line[AUDIT_LINE_MAX + 1];

	entry.reason       = EXIT_signaled;
	entry.exit_code    = 139;
	entry.signal       = 11;
	entry.peer_pid     = 4242;
	entry.peer_comm    = "python3";
	entry.run_id       = "7d444840-9dc0-11d1-b245-5ffdce74fad2";
	entry.code_bytes   = 312;
	entry.figures.wall_ms      = 31.2041;
	entry.asked        = (struct audit_limits){ 1ull << LIMIT_cpus | 1ull << LIMIT_memory_bytes, { .cpus = 500, .memory_bytes = 64 * MIB } };
	entry.figures.io_read_bytes = 0;
	line_of(&entry, line);
	tap_is(line, "{\"time\":\"2025-11-20T14:03:22.012345Z\",\"exit_reason\":\"signaled\",\"exit_code\":139,\"signal\":\"SIGSEGV\",\"error\":null,\"field\":null,"
		     "\"op\":\"run\",\"mode\":\"report\",\"profile\":\"basic\",\"run_id\":\"7d444840-9dc0-11d1-b245-5ffdce74fad2\",\"session\":null,\"peer_uid\":1000,\"peer_pid\":4242,"
		     "\"peer_comm\":\"python3\",\"principal\":null,\"code_sha256\":null,\"code_bytes\":312,\"tool\":null,\"limits_asked\":{\"memory_bytes\":67108864,\"cpus\":0.5},"
		     "\"limits_granted\":null,\"wall_ms\":31.204,\"cpu_ms\":null,\"setup_ms\":null,\"memory_peak_bytes\":null,\"pids_peak\":null,"
		     "\"io_read_bytes\":0,\"io_write_bytes\":null,\"refused\":null,\"network\":null,\"network_connections\":null,\"network_refused\":null,\"network_bytes_in\":null,\"network_bytes_out\":null,\"why\":null,\"suppressed\":null}\n",
	       "a line has every key, and null for what is not known");
	words_of(&entry, line);
	tap_is(line, "2025-11-20T14:03:22.012345Z signaled 139 SIGSEGV op run mode report profile basic run 7d444840-9dc0-11d1-b245-5ffdce74fad2 uid 1000 pid 4242 comm python3 "
		     "code_bytes 312 wall_ms 31.204",
	       "the line for people has what is known");
}

static void check_call(void)
{
	struct audit_entry entry = entry_of(NULL);
	char               line[AUDIT_LINE_MAX + 1];

	entry.op          = "tool";
	entry.mode        = NULL;
	entry.reason      = EXIT_denied;
	entry.error       = "denied";
	entry.tool        = "git\nhub";
	entry.code_sha256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
	words_of(&entry, line);
	tap_is(line, "2025-11-20T14:03:22.012345Z denied denied op tool uid 1000 code 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a tool \"git\\nhub\"",
	       "a call of a tool is a line with its name, its error and the digest of its arguments");
}

/* What a peer may call itself, or its profile: nothing of it reaches a log as it is. */
static const struct {
	const char *text, *line, *name;
} hostile[] = {
	{ "a\nb",                "\"a\\nb\"",                   "a newline begins no line" },
	{ "a\x1b[2Jb",           "\"a\\u001B[2Jb\"",            "an escape sequence stays asleep" },
	{ "a\"},{\"b",           "\"a\\\"},{\\\"b\"",           "a quote ends no text" },
	{ "a\\\"b",              "\"a\\\\\\\"b\"",              "a backslash hides no quote" },
	{ "a\x7f" "b",           "\"a\\u007fb\"",               "DEL is escaped" },
	{ "a\xc2\x9b" "2Jb",     "\"a\\u009B2Jb\"",             "the C1 form of an escape sequence is escaped" },
	{ "a\xe2\x80\xa8" "b",   "\"a\\u2028b\"",               "a line separator is escaped" },
	{ "a\xe2\x80\xae" "b",   "\"a\\u202Eb\"",               "a change of direction is escaped" },
	{ "a\xef\xbb\xbf" "b",   "\"a\\uFEFFb\"",               "an invisible character is escaped" },
	{ "a\xff" "b",           "\"a\\uFFFDb\"",               "a byte that is no UTF-8 is replaced" },
	{ "a\xed\xa0\x80" "b",   "\"a\\uFFFD\\uFFFD\\uFFFDb\"", "a surrogate is replaced" },
	{ "\xf0\x9f\x98\x80",    "\"\\uD83D\\uDE00\"",          "a character beyond the 16 bits is a pair" },
	{ "basic exited 0",      "\"basic exited 0\"",          "blanks are kept" },
};

static void check_hostile(void)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		struct audit_entry entry = entry_of(hostile[i].text);
		char               line[AUDIT_LINE_MAX + 1], want[128];
		size_t             len;

		entry.peer_comm = hostile[i].text;
		len             = line_of(&entry, line);
		snprintf(want, sizeof want, "\"profile\":%s,", hostile[i].line);
		if (!tap_ok(strstr(line, want) && is_printable(line, len - 1), "in the line, %s", hostile[i].name))
			printf("# %s", line);
		len = words_of(&entry, line);
		snprintf(want, sizeof want, "profile %s uid 1000 comm %s", hostile[i].line, hostile[i].line);
		if (!tap_ok(strstr(line, want) && is_printable(line, len), "in the line for people, %s", hostile[i].name))
			printf("# %s\n", line);
	}
}

static void check_cut(void)
{
	char               many[200] = "", line[AUDIT_LINE_MAX + 1], want[256];
	struct audit_entry entry = entry_of(many);

	memset(many, 'a', sizeof many);
	many[64] = 0;
	line_of(&entry, line);
	snprintf(want, sizeof want, "\"profile\":\"%s\",", many);
	tap_ok(strstr(line, want) != NULL, "a text as long as its row allows is whole");
	many[64] = 'a';
	many[65] = 0;
	line_of(&entry, line);
	snprintf(want, sizeof want, "\"profile\":\"%.61s...\",", many);
	tap_ok(strstr(line, want) != NULL, "a longer one is cut, and says so");
	strcpy(many + 59, "\xf0\x9f\x98\x80" "bcdefgh");
	line_of(&entry, line);
	snprintf(want, sizeof want, "\"profile\":\"%.59s...\",", many);
	tap_ok(strstr(line, want) != NULL, "no character is cut into halves");
	entry.profile = "";
	line_of(&entry, line);
	tap_ok(strstr(line, "\"profile\":null,") != NULL, "an empty text is null");
}

/* Every text as bad and every figure as long as can be. */
static struct audit_entry worst(const char *bad)
{
	struct audit_entry entry;

	audit_entry_init(&entry);
	for (const struct audit_row *row = audit_rows; row->name; row++) {
		char *at = (char *)&entry + row->offset;

		switch (row->how) {
		case AUDIT_TEXT:
			*(const char **)at = bad;
			break;
		case AUDIT_COUNT:
			*(int64_t *)at = INT64_MAX;
			break;
		case AUDIT_MS:
			*(double *)at = 999999999999.999;
			break;
		case AUDIT_LIMITS:
			memset(at, 0xff, sizeof(struct audit_limits));
			break;
		case AUDIT_TIME:
			*(int64_t *)at = NOW;
			break;
		case AUDIT_REASON:
			*(int *)at = EXIT_output_limit;
			break;
		case AUDIT_SIGNAL:
		case AUDIT_STATUS:
			*(int *)at = INT32_MAX;
			break;
		}
	}
	return entry;
}

static void check_bounds(void)
{
	static const char *const bad[] = { "\x1b", "\x7f", "\xff", "\xc2\x9b", "\xe2\x80\xa8", "\xf0\x9f\x98\x80", "\"", "\\" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char               many[4000] = "", line[AUDIT_LINE_MAX + 1];
		struct audit_entry entry      = worst(many);
		size_t             len;

		while (strlen(many) + 8 < sizeof many)
			strcat(many, bad[i]);
		len = line_of(&entry, line);
		tap_ok(len > 500 && len <= AUDIT_LINE_MAX && strlen(line) == len, "the worst of texts fits (%zu): %zu bytes", i, len);
		len = words_of(&entry, line);
		tap_ok(len > 500 && len <= AUDIT_LINE_MAX, "and for people (%zu): %zu bytes", i, len);
	}
}

static void check_network(void)
{
	static struct net_report n; /* large */
	struct audit_entry       entry = entry_of("basic");
	struct record            record = { .profile = "basic", .result = &RUN_RESULT_NONE, .network = &n };
	char                     line[AUDIT_LINE_MAX + 1];

	n.n             = 2;
	n.connections   = 2;
	n.refused       = 1;
	n.bytes_in      = UINT64_MAX;
	n.connection[0] = (struct net_connection){ .name = "pypi.org", .port = 443, .verdict = NET_VERDICT_DONE };
	n.connection[1] = (struct net_connection){ .name = "evil.example", .verdict = NET_VERDICT_REFUSED, .reason = NET_REASON_NOT_ALLOWED };
	audit_entry_set_record(&entry, &record);
	line_of(&entry, line);
	tap_ok(strstr(line, "\"network\":\"pypi.org:443 evil.example=not_allowed\",\"network_connections\":2,\"network_refused\":1,\"network_bytes_in\":9223372036854775807,") != NULL, "a line says which hosts were reached, and which were not");
	n.n = NET_REPORT_MAX;
	for (uint32_t i = 0; i < n.n; i++) {
		memset(n.connection[i].name, 'a', NET_HOST_MAX - 1);
		n.connection[i].port = 65535;
	}
	audit_entry_set_record(&entry, &record);
	tap_ok(line_of(&entry, line) > 500 && strstr(line, "...\",\"network_connections") != NULL, "more of them than have room are cut");
}

static char *name_of_call(int number, char *buf, size_t len)
{
	snprintf(buf, len, number == 101 ? "ptrace" : number == 41 ? "socket" : "a_name_of_a_call_that_is_so_long");
	return buf;
}

static void check_refused(void)
{
	struct audit_entry entry  = entry_of("basic");
	struct run_result  result = RUN_RESULT_NONE;
	struct record      record = { .result = &result, .call_name = name_of_call };
	char               line[AUDIT_LINE_MAX + 1];

	audit_entry_set_record(&entry, &record);
	line_of(&entry, line);
	tap_ok(strstr(line, "\"refused\":null,") != NULL, "a run to which no system call was refused has none in its line");
	result.refused.n      = 2;
	result.refused.row[0] = (struct refused_call){ .call = 101, .count = 2 };
	result.refused.row[1] = (struct refused_call){ .call = 41, .count = 1, .look = { .seen = 3, .arg = { AF_PACKET, SOCK_RAW } } };
	audit_entry_set_record(&entry, &record);
	line_of(&entry, line);
	tap_ok(strstr(line, "\"refused\":\"ptrace=2 socket(AF_PACKET,SOCK_RAW)=1\",") != NULL, "a line says which system calls were refused");
	for (result.refused.n = 0; result.refused.n < REFUSED_MAX; result.refused.n++)
		result.refused.row[result.refused.n] = (struct refused_call){ .call = 1, .count = UINT32_MAX };
	audit_entry_set_record(&entry, &record);
	tap_ok(line_of(&entry, line) > 500 && strstr(line, "...\",\"network\"") != NULL, "more of them than have room are cut, and say so");
}

static void check_figures(void)
{
	static const double none[] = { -1, 1e13, HUGE_VAL, NAN };
	struct audit_entry  entry  = entry_of("basic");
	char                line[AUDIT_LINE_MAX + 1];

	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		entry.figures.wall_ms = none[i];
		tap_ok(line_of(&entry, line) && strstr(line, "\"wall_ms\":null,"), "%g milliseconds are none", none[i]);
	}
}

static void check_way_back(void)
{
	struct audit_entry entry = entry_of("a\x1b\x7f\xc2\x9b\"b"), again;
	char               line[AUDIT_LINE_MAX + 1], twice[AUDIT_LINE_MAX + 1];
	struct err         e = { 0 };
	size_t             len;
	json_t            *from;

	entry.reason  = EXIT_timeout_cpu;
	entry.signal  = 9;
	entry.granted = (struct audit_limits){ AUDIT_LIMITS_ALL, { .cpus = 125, .pids = 64, .wall_ms = 30000 } };
	entry.figures.cpu_ms  = 0.001;
	len           = line_of(&entry, line);
	from          = audit_entry_parse(line, len - 1, &again, &e);
	if (!tap_ok(from != NULL, "a line can be read again"))
		printf("# %s\n", e.text);
	tap_is(from ? again.profile : "", entry.profile, "and means what was said, control characters and all");
	tap_ok(from && again.reason == EXIT_timeout_cpu && again.signal == 9 && again.exit_code == AUDIT_NONE && again.time_us == NOW && again.figures.cpu_ms == 0.001,
	       "so do figures");
	tap_ok(from && memcmp(&again.granted, &entry.granted, sizeof entry.granted) == 0 && again.asked.given == 0, "and limits");
	tap_ok(from && line_of(&again, twice) == len && strcmp(line, twice) == 0, "and written again it is the same line");
	json_decref(from);
}

static const struct {
	const char *line, *why, *name;
} garbled[] = {
	{ "",                                                       "0 bytes",      "an empty line" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_rea",          "",             "a torn line" },
	{ "[]",                                                     "",             "no object" },
	{ "{}",                                                     "no time",      "an object without a time" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\"}",                    "exit_reason",  "an object without a reason" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"fine\"}", "exit_reason", "a reason that is none" },
	{ "{\"time\":1,\"exit_reason\":\"exited\"}",                "time",         "a time that is a number" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\",\"x\":1}", "key", "a key that we do not write" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\"}", "", "a key twice" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\",\"peer_uid\":-1}", "peer_uid", "a uid below nothing" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\",\"peer_comm\":\"12345678901234567\"}", "peer_comm", "a name longer than the kernel has" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\",\"limits_asked\":{\"x\":1}}", "limits_asked", "a limit that there is not" },
	{ "{\"time\":\"2025-11-20T14:03:22Z\",\"exit_reason\":\"exited\"}{}", "", "two objects in a line" },
};

static void check_garbled(void)
{
	for (size_t i = 0; i < ARRAY_LEN(garbled); i++) {
		struct audit_entry entry;
		struct err         e    = { 0 };
		json_t            *from = audit_entry_parse(garbled[i].line, strlen(garbled[i].line), &entry, &e);

		if (!tap_ok(!from && *e.text && strstr(e.text, garbled[i].why), "%s is refused", garbled[i].name))
			printf("# %s\n", e.text);
		json_decref(from);
	}
}

static void check_record(void)
{
	struct run_result  result = RUN_RESULT_NONE;
	struct record      record = { .result = &result };
	struct audit_entry entry  = entry_of("basic");
	char               line[AUDIT_LINE_MAX + 1];

	result.reason = EXIT_setup_failed;
	err_set(&result.why, ERR_SETUP, "mount proc: Operation not permitted");
	audit_entry_set_record(&entry, &record);
	line_of(&entry, line);
	tap_ok(strstr(line, "\"why\":\"mount proc: Operation not permitted\"") != NULL, "why a set-up failed is told");
	entry              = entry_of("basic");
	result.reason = EXIT_denied;
	err_set(&result.why, ERR_BAD_SPEC, "env[0]: PASSWORD=secret is refused");
	audit_entry_set_record(&entry, &record);
	line_of(&entry, line);
	tap_ok(strstr(line, "secret") == NULL, "the sentence of a refusal, which holds what was asked, is not");
}

/* What we write ourselves is never cut: the reader compares it. */
static void check_own_words(void)
{
	char line[AUDIT_LINE_MAX + 1], want[64];

	for (int i = 0; i < DENIAL_COUNT; i++) {
		struct audit_entry entry = entry_of("basic");

		entry.error = denial_code_name((enum denial_code)i);
		line_of(&entry, line);
		snprintf(want, sizeof want, "\"error\":\"%s\",", entry.error);
		tap_ok(strstr(line, want) != NULL, "the code %s is whole", entry.error);
	}
}

int main(void)
{
	check_line();
	check_call();
	check_hostile();
	check_cut();
	check_bounds();
	check_figures();
	check_network();
	check_refused();
	check_way_back();
	check_garbled();
	check_record();
	check_own_words();
	return tap_done();
}
