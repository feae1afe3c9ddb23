/* device_kind.h - what kind of file system a directory lies on, without a word to who serves it */
#pragma once
#include "defs.h"

/*
 * Does it hold what the kernel says about the host, /proc before all? That is what a cell's own namespaces hide.
 * By the numbers of statx(): statfs() waits for whoever serves the file system, for ever if he likes that (FUSE, NFS).
 * One that is mounted nowhere in our sight is not known here; the launcher asks again, and who waits then is one run.
 */
bool device_is_of_kernel(unsigned major, unsigned minor);
