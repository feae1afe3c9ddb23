/* run_id.h - the name of a run: 122 random bits as a UUID, so that no client can guess another's */
#pragma once
#include "err.h"

enum { RUN_ID_SIZE = 37 }; /* RUN_ID_LEN and its NUL */

must_use int run_id_make(char id[RUN_ID_SIZE], struct err *e);
