/* course.h - the steps of a connection (connection.h), in their order */
#pragma once
#include "proxy_connection.h"

/* Takes ownership of fd, an accepted socket. The program connected to address and port, in host order; port 0: the
 * proxy port. */
void course_start_connection(struct run *run, int fd, uint32_t address, uint16_t port);
