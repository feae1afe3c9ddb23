#include "build_log.h"

#include <unistd.h>

#define LOG_MAX (64 * MIB)

bool build_log_read(int log, struct bytes *ret)
{
	struct err e;

	return log >= 0 && lseek(log, 0, SEEK_SET) >= 0 && file_read_fd(log, "log", LOG_MAX, ret, &e) == 0 && ret->len;
}
