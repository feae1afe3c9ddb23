#define _GNU_SOURCE
#include "audit.h"
#include "code_digest.h"
#include "fd.h"
#include "scratch.h"

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* A journal of the test's own: what arrives is in `bytes`. */
struct fake_journal {
	int    fd;
	char   path[512];
	char   bytes[JOURNAL_MESSAGE_MAX + 1];
	size_t len;
};

static struct fake_journal *fake_open(const char *folder)
{
	static struct fake_journal j;
	struct sockaddr_un         at = { .sun_family = AF_UNIX };

	snprintf(j.path, sizeof j.path, "%s/journal", folder);
	snprintf(at.sun_path, sizeof at.sun_path, "%.100s", j.path);
	j.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(bind(j.fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
	return &j;
}

static void fake_close(struct fake_journal *j)
{
	fd_closep(&j->fd);
	unlink(j->path);
}

static bool fake_next(struct fake_journal *j)
{
	ssize_t n = recv(j->fd, j->bytes, sizeof j->bytes - 1, MSG_DONTWAIT);

	j->len = n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* As journald reads it. The value, "(none)" without the field; *fields: how many there are, 0 when the message is garbled. */
static const char *fake_field(const struct fake_journal *j, const char *name, size_t *fields)
{
	static char value[4][8192];
	static int  k;
	size_t      n = 0;
	const char *p = j->bytes, *end = p + j->len;

	k = (k + 1) % 4;
	strcpy(value[k], "(none)");
	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		uint64_t    size;

		if (!line || end - line < 10)
			break;
		memcpy(&size, line + 1, sizeof size);
		size = le64toh(size);
		if (size > (uint64_t)(end - line - 10) || line[9 + size] != '\n')
			break;
		if (strlen(name) == (size_t)(line - p) && memcmp(name, p, strlen(name)) == 0)
			snprintf(value[k], sizeof value[k], "%.*s", (int)size, line + 9);
		p = line + 10 + size;
		n++;
	}
	if (fields)
		*fields = p == end ? n : 0;
	return value[k];
}

static struct audit_entry entry_of(int64_t uid, const char *comm)
{
	struct audit_entry entry;

	audit_entry_init(&entry);
	entry.op        = "run";
	entry.profile   = "basic";
	entry.reason    = EXIT_exited;
	entry.exit_code = 0;
	entry.peer_uid  = uid;
	entry.peer_comm = comm;
	return entry;
}

static struct audit open_with(const char *file, const char *journal, int text_fd)
{
	struct audit_plan plan = { .file = file, .max_bytes = MIB, .keep = 2, .journal = journal, .text_fd = text_fd };
	struct audit      a;
	struct err        e = { 0 };

	if (audit_open(&a, &plan, &e) < 0)
		printf("Bail out! %s\n", e.text), exit(1);
	return a;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void check_journal(const char *folder)
{
	struct fake_journal *j     = fake_open(folder);
	struct audit         a     = open_with(NULL, j->path, -1);
	struct audit_entry   entry = entry_of(1000, "a\nBRIG_PEER_UID=0\n\nPRIORITY=0\n");
	size_t               fields;
	char                 words[80];

	entry.asked = (struct audit_limits){ 1ull << LIMIT_pids, { .pids = 5 } };
	audit_write(&a, &entry);
	tap_ok(fake_next(j), "the journal gets a message");
	tap_is(fake_field(j, "BRIG_PEER_UID", &fields), "1000", "with a field for what is known");
	tap_ok(fields == 11, "and no field more: three of the journal's, eight of ours");
	tap_is(fake_field(j, "BRIG_PEER_COMM", NULL), "a\nBRIG_PEER_U...", "a newline in a value begins no field");
	tap_is(fake_field(j, "SYSLOG_IDENTIFIER", NULL), "brigd", "journalctl -t brigd finds it");
	tap_is(fake_field(j, "PRIORITY", NULL), "6", "what ended is information");
	tap_is(fake_field(j, "BRIG_LIMITS_ASKED", NULL), "{\"pids\":5}", "limits are an object");
	tap_is(fake_field(j, "BRIG_RUN_ID", NULL), "(none)", "what is null is no field");
	tap_ok(strstr(fake_field(j, "MESSAGE", NULL), "Z exited 0 op run profile basic uid 1000 comm \"a\\nBRIG_PEER_U...\"") != NULL, "and its message is a line for people");
	entry.reason = EXIT_denied;
	audit_write(&a, &entry);
	fake_next(j);
	tap_is(fake_field(j, "PRIORITY", NULL), "5", "what was refused is a notice");
	entry.reason = EXIT_setup_failed;
	audit_write(&a, &entry);
	fake_next(j);
	tap_is(fake_field(j, "PRIORITY", NULL), "4", "what could not be built is a warning");

	for (int i = 0; i < 2000; i++)
		audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).entries == 2003 && audit_get_counts(&a).journal_lost > 1000, "a journal that does not read holds nobody up, and what it missed is counted");
	snprintf(words, sizeof words, "audit: journal: written again, without %llu lines", (unsigned long long)audit_get_counts(&a).journal_lost);
	while (fake_next(j))
		;
	audit_write(&a, &entry);
	tap_ok(fake_next(j) && strcmp(fake_field(j, "MESSAGE", NULL), words) == 0, "and when it reads again it is told how much it missed");
	tap_is(fake_field(j, "PRIORITY", NULL), "5", "as a notice");
	tap_ok(fake_next(j) && strcmp(fake_field(j, "BRIG_PEER_UID", NULL), "1000") == 0, "before the next entry");
	audit_write(&a, &entry);
	tap_ok(fake_next(j) && strcmp(fake_field(j, "BRIG_PEER_UID", NULL), "1000") == 0, "once");
	fake_close(j);
	audit_write(&a, &entry);
	audit_close(&a);
}

static void check_journal_gone(const char *folder)
{
	struct fake_journal *j     = fake_open(folder);
	struct audit         a     = open_with(NULL, j->path, -1);
	struct audit_entry   entry = entry_of(1000, "x");

	fake_close(j);
	audit_write(&a, &entry);
	audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).journal_lost == 2, "a journal that went away is no end, and what it missed is counted");
	j = fake_open(folder);
	audit_write(&a, &entry);
	tap_ok(fake_next(j), "one that comes back, with another socket, gets messages again");
	tap_is(fake_field(j, "MESSAGE", NULL), "audit: journal: written again, without 2 lines", "first of all how much it missed");
	tap_ok(fake_next(j) && strcmp(fake_field(j, "BRIG_PEER_UID", NULL), "1000") == 0, "then the entry");
	fake_close(j);
	j = fake_open(folder);
	audit_write(&a, &entry);
	tap_ok(fake_next(j) && strcmp(fake_field(j, "BRIG_PEER_UID", NULL), "1000") == 0 && audit_get_counts(&a).journal_lost == 2, "if it is away for no entry, nothing is lost");
	while (audit_get_counts(&a).journal_lost == 2)
		audit_write(&a, &entry);
	while (fake_next(j))
		;
	audit_close(&a);
	tap_ok(fake_next(j) && strcmp(fake_field(j, "MESSAGE", NULL), "audit: journal: written again, without 1 lines") == 0, "what is missing at the end is told, too");
	fake_close(j);
}

