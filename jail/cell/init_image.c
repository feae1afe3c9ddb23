#define _GNU_SOURCE
#include "init_image.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* 6.3 */
#endif

__asm__(".section .rodata\n"
	".global init_image_start, init_image_end\n"
	".balign 16\n"
	"init_image_start:\n"
	".incbin \"" BRIG_INIT_FILE "\"\n"
	"init_image_end:\n"
	".previous\n");
extern const char init_image_start[] __attribute__((visibility("hidden")));
extern const char init_image_end[] __attribute__((visibility("hidden")));

int init_image_open_memfd(struct err *e)
{
	scoped_fd fd = memfd_create("brig-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL) /* kernels before 6.3 do not know the flag, and need none */
		fd = memfd_create("brig-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(e, "set-up step init-image: memfd_create (vm.memfd_noexec must not be 2)");
	/* cppcheck-suppress comparePointers ; two labels around the same bytes */
	if (file_write_all(fd, init_image_start, (size_t)(init_image_end - init_image_start)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, "set-up step init-image");
	return fd_take(&fd);
}
