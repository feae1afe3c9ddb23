/* device_kind.h - what kind of file system a directory lies on, without asking the server of the file system */
#pragma once
#include "defs.h"

/*
 * True for file systems that describe the host, such as /proc, which a cell's namespaces hide. Takes the device
 * numbers of statx(): statfs() waits for the server of the file system (FUSE, NFS), which may never answer. A file
 * system that is not in this process's mount table is not recognized; the process that mounts the directory checks
 * again with statfs(), and then only one run waits.
 */
bool device_is_kernel_file_system(unsigned major, unsigned minor);
