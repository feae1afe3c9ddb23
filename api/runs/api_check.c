#include "api_check.h"

#include "api_run.h"
#include "member.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CHECK_PROGRAM   "print('hello from a jail')\n"
#define CHECK_ANSWER_MS 90000 /* on a slow machine, or with a rootfs that was never read before */

struct api_check {
	FILE      *out;
	bool       is_over;
	bool       is_right;
	struct err why;
};

static void api_check_on_ended(void *owner, struct run_outcome *o)
{
	struct api_check *c = owner;

	c->is_over = true;
	if (o->fault != FAULT_NONE) {
		(void)err_set(&c->why, ERR_SETUP, "no program can run: %.400s", o->text);
		return;
	}
	c->is_right = o->verdict == VERDICT_finished && o->out_len == strlen("hello from a jail\n");
	(void)err_set(&c->why, ERR_BROKEN, "the program ended as \"%.40s\", and printed something else",
		      member_text(o->record, "exit_reason"));
	if (c->is_right)
		fprintf(c->out, "%-12s ran in %.1f ms, in the profile %s\n", "program", o->wall_ms,
			member_text(o->record, "profile"));
}

static void print_check_tokens(const struct api *a, FILE *out)
{
	char served[128];

	for (const struct api_token *t = a->tokens.row; t < a->tokens.row + a->tokens.n; t++)
		fprintf(out, "%-12s %s: %s\n", "client", t->name,
			interface_set_print(t->interfaces & a->settings->interfaces, served, sizeof served));
}

int api_check_run(struct api *a, FILE *out, struct err *e)
{
	struct api_check c       = { .out = out };
	scoped_program   p       = { .language = &languages[0] };
	int64_t          end     = loop_now_ms() + CHECK_ANSWER_MS, left;
	bool             is_private;

	print_check_tokens(a, out);
	if (program_set_code(&p, CHECK_PROGRAM, strlen(CHECK_PROGRAM), e) < 0)
		return -1;
	if (!api_run_start(a, &a->tokens.row[0], INTERFACE_NONE, &p, NULL, api_check_on_ended, &c))
		return err_set(e, ERR_LIMIT, "out of memory");
	while (!c.is_over) {
		if ((left = end - loop_now_ms()) <= 0)
			return err_set(e, ERR_SETUP, "no answer of brigd; type: brig doctor");
		if (loop_turn(&a->loop, left > INT_MAX ? INT_MAX : (int)left, e) < 0)
			return -1;
	}
	if (brigd_link_server(a->link, &is_private))
		fprintf(out, "%-12s %s%s\n", "brigd", brigd_link_server(a->link, &is_private),
			is_private ? ", a private one: a service starts runs faster, and limits their memory" : "");
	if (c.is_right)
		return 0;
	*e = c.why;
	return -1;
}
