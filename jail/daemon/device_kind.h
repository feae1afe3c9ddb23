/* device_kind.h - what kind of file system a directory lies on, without asking the server of the file system */
#pragma once
#include "defs.h"

/*
 * Does it hold what the kernel says about the host, /proc before all? That is what a cell's own namespaces hide.
 * By the numbers of statx(): statfs() waits for the server of the file system (FUSE, NFS), which may never answer.
 * One that is mounted nowhere in our sight is not known here; the process that opens it asks again, and only one run waits then.
 */
bool device_is_of_kernel(unsigned major, unsigned minor);
