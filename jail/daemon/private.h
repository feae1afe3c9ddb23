/* private.h - brigd for one client, with the client's own rights, until its connection closes */
#pragma once
#include "err.h"

/* fd: the text that names the connected socket. Whatever else was left open is closed. */
must_use int private_main(const char *fd, struct err *e);
