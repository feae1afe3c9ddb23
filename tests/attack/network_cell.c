/*
 * network_cell.c - one private run whose cell listens for brig-proxy, for tests/attack/test_network_cell.py
 *
 *   network_cell PROFILE PORT[,PORT...] SOCKET CODE    the program's streams are ours, and its exit status
 *
 * SOCKET: the descriptor over which the cell's listening sockets are to come; the test is the proxy. -1: they are not asked for.
 */
#define _GNU_SOURCE
#include "fd.h"
#include "mount_plan.h"
#include "profile_file.h"
#include "program_env.h"
#include "run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static _Noreturn void give_up(const struct err *e)
{
	fprintf(stderr, "network_cell: %s\n", e->text);
	exit(EXIT_FAILURE);
}

static struct net_listeners listeners_of(char *text)
{
	struct net_listeners l = { 0 };

	for (char *word = strtok(text, ","); word && l.ports < NET_PORTS_MAX; word = strtok(NULL, ","))
		l.port[l.ports++] = (uint16_t)atoi(word);
	return l;
}

static void copy(int *from, int to)
{
	char    text[4096];
	ssize_t n = read(*from, text, sizeof text);

	if (n <= 0 || write(to, text, (size_t)n) != n)
		fd_closep(from);
}

/* Until the run has ended, and both of its streams. What comes over stdin goes to the program. */
static int follow(struct run *run)
{
	int            streams[PIPES_MAX], out[2] = { -1, -1 }, to = -1, from = STDIN_FILENO;
	struct run_result end   = RUN_RESULT_NONE;
	bool           ended = false;

	while (!ended || out[0] >= 0 || out[1] >= 0) {
		struct pollfd fds[] = { { ended ? -1 : run->sock, POLLIN, 0 }, { out[0], POLLIN, 0 }, { out[1], POLLIN, 0 },
					{ to >= 0 ? from : -1, POLLIN, 0 } };

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			return EXIT_FAILURE;
		for (int i = 0; i < 2; i++)
			if (fds[1 + i].revents)
				copy(&out[i], 1 + i);
		if (fds[3].revents)
			copy(&from, to);
		if (from < 0)
			fd_closep(&to);
		if (!fds[0].revents)
			continue;
		switch (run_receive_event(run, streams, &end)) {
		case RUN_STARTED:
			memcpy(out, streams, sizeof out);
			to = streams[2];
			break;
		case RUN_ENDED:
			ended = true;
			break;
		case RUN_GOES_ON:
		case RUN_SESSION:
		case RUN_LIMIT:
			break;
		}
	}
	run_close(run);
	if (end.why.kind != ERR_NONE || end.left.kind != ERR_NONE)
		fprintf(stderr, "network_cell: %s; %s\n", end.why.text, end.left.text);
	return WIFEXITED(end.wait_status) ? WEXITSTATUS(end.wait_status) : 128 + WTERMSIG(end.wait_status);
}

static int run_it(const struct profile *p, const struct brig_paths *places, const struct net_listeners *l, int sock, char *code)
{
	static const char *const paths[] = { "/usr/bin/python3", NULL };
	char *const              argv[]  = { (char *)"python3", (char *)"-I", (char *)"-c", code, NULL }, *const envp[] = { NULL };
	struct exec_args         args;
	struct policy_bundle     policy;
	struct run               run;
	struct err               e;
	char                    *text;
	struct launch_args       order = {
		.profile = p, .policy = &policy, .limits = &p->limits, .exec_args = &args, .code_fd = -1, .files_fd = -1, .tools_fd = -1,
		.listeners = l->ports ? l : NULL, .trust_fd = -1, .stdin_pipe = true,
	};

	if (profile_policy_load(&policy, places, p, &e) < 0 || exec_args_pack(&args, &text, paths, NULL, argv, envp, &e) < 0 || exec_args_seal(&args, text, &e) < 0 || run_start_launcher(&run, &order, places, &e) < 0)
		give_up(&e);
	if (sock >= 0) {
		run_request_network_sockets(&run, sock);
		close(sock);
	}
	return follow(&run);
}

int main(int argc, char **argv)
{
	struct brig_paths    places;
	struct profile       profile;
	struct net_listeners l;
	struct err           e;

	if (argc != 5)
		return 2;
	l = listeners_of(argv[2]);
	if (brig_paths_find(&places, &e) < 0 || profile_file_load(&profile, &places, argv[1], &e) < 0)
		give_up(&e);
	return run_it(&profile, &places, &l, atoi(argv[3]), argv[4]);
}
