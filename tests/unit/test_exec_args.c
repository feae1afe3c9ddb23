/* test_exec_args.c - the arguments of a program, packed by one side and split by the other */
#define _GNU_SOURCE
#include "exec_args.h"
#include "sealed.h"
#include "tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct exec_args built(char *const *argv, char *const *envp)
{
	static const char *const paths[] = { "/usr/bin/python3", NULL };
	struct exec_args         w       = EXEC_ARGS_NONE;
	char                    *text    = NULL;
	struct err               e;

	(void)!(exec_args_pack(&w, &text, paths, "/tmp", argv, envp, &e) < 0 || exec_args_seal(&w, text, &e) < 0);
	free(text);
	return w;
}

int main(void)
{
	char *const argv[] = { (char *)"python3", (char *)"", (char *)"a b", NULL },
		*const envp[] = { (char *)"K=V", NULL };
	static struct exec_lists lists;
	struct exec_args         w = built(argv, envp), wrong;
	struct err               e;
	char                     text[128] = { 0 }, *big[] = { (char *)"x", text, NULL };
	size_t                   len = 0;

	tap_ok(w.fd >= 0 && w.paths == 1 && w.argc == 3 && w.envc == 1, "what was packed is counted");
	tap_ok(sealed_check(w.fd, EXEC_ARGS_BYTES_MAX, &len, &e) == 0 && len == w.len,
	       "it is sealed, and as long as it says");
	tap_ok(write(w.fd, "x", 1) < 0 && ftruncate(w.fd, 0) < 0, "nobody can write to it or shorten it");
	tap_ok(pread(w.fd, text, sizeof text, 0) == (ssize_t)w.len && exec_args_split(&w, text, &lists),
	       "what was packed can be split");
	tap_ok(strcmp(lists.path[0], "/usr/bin/python3") == 0 && !lists.path[1] && strcmp(lists.argv[1], "") == 0 &&
		       strcmp(lists.argv[2], "a b") == 0 && !lists.argv[3] && strcmp(lists.envp[0], "K=V") == 0 &&
		       !lists.envp[1],
	       "every text arrives, empty ones too");

	wrong = w;
	wrong.argc++;
	tap_ok(!exec_args_split(&wrong, text, &lists), "a text that is not there is missed");
	wrong = w;
	wrong.envc--;
	tap_ok(!exec_args_split(&wrong, text, &lists), "a text that is left over is refused");
	wrong = w;
	wrong.len--;
	tap_ok(!exec_args_split(&wrong, text, &lists), "a text without its end is refused");
	wrong      = w;
	wrong.argc = EXEC_ARGS_ARGV_MAX + 1;
	tap_ok(!exec_args_are_bounded(&wrong), "more arguments than there is room for are refused");
	wrong      = w;
	wrong.envc = 0xffffffff;
	tap_ok(!exec_args_are_bounded(&wrong), "numbers that wrap around are refused");
	wrong       = w;
	wrong.paths = 0;
	tap_ok(!exec_args_are_bounded(&wrong), "nothing to execute is refused");
	exec_args_close(&w);

	memset(text, 'x', sizeof text - 1);
	w = built(big, envp);
	tap_ok(w.fd >= 0, "long words fit");
	exec_args_close(&w);
	w = built(&envp[1], envp);
	tap_ok(w.fd < 0, "no argument at all is refused");

	tap_ok(sealed_check(STDIN_FILENO, 10, &len, &e) < 0 && strstr(e.text, "not a memory file"),
	       "what is no memory file is not taken for one");
	w.fd = memfd_create("open", MFD_ALLOW_SEALING);
	tap_ok(sealed_check(w.fd, 10, &len, &e) < 0 && strstr(e.text, "not sealed"),
	       "one that can still change is refused");
	close(w.fd);
	w.fd = sealed_create("long", "0123456789", 10, &e);
	tap_ok(sealed_check(w.fd, 9, &len, &e) < 0 && strstr(e.text, "at most 9"), "one that is too long is refused");
	close(w.fd);
	return tap_done();
}