static void check_journal_full_at_the_end(const char *folder)
{
	struct fake_journal *j     = fake_open(folder);
	struct audit         a     = open_with(NULL, j->path, -1);
	struct audit_entry   entry = entry_of(1000, "x");
	char                 words[80];
	int                  status = -1;
	pid_t                reader;

	while (!audit_get_counts(&a).journal_lost)
		audit_write(&a, &entry);
	snprintf(words, sizeof words, "audit: journal: written again, without %llu lines", (unsigned long long)audit_get_counts(&a).journal_lost);
	if ((reader = fork()) == 0) {
		bool is_found = false;

		usleep(50000); /* most likely, audit_close() waits by then */
		for (struct pollfd p = { j->fd, POLLIN, 0 }; !is_found && poll(&p, 1, 2000) == 1 && fake_next(j);)
			is_found = strcmp(fake_field(j, "MESSAGE", NULL), words) == 0;
		_exit(is_found ? 0 : 1);
	}
	audit_close(&a);
	tap_ok(waitpid(reader, &status, 0) == reader && status == 0, "a journal that is full at the end and is read then gets the number of lost messages");
	fake_close(j);
}

static void check_words(const char *folder)
{
	int                pipes[2];
	struct audit_entry entry = entry_of(1000, "x\ny");
	struct audit       a;
	char               text[4096] = "";
	ssize_t            n;

	must(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
	a = open_with(NULL, scratch_path(folder, "nobody"), pipes[1]);
	audit_write(&a, &entry);
	n = read(pipes[0], text, sizeof text - 1);
	tap_ok(n > 0 && text[n - 1] == '\n' && count_lines(text) == 1 && strstr(text, "comm \"x\\ny\""), "without a journal the line for people is told instead, one line");
	for (int i = 0; i < 2000; i++)
		audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).journal_lost > 100, "a reader that does not read holds nobody up, and what it missed is counted");
	audit_close(&a);
	tap_ok(fcntl(pipes[1], F_GETFD) >= 0, "what was borrowed stays open");
	close(pipes[0]);
	close(pipes[1]);
	a = open_with(NULL, NULL, -1);
	audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).journal_lost == 0, "where nobody wants to know, nothing is lost");
	audit_close(&a);
}

