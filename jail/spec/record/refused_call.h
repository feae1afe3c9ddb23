/*
 * refused_call.h - which calls the filter has refused to one run, and how often
 *
 * A row has what the filter compared: the number of the call, and bits of its arguments. The memory of the program is never
 * read; names come from our tables. Fixed size, no pointers: processes send it to each other. Pure.
 */
#pragma once
#include "bpf.h"

#include <linux/filter.h>

enum { REFUSED_MAX = 32, REFUSED_ALIKE_MAX = 4, REFUSED_TEXT_MAX = 160 };

struct refused_call {
	uint16_t        call, errnum;
	uint32_t        count; /* stays at its maximum */
	struct bpf_look look;
};

struct refused_calls {
	uint32_t            n;
	/*
	 * In the order of the first refusal; when the table is full, new ones are not kept. A call and errno has at most
	 * REFUSED_ALIKE_MAX rows with different arguments; further arguments are counted in its last row, which then shows none.
	 */
	struct refused_call row[REFUSED_MAX];
};

/* The answer of the filter (SECCOMP_RET_*). An answer with an errno is counted. */
uint32_t refused_calls_run_filter(struct refused_calls *r, const struct sock_fprog *filter,
				  const struct seccomp_data *data);

/* Checks a value from another process. */
bool refused_calls_is_sound(const struct refused_calls *r);

/* The compared arguments, like "AF_NETLINK" or "_, SOL_SOCKET, SO_LINGER"; "" when there are none. name: of the call. Returns buf. */
char *refused_call_print(const struct refused_call *c, const char *name, char *buf, size_t len);
/* Parses such a text again, without look->masked. False: refused_call_print() cannot have written it. */
must_use bool refused_call_parse(const char *text, struct bpf_look *ret);
