/* init_image.h - brig-init as bytes, and as a sealed file to execute */
#pragma once
#include "err.h"

/* Never the file on disk: nothing inside may find or change what PID 1 was made of (CVE-2019-5736). */
must_use int init_image_open(struct err *e);