static void check_file(const char *folder)
{
	struct fake_journal *j     = fake_open(folder);
	struct audit         a     = open_with(scratch_path(folder, "log"), j->path, -1);
	struct audit_entry   entry = entry_of(1000, "\x1b[2J"), again;
	struct err           e     = { 0 };
	const char          *text;
	json_t              *from;

	audit_write(&a, &entry);
	text = scratch_read(folder, "log");
	from = audit_entry_parse(text, strcspn(text, "\n"), &again, &e);
	tap_ok(from && again.time_us > 1700000000000000ll && again.peer_uid == 1000 && strcmp(again.peer_comm, "\x1b[2J") == 0, "the file has the entry, with its time");
	json_decref(from);
	fake_next(j);
	unlink(scratch_path(folder, "log"));
	must(mkdir(scratch_path(folder, "log"), 0700) == 0, "mkdir");
	for (int i = 0; i < 3; i++)
		audit_write(&a, &entry);
	fake_next(j);
	tap_ok(strstr(fake_field(j, "MESSAGE", NULL), "audit: log: ") && strcmp(fake_field(j, "PRIORITY", NULL), "3") == 0, "a file that takes no lines is told to the journal");
	for (int i = 0; i < 3; i++)
		tap_ok(fake_next(j) && strcmp(fake_field(j, "BRIG_PEER_UID", NULL), "1000") == 0, "once, and the journal goes on (%d)", i);
	tap_ok(!fake_next(j) && audit_get_counts(&a).file_lost == 3, "and the lines are counted");
	rmdir(scratch_path(folder, "log"));
	audit_write(&a, &entry);
	fake_next(j);
	tap_is(fake_field(j, "MESSAGE", NULL), "audit: log: written again, without 3 lines", "and when it takes them again, that is told as well");
	audit_close(&a);
	audit_close(&a);
	tap_ok(audit_folder_fd(&a) == -1, "what is closed has no folder");
	fake_close(j);
	scratch_empty(folder);
}

static void check_flood(const char *folder)
{
	struct audit       a     = open_with(scratch_path(folder, "log"), NULL, -1);
	struct audit_entry entry = entry_of(1000, "x");

	entry.reason = EXIT_denied;
	for (int i = 0; i < 1000; i++)
		audit_write(&a, &entry);
	tap_ok(count_lines(scratch_read(folder, "log")) == AUDIT_REFUSALS, "of a flood of refusals so many are written");
	tap_ok(audit_get_counts(&a).suppressed == 1000 - AUDIT_REFUSALS, "and the others counted");
	entry.peer_uid = 1001;
	audit_write(&a, &entry);
	tap_ok(count_lines(scratch_read(folder, "log")) == AUDIT_REFUSALS + 1, "another user's are written still");
	entry          = entry_of(1000, "x");
	audit_write(&a, &entry);
	tap_ok(count_lines(scratch_read(folder, "log")) == AUDIT_REFUSALS + 2, "and a run of the same user always");
	entry.tool = "search";
	for (int i = 0; i < 2 * AUDIT_CALLS; i++)
		audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).suppressed == 1000 - AUDIT_REFUSALS + AUDIT_CALLS, "of calls of tools, which a client may make up, a part is written");
	entry.tool = NULL;
	audit_write(&a, &entry);
	tap_ok(audit_get_counts(&a).suppressed == 1000 - AUDIT_REFUSALS + AUDIT_CALLS, "and again every run of the same user");
	audit_close(&a);
	scratch_empty(folder);
}

