#include "policy_file.h"

#include "file.h"
#include "trust.h"

#include <errno.h>
#include <stdio.h>

int policy_file_read(void *context, const char *name, char **text, size_t *len, struct err *e)
{
	for (const char *const *dir = context; *dir; dir++) {
		struct bytes bytes;
		char         path[4096];

		if (!**dir || snprintf(path, sizeof path, "%s/%s.policy", *dir, name) >= (int)sizeof path)
			continue;
		if (trust_read(path, POLICY_SOURCE_MAX, &bytes, e) == 0) {
			*text = bytes.data;
			*len  = bytes.len;
			return 0;
		}
		if (e->errnum != ENOENT)
			return -1;
	}
	return err_set(e, ERR_MISSING, "no policy %s.policy beside the profiles", name);
}
