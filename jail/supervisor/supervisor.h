/* supervisor.h - the process that builds and watches all cells of one profile */
#pragma once
#include "supervisor_protocol.h"

/* Never returns; the exit status is for the log. Descriptor SUPERVISOR_FD leads to the monitor. */
_Noreturn void supervisor_main(void);