static void check_throttle(void)
{
	struct audit_throttle t      = { 0 };
	uint64_t              before = 99;
	const int64_t         second = 1000000;

	for (int i = 0; i < AUDIT_REFUSALS; i++)
		if (!audit_throttle_allows(&t, 7, second, AUDIT_REFUSALS, &before) || before)
			tap_ok(false, "the first are told");
	tap_ok(!audit_throttle_allows(&t, 7, 60 * second, AUDIT_REFUSALS, &before), "one more in a minute is not told");
	tap_ok(audit_throttle_allows(&t, 7, 61 * second, AUDIT_REFUSALS, &before) && before == 1, "a minute later one is, with how many were not");
	tap_ok(audit_throttle_allows(&t, 7, 61 * second, AUDIT_REFUSALS, &before) && before == 0, "which is told once");
	for (int i = 0; i < 2 * AUDIT_REFUSALS; i++)
		audit_throttle_allows(&t, 7, 61 * second, AUDIT_REFUSALS, &before);
	tap_ok(audit_throttle_allows(&t, 7, 0, AUDIT_REFUSALS, &before) && before > 0, "a clock that was put back silences no user for long");
	for (int uid = 0; uid < 10 * AUDIT_UIDS; uid++)
		if (!audit_throttle_allows(&t, uid, 70 * second, AUDIT_REFUSALS, &before))
			tap_ok(false, "uid %d is told", uid);
	tap_ok(t.len == AUDIT_UIDS, "many users take no more room");
	for (int i = 0; i <= AUDIT_REFUSALS; i++)
		audit_throttle_allows(&t, 7, 200 * second, AUDIT_REFUSALS, &before);
	for (int uid = 1000; uid < 1000 + 10 * AUDIT_UIDS; uid++)
		(void)audit_throttle_allows(&t, uid, 201 * second, AUDIT_REFUSALS, &before);
	tap_ok(!audit_throttle_allows(&t, 7, 202 * second, AUDIT_REFUSALS, &before), "one that is silenced is not heard again because many others come");
}

static void check_none(const char *folder)
{
	struct audit_entry entry = entry_of(1000, "x");
	struct audit_plan  plan  = { .file = scratch_path(folder, "no/log"), .max_bytes = MIB, .keep = 2, .text_fd = -1 };
	struct audit       a;
	struct err         e;

	audit_write(NULL, &entry);
	audit_close(NULL);
	tap_ok(audit_get_counts(NULL).entries == 0 && audit_folder_fd(NULL) == -1, "no audit is asked for nothing");
	tap_ok(audit_open(&a, &plan, &e) < 0 && strncmp(e.text, "audit: /", 8) == 0, "a file that cannot be written is refused at the start");
}

static void check_digest(void)
{
	char hex[CODE_DIGEST_HEX + 1], *many = calloc(1, 8 * MIB);

	code_compute_digest("abc", 3, hex);
	tap_is(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "the sum is SHA-256");
	code_compute_digest("", 0, hex);
	tap_is(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "of nothing, too");
	code_compute_digest(many, 8 * MIB, hex);
	tap_is(hex, "2daeb1f36095b44b318410b3f4e8b5d989dcc7bb023d1426c492dab0a3053e74", "and of as much as a program may have");
	free(many);
}

int main(void)
{
	char folder[256];

	scratch_make(folder);
	check_journal(folder);
	check_journal_gone(folder);
	check_journal_full_at_the_end(folder);
	check_words(folder);
	check_file(folder);
	check_flood(folder);
	check_throttle();
	check_none(folder);
	check_digest();
	scratch_remove(folder);
	return tap_done();
}
