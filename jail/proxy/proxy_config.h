/* proxy_config.h - the sealed configuration, read once */
#pragma once
#include "proxy_protocol.h"

/* A mapping, for as long as the process runs. NULL: *e has what is wrong with it. */
must_use const struct proxy_config *proxy_config_map(int fd, struct err *e);
