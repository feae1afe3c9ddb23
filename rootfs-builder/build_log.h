/* build_log.h - what the programs of a build have printed; not trusted */
#pragma once
#include "file.h"

/* All of it from the beginning; NUL-terminated. False when there is nothing, or it cannot be read. */
bool build_log_read(int log, struct bytes *ret);
