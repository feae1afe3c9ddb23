/* sub_ids.h - the subordinate ids that /etc/subuid and /etc/subgid give */
#pragma once
#include "err.h"
#include "id_range.h"

/* The range for cells of root and of services (id_range_choose()). A missing file counts as an empty one. */
must_use int sub_ids_choose_for_root(struct id_range *ret, struct err *e);
/* The range of the real user. Kind MISSING, in words for the user, when there is none that belongs to the user alone. */
must_use int sub_ids_read_for_user(struct id_range *uids, struct id_range *gids, struct err *e);

/* Writes the command that gives the user a range of unused ids. Returns buf. */
char *sub_ids_format_advice(char *buf, size_t len);
