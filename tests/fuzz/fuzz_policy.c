/*
 * fuzz_policy.c - any bytes as a policy file, any bytes as what it includes.
 *
 * Not built by default: clang -fsanitize=fuzzer,address,undefined with the
 * sources of jail/spec and common. Every refusal says where and why; what is
 * accepted can be printed, read again, and means the same; the floor holds.
 */
#include "policy.h"
#include "policy_floor.h"

#include <stdlib.h>
#include <string.h>

/* A small world of calls: some harmless, some of the floor. */
static const char *const names[] = { "read", "write", "ioctl", "socket", "clone", "mknod", "unshare", "mount", "bpf", "clone3", "prctl" };

static int number(const char *name)
{
	for (int i = 0; i < (int)ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return strcmp(name, "elsewhere") == 0 ? POLICY_CALL_NOWHERE : POLICY_CALL_UNKNOWN;
}

struct input {
	const char *bytes;
	size_t      len;
};

static int give(void *context, const char *name, char **text, size_t *len, struct err *e)
{
	const struct input *in = context;

	if (strcmp(name, "none") == 0)
		return err_set(e, ERR_MISSING, "no policy %s.policy", name);
	*text = malloc(in->len + 1);
	memcpy(*text, in->bytes, in->len);
	*len = in->len;
	return 0;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

static bool parse(struct policy *ret, const char *bytes, size_t len)
{
	struct input         in = { bytes, len };
	scoped_policy_bundle b  = { 0 };
	struct err           e  = { 0 };

	if (policy_bundle_build(&b, "fuzz", NULL, give, &in, &e) == 0 && policy_parse(ret, &b, number, &e) == 0)
		return true;
	must(e.kind != ERR_NONE && *e.text);
	return false;
}

static void check_floor(const struct policy *p)
{
	struct policy_floor floor = policy_floor_init(number);

	for (unsigned i = 0; i < POLICY_CALLS; i++)
		must(p->call[i].verdict != POLICY_ALLOW || !policy_floor_forbids(&floor, i, NULL));
	for (size_t i = 0; i < p->clauses; i++)
		must(!policy_floor_forbids(&floor, p->clause[i].call, &p->clause[i]));
}

static char *print(const struct policy *p, size_t *len)
{
	char *text = NULL;
	FILE *out  = open_memstream(&text, len);

	must(policy_print(p, out) == 0 && policy_explain(p, stderr) == 0);
	fclose(out);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p, q;
	size_t               len, again;

	if (!parse(&p, (const char *)data, size))
		return 0;
	check_floor(&p);
	char *text = print(&p, &len);
	must(parse(&q, text, len));
	char *twice = print(&q, &again);
	must(len == again && memcmp(text, twice, len) == 0);
	free(text);
	free(twice);
	return 0;
}
