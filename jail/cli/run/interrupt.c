#define _GNU_SOURCE
#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Static, because the signal handler reads it. The messages are prepared, so that the handler only calls send(). */
struct message {
	size_t len;
	char   text[128];
};
static struct {
	int            sock;
	struct message cancel, interrupt;
} to;
static volatile sig_atomic_t caught, armed;

static void send_end_request(void)
{
	const struct message *m = caught == SIGINT ? &to.interrupt : &to.cancel;

	if (armed)
		(void)!send(to.sock, m->text, m->len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void interrupt_on_signal(int number)
{
	caught = number;
	send_end_request();
}

void interrupt_install_handlers(void)
{
	struct sigaction action = { .sa_handler = interrupt_on_signal, .sa_flags = (int)SA_RESETHAND };
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old;

		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
}

static void fill_message(struct message *m, const char *op, const char *run)
{
	m->len = (size_t)snprintf(m->text, sizeof m->text, "{\"op\":\"%s\",\"run\":\"%.36s\"}", op, run);
}

void interrupt_disarm(void)
{
	armed = 0;
}

void interrupt_arm(int sock, const char *run, bool is_call)
{
	interrupt_disarm(); /* it may be armed already, from when the run waited */
	atomic_signal_fence(memory_order_seq_cst);
	to.sock = sock;
	fill_message(&to.cancel, "cancel", run);
	fill_message(&to.interrupt, is_call ? "interrupt" : "cancel", run);
	atomic_signal_fence(memory_order_release); /* the handler must not see `armed` before the messages */
	armed = 1;
	if (caught)
		send_end_request();
}

void interrupt_restore_mask(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

int interrupt_caught(void)
{
	return caught;
}
