/* init_image.h - brig-init as bytes, and as a sealed file to execute */
#pragma once
#include "err.h"

/* A memory file, the caller's. No process of a cell may find or change what PID 1 executes (CVE-2019-5736). */
must_use int init_image_open_memfd(struct err *e);
