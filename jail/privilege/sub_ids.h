/* sub_ids.h - what /etc/subuid and /etc/subgid hand out, read from there */
#pragma once
#include "err.h"
#include "id_range.h"

/* A missing file hands out nothing. */
must_use int sub_ids_of_root(struct id_range *ret, struct err *e);
/* Of the caller. Kind MISSING, in words for him, when there is nothing for him alone. */
must_use int sub_ids_of_user(struct id_range *uids, struct id_range *gids, struct err *e);

/* The line to type that gives the caller ids which nobody else has. Returns buf. */
char *sub_ids_advise(char *buf, size_t len);
