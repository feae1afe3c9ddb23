/* build_log.h - the output of the programs of a build; not trusted */
#pragma once
#include "file.h"

/* Reads all of it, NUL-terminated. False when it is empty, or cannot be read. */
bool build_log_read(int log, struct bytes *ret);
