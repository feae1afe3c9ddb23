/* run_id.h - the name of a run: 122 random bits as a UUID, so that no client can guess another's */
#pragma once
#include "client_protocol.h"

must_use int run_id_make(char id[RUN_ID_LEN + 1], struct err *e);
