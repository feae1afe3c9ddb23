/*
 * refused_call.h - which calls the filter has refused to one run, and how often
 *
 * What is known of a call is what the filter has looked at: its number, and the bits of those arguments that were
 * compared. No memory of the program is read, and no text of it is kept: names come from our tables. Fixed size, no
 * pointers: it goes from process to process. Pure.
 */
#pragma once
#include "bpf.h"

#include <linux/filter.h>

enum { REFUSED_MAX = 32, REFUSED_ALIKE_MAX = 4, REFUSED_TEXT_MAX = 160 };

struct refused_call {
	uint16_t        call, errnum;
	uint32_t        count; /* stays where it cannot grow */
	struct bpf_look look;
};

struct refused_calls {
	uint32_t            n;
	/*
	 * Each once, in the order in which they came first; what finds no room is not kept. Of a call that was refused with one
	 * errno there are REFUSED_ALIKE_MAX rows, of which the last has no arguments once there were more.
	 */
	struct refused_call row[REFUSED_MAX];
};

/* What the filter answers (SECCOMP_RET_*). With an errno: it is counted. */
uint32_t refused_calls_ask(struct refused_calls *r, const struct sock_fprog *filter, const struct seccomp_data *data);

/* Of a value from another process. */
bool refused_calls_is_sound(const struct refused_calls *r);

/* The arguments that mattered, as "AF_NETLINK" or "_, SOL_SOCKET, SO_LINGER"; "" where none did. name: of the call. Returns buf. */
char *refused_call_print(const struct refused_call *c, const char *name, char *buf, size_t len);
/* And back, from the text alone. False: refused_call_print() did not write it. */
must_use bool refused_call_read(const char *text, struct bpf_look *ret);
