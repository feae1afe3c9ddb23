/* course.h - the steps of a connection (connection.h), in their order */
#pragma once
#include "connection.h"

/* fd: accepted. address, port: that the program connected to, host order; port 0: the proxy. */
void course_begin(struct run *run, int fd, uint32_t address, uint16_t port);
