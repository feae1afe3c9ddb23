#define _GNU_SOURCE
#include "run_id.h"

#include <stdio.h>
#include <sys/random.h>

int run_id_make(char id[RUN_ID_SIZE], struct err *e)
{
	unsigned char b[16];

	if (getrandom(b, sizeof b, 0) != sizeof b)
		return err_sys(e, "no random bytes for a run id");
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122, version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(id, RUN_ID_SIZE, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		 b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}
