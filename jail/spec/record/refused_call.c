#include "refused_call.h"

#include "policy.h"
#include "policy_value.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* --- counting --- */

static bool is_same_call(const struct refused_call *a, const struct refused_call *b)
{
	return a->call == b->call && a->errnum == b->errnum && a->look.seen == b->look.seen && memcmp(a->look.arg, b->look.arg, sizeof a->look.arg) == 0;
}

/*
 * The row with the same arguments, or, if the call and errno have REFUSED_ALIKE_MAX rows, the last of these: a program cannot
 * fill the table with one call. NULL: it needs a new row.
 */
static struct refused_call *find_row_for_call(struct refused_calls *r, const struct refused_call *c)
{
	struct refused_call *last  = NULL;
	unsigned             alike = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		struct refused_call *row = &r->row[i];

		if (row->call != c->call || row->errnum != c->errnum)
			continue;
		if (is_same_call(row, c))
			return row;
		last = row;
		alike++;
	}
	return alike == REFUSED_ALIKE_MAX ? last : NULL;
}

static void count_call(struct refused_calls *r, const struct refused_call *c)
{
	struct refused_call *row = find_row_for_call(r, c);

	if (!row && r->n < REFUSED_MAX) {
		r->row[r->n++] = *c;
		return;
	}
	if (!row)
		return;
	row->count += row->count != UINT32_MAX;
	if (!is_same_call(row, c))
		row->look = (struct bpf_look){ 0 };
}

uint32_t refused_calls_run_filter(struct refused_calls *r, const struct sock_fprog *filter,
				  const struct seccomp_data *data)
{
	struct refused_call c      = { .call = (uint16_t)data->nr, .count = 1 };
	uint32_t            answer = bpf_run_recording(filter->filter, filter->len, data, &c.look);

	c.errnum = answer & SECCOMP_RET_DATA;
	if ((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && data->nr >= 0 && data->nr < POLICY_CALLS)
		count_call(r, &c);
	return answer;
}

bool refused_calls_is_sound(const struct refused_calls *r)
{
	if (r->n > REFUSED_MAX)
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		if (r->row[i].call >= POLICY_CALLS || r->row[i].look.seen >= 1u << BPF_ARGS)
			return false;
	return true;
}

/* --- as text --- */

struct text {
	char  *buf;
	size_t len, at;
};

static void text_put(struct text *t, const char *words)
{
	int n = snprintf(t->buf + t->at, t->len - t->at, "%s", words);

	t->at += n < 0 ? 0 : (size_t)n < t->len - t->at ? (size_t)n : t->len - t->at - 1;
}

/* Prints an argument as flags only if the filter compared some of its bits; otherwise as one number. */
static void put_argument(struct text *t, const char *call, unsigned arg, const struct bpf_look *look)
{
	uint32_t    value     = look->arg[arg];
	bool        is_option = arg == 2 && (strcmp(call, "setsockopt") == 0 || strcmp(call, "getsockopt") == 0);
	const char *name      = is_option ? policy_value_sockopt_name(call, look->arg[1], value) :
		                            policy_value_name(call, arg, value);
	char        text[REFUSED_TEXT_MAX];

	if (value && look->masked & 1u << arg)
		policy_value_print_bits(call, arg, value, text, sizeof text);
	else
		snprintf(text, sizeof text, value < 10 ? "%u" : "0x%x", value);
	for (char *blank = text; (blank = strchr(blank, ' '));)
		*blank = '|';
	text_put(t, name ? name : text);
}

char *refused_call_print(const struct refused_call *c, const char *name, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };

	*buf = 0;
	for (unsigned i = 0; c->look.seen >> i; i++) {
		text_put(&t, i ? ", " : "");
		if (c->look.seen & 1u << i)
			put_argument(&t, name, i, &c->look);
		else
			text_put(&t, "_");
	}
	return buf;
}

static void or_value(void *context, uint32_t value)
{
	*(uint32_t *)context |= value;
}

/* "PROT_WRITE|PROT_EXEC" */
static bool parse_value(const char *text, size_t len, uint32_t *ret)
{
	char word[64];

	for (size_t at = 0, n; at <= len; at += n + 1) {
		n = strcspn(text + at, "|,");
		if (n == 0 || n >= sizeof word || at + n > len)
			return false;
		memcpy(word, text + at, n);
		word[n] = 0;
		if (!policy_value_for_each(word, or_value, ret))
			return false;
	}
	return true;
}

bool refused_call_parse(const char *text, struct bpf_look *ret)
{
	*ret = (struct bpf_look){ 0 };
	for (unsigned i = 0; *text; i++) {
		size_t n = strcspn(text, ",");

		if (i == BPF_ARGS)
			return false;
		if (n != 1 || *text != '_') {
			if (!parse_value(text, n, &ret->arg[i]))
				return false;
			ret->seen |= (uint8_t)(1u << i);
		}
		text += n;
		if (*text && !begins_with(text, ", "))
			return false;
		text += *text ? 2 : 0;
	}
	return true;
}
