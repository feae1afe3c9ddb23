/* test_ticket.c - a run by ticket: what the supervisor and the fork get, and when the keeper is asked after all */
#define _GNU_SOURCE
#include "backend_service.h"
#include "fd.h"
#include "packet.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char words[] = "/usr/bin/python3\0python3\0K=V", code[] = "print(1)\n";

/* The door's side of everything, and what is at the other ends. */
struct stage {
	struct backend_service service;
	struct places          places;
	struct served_profile  profile;
	struct words           words;
	struct limits          limits;
	int                    keeper; /* the keeper's end */
	uint64_t               generation;
};

struct cell {
	int supervisor, orders, letter, out, err, in, result;
	struct keeper_seat seat;
};

static void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void open_stage(struct stage *s)
{
	int pair[2];

	memset(s, 0, sizeof *s);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
		die("socketpair");
	fields_preset(limits_fields, &s->limits);
	s->profile.index          = 3;
	s->profile.profile.warm   = WARM_DEMAND;
	s->profile.profile.limits = s->limits;
	s->keeper                 = pair[1];
	s->service                = (struct backend_service){ .keeper = pair[0], .mode = KEEPER_USER, .places = &s->places };
	ticket_box_init(&s->service.tickets, 1024);
	s->words = (struct words){ .fd = -1, .paths = 1, .argc = 1, .envc = 1, .len = sizeof words };
}

static void close_stage(struct stage *s)
{
	words_done(&s->words);
	close(s->keeper); /* its end is waited for */
	backend_service_close(&s->service);
}

static bool hear(struct stage *s)
{
	const struct backend b = backend_service(&s->service);

	return b.ops->hear(b.self);
}

static void make_pipe(int *ours, int *theirs, bool we_write)
{
	int end[2];

	if (pipe2(end, O_CLOEXEC) < 0)
		die("pipe");
	*ours   = end[we_write];
	*theirs = end[!we_write];
}

static void make_socket(int *ours, int *theirs)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	*ours   = pair[0];
	*theirs = pair[1];
}

static struct keeper_ticket ticket_word(struct stage *s, uint32_t kind)
{
	struct keeper_ticket word;

	memset(&word, 0, sizeof word);
	word.kind            = kind;
	word.profile         = s->profile.index;
	word.seat.number     = s->generation;
	word.seat.generation = s->generation;
	return word;
}

/* The door has its ticket when this returns. */
static struct cell give(struct stage *s, struct keeper_ticket *changed)
{
	int                  fds[TICKET_FDS];
	struct cell          c;
	struct err           e;
	struct keeper_ticket word;

	s->generation++;
	word   = changed ? *changed : ticket_word(s, KEEPER_TICKET);
	c.seat = word.seat;
	make_socket(&c.supervisor, &fds[TICKET_LAUNCHER]);
	make_socket(&c.orders, &fds[TICKET_ORDERS]);
	c.letter           = letter_make(&e);
	fds[TICKET_LETTER] = c.letter;
	make_pipe(&c.out, &fds[TICKET_STDOUT], true);
	make_pipe(&c.err, &fds[TICKET_STDERR], true);
	make_pipe(&c.in, &fds[TICKET_STDIN], false);
	make_pipe(&c.result, &fds[TICKET_RESULT], true);
	if (packet_send(s->keeper, &word, sizeof word, fds, TICKET_FDS) < 0 || !hear(s))
		die("ticket");
	for (size_t i = 0; i < TICKET_FDS; i++)
		if (i != TICKET_LETTER)
			close(fds[i]);
	return c;
}

static void end_cell(struct cell *c)
{
	const int fds[] = { c->supervisor, c->orders, c->letter, c->out, c->err, c->in, c->result };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
}

static bool is_closed(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR);
}

struct started {
	struct run run;
	int        streams[PIPES_MAX], r;
};

static struct started start(struct stage *s, const struct backend_order *changed)
{
	int                        code_fd = memfd_create("code", MFD_CLOEXEC);
	const struct backend_order honest  = { .profile = &s->profile, .limits = &s->limits, .words = &s->words, .words_text = words, .code_fd = code_fd,
					       .code_len = sizeof code - 1, .code = code };
	struct backend_order       o       = changed ? *changed : honest;
	const struct backend       b       = backend_service(&s->service);
	struct started             t;
	struct err                 e;

	if (o.code_fd == 0)
		o.code_fd = code_fd;
	t.r = backend_start(&b, &t.run, &o, t.streams, &e);
	backend_settle(&b);
	words_done(&s->words);
	close(code_fd);
	return t;
}

static void end_run(struct started *t)
{
	run_done(&t->run);
	for (int i = 0; i < PIPES_MAX; i++)
		fd_closep(&t->streams[i]);
}

static struct backend_order order(struct stage *s)
{
	return (struct backend_order){ .profile = &s->profile, .limits = &s->limits, .words = &s->words, .words_text = words, .code_fd = 0,
				       .code_len = sizeof code - 1, .code = code };
}

/* The next word at the keeper's, kind 0 when there is none; its descriptors are closed. */
static struct keeper_word at_keeper(struct stage *s)
{
	struct keeper_word word = { 0 };
	struct pollfd      p    = { .fd = s->keeper, .events = POLLIN };
	int                fds[PACKET_FDS_MAX];
	size_t             n;

	if (poll(&p, 1, 0) == 1 && packet_receive(s->keeper, &word, sizeof word, fds, ARRAY_LEN(fds), &n) == sizeof word)
		while (n)
			close(fds[--n]);
	return word;
}

static bool has_order(int supervisor)
{
	struct launch_order got;

	return recv(supervisor, &got, sizeof got, MSG_DONTWAIT | MSG_PEEK) == sizeof got;
}

/* --- what a ticket does --- */

static void runs_by_ticket(void)
{
	struct stage        s;
	struct cell         c;
	struct launch_order got;
	struct letter_order letter;
	char               *text, *program;
	struct started      t;

	open_stage(&s);
	c = give(&s, NULL);
	t = start(&s, NULL);
	tap_ok(t.r == 0 && t.streams[0] >= 0 && t.streams[1] >= 0 && t.streams[2] < 0, "a run by ticket has its streams at once");
	tap_ok(at_keeper(&s).kind == 0, "the keeper is asked nothing");
	tap_ok(recv(c.supervisor, &got, sizeof got, MSG_DONTWAIT) == sizeof got && got.code_len == sizeof code - 1 && got.warm &&
	               got.limits.memory_bytes == s.limits.memory_bytes && words_are_bounded(&got.words), "the supervisor has its order");
	tap_ok(letter_read(c.orders, c.letter, &letter, &text, &program) == 0 && memcmp(text, words, sizeof words) == 0 &&
	               strcmp(program, code) == 0, "the fork has its letter");
	tap_ok(write(c.out, "x", 1) == 1 && !is_closed(c.out, POLLOUT), "its stdout is read");
	tap_ok(is_closed(c.in, POLLIN) && is_closed(c.result, POLLOUT), "the streams that it did not ask for are closed");
	end_run(&t);
	tap_ok(is_closed(c.supervisor, POLLIN), "the supervisor sees its client's end");
	t = start(&s, NULL);
	tap_ok(t.r == 0 && t.streams[0] < 0 && at_keeper(&s).kind == KEEPER_RUN, "a ticket is used once, then the keeper is asked");
	end_run(&t);
	end_cell(&c);
	close_stage(&s);
}

static void has_all_streams(void)
{
	struct stage         s;
	struct cell          c;
	struct backend_order o;
	struct started       t;

	open_stage(&s);
	c             = give(&s, NULL);
	o             = order(&s);
	o.stdin_pipe  = true;
	o.result_pipe = true;
	t             = start(&s, &o);
	tap_ok(t.r == 0 && t.streams[2] >= 0 && t.streams[3] >= 0 && write(t.streams[2], "x", 1) == 1 && write(c.result, "x", 1) == 1,
	       "stdin and result are there for who asked for them, in this order");
	end_run(&t);
	end_cell(&c);
	close_stage(&s);
}

static void oldest_first(void)
{
	struct stage   s;
	struct cell    old, new;
	struct started t;

	open_stage(&s);
	old = give(&s, NULL);
	new = give(&s, NULL);
	t   = start(&s, NULL);
	tap_ok(has_order(old.supervisor) && !has_order(new.supervisor), "the oldest ticket is used first");
	end_run(&t);
	end_cell(&old);
	end_cell(&new);
	close_stage(&s);
}

/* --- when it is void --- */

static void dead_launcher(void)
{
	struct stage   s;
	struct cell    good, dead;
	struct started t;

	open_stage(&s);
	good = give(&s, NULL);
	dead = give(&s, NULL);
	end_cell(&dead);
	t = start(&s, NULL);
	tap_ok(t.r == 0 && t.streams[0] >= 0 && has_order(good.supervisor) && at_keeper(&s).kind == 0, "when a supervisor has died the next ticket is tried");
	end_run(&t);
	dead = give(&s, NULL);
	end_cell(&dead);
	t = start(&s, NULL);
	tap_ok(t.r == 0 && t.streams[0] < 0 && at_keeper(&s).kind == KEEPER_RUN, "when all have died the keeper is asked");
	end_run(&t);
	end_cell(&good);
	close_stage(&s);
}

/* The supervisor has its order by then: that its client is gone ends the cell. */
static void dead_fork(void)
{
	struct stage   s;
	struct cell    c;
	struct started t;

	open_stage(&s);
	c = give(&s, NULL);
	close(c.orders);
	c.orders = -1;
	t        = start(&s, NULL);
	tap_ok(t.r == 0 && t.streams[0] < 0 && at_keeper(&s).kind == KEEPER_RUN, "when there is no fork to read the letter the keeper is asked");
	tap_ok(is_closed(c.supervisor, POLLIN), "the supervisor of that cell has no client any more");
	end_run(&t);
	end_cell(&c);
	close_stage(&s);
}

static void called_in(void)
{
	struct stage         s;
	struct cell          c;
	struct keeper_ticket word;
	struct started       t;

	open_stage(&s);
	c    = give(&s, NULL);
	word = ticket_word(&s, KEEPER_VOID);
	word.seat.generation++;
	if (packet_send(s.keeper, &word, sizeof word, NULL, 0) < 0)
		die("void");
	tap_ok(hear(&s) && s.service.tickets.n == 1, "what is void for another cell of that seat is not void for this one");
	word.seat.generation--;
	if (packet_send(s.keeper, &word, sizeof word, NULL, 0) < 0)
		die("void");
	tap_ok(hear(&s) && s.service.tickets.n == 0 && is_closed(c.supervisor, POLLIN), "a ticket that the keeper calls in is closed");
	tap_ok(at_keeper(&s).kind == KEEPER_RETURN, "and given back, for no run has it");
	t = start(&s, NULL);
	tap_ok(t.streams[0] < 0 && at_keeper(&s).kind == KEEPER_RUN, "and not used");
	end_run(&t);
	end_cell(&c);
	close_stage(&s);
}

static void built_anew(void)
{
	struct stage         s;
	struct keeper_ticket word;
	struct cell          c;
	struct started       t;
	struct stat          st;
	char                 folder[] = "/tmp/test_ticket-XXXXXX", names[64], name[80];

	open_stage(&s);
	if (!mkdtemp(folder))
		die(folder);
	snprintf(s.places.store[0], sizeof s.places.store[0], "%s", folder);
	snprintf(names, sizeof names, "%s/names", folder);
	snprintf(name, sizeof name, "%s/basic", names);
	s.profile.profile.rootfs = (char *)"basic";
	s.service.mode           = KEEPER_SERVICE;
	if (mkdir(names, 0755) < 0 || symlink("../trees/0", name) < 0 || lstat(name, &st) < 0)
		die(name);
	s.generation = 7;
	word          = ticket_word(&s, KEEPER_TICKET);
	word.named_s  = st.st_mtim.tv_sec;
	word.named_ns = st.st_mtim.tv_nsec;
	c             = give(&s, &word);
	t             = start(&s, NULL);
	tap_ok(t.streams[0] >= 0, "a ticket of the rootfs that there is, is used");
	end_run(&t);
	end_cell(&c);
	word.named_ns ^= 1;
	c = give(&s, &word);
	t = start(&s, NULL);
	tap_ok(t.streams[0] < 0 && !has_order(c.supervisor), "a ticket of a rootfs that was built anew is not used");
	tap_ok(at_keeper(&s).kind == KEEPER_RETURN && at_keeper(&s).kind == KEEPER_RUN, "it is given back, and the keeper is asked");
	end_run(&t);
	end_cell(&c);
	unlink(name);
	c = give(&s, &word);
	t = start(&s, NULL);
	tap_ok(t.streams[0] < 0, "nor one of a rootfs that is gone");
	end_run(&t);
	end_cell(&c);
	rmdir(names);
	rmdir(folder);
	close_stage(&s);
}

/* --- what does not fit --- */

static const char *way_of(struct stage *s, const struct backend_order *o)
{
	struct cell        c = give(s, NULL);
	struct started     t = start(s, o);
	struct keeper_word word = at_keeper(s);
	const char        *way  = t.r < 0                                                  ? "none"
				  : t.streams[0] >= 0                                     ? "ticket"
				  : word.kind != KEEPER_RUN                               ? "none"
				  : word.run.seat.number == c.seat.number && word.run.seat.generation == c.seat.generation ? "keeper, with the seat"
											   : "keeper";

	end_run(&t);
	end_cell(&c);
	if ((s->service.tickets.n == 1) != (strcmp(way, "keeper") == 0))
		way = s->service.tickets.n ? "and the ticket stays" : "and the ticket is gone";
	ticket_box_done(&s->service.tickets);
	while (at_keeper(s).kind)
		;
	return way;
}

static void fits(void)
{
	struct stage         s;
	struct backend_order o;
	struct limits        less;

	open_stage(&s);
	o        = order(&s);
	o.limits = &less;
#define WITH(what) less = s.limits, what
	WITH(less.wall_ms *= 2);
	tap_is(way_of(&s, &o), "ticket", "a run may have more wall time than the profile's");
	WITH(less.cpu_ms--);
	tap_is(way_of(&s, &o), "ticket", "a run may have less CPU time than the profile's");
	WITH(less.cpu_ms++);
	tap_is(way_of(&s, &o), "keeper", "a run with more CPU time is the keeper's, and leaves the ticket");
	WITH(less.output_bytes /= 2);
	tap_is(way_of(&s, &o), "ticket", "what is kept of its output is the client's business");
	WITH(less.memory_bytes /= 2);
	tap_is(way_of(&s, &o), "keeper, with the seat", "a run with less memory is the keeper's");
	WITH(less.memory_bytes *= 2);
	tap_is(way_of(&s, &o), "keeper", "a run with more memory is the keeper's, and leaves the ticket");
	WITH(less.pids--);
	tap_is(way_of(&s, &o), "keeper", "a run with fewer processes is the keeper's, and leaves the ticket");
	WITH(less.cpus++);
	tap_is(way_of(&s, &o), "keeper, with the seat", "a run with more of a CPU is the keeper's");
	WITH(less.files--);
	tap_is(way_of(&s, &o), "keeper", "a run with fewer descriptors is the keeper's, and leaves the ticket");
	WITH(less.tmp_bytes *= 2);
	tap_is(way_of(&s, &o), "keeper", "a run with a larger /tmp is the keeper's, and leaves the ticket");
	WITH(less.workspace_bytes *= 2);
	tap_is(way_of(&s, &o), "keeper", "a run with a larger workspace is the keeper's, and leaves the ticket");
	WITH(less.inodes++);
	tap_is(way_of(&s, &o), "keeper", "a run with more files is the keeper's, and leaves the ticket");
	WITH((void)0);
	o.cold = true;
	tap_is(way_of(&s, &o), "ticket", "a cold run may have one, too");
	o.cold                  = false;
	s.profile.profile.warm = WARM_NEVER;
	tap_is(way_of(&s, &o), "keeper", "every run of a profile that is never warm is the keeper's");
	s.profile.profile.warm = WARM_DEMAND;
	o.code_fd               = -1;
	tap_is(way_of(&s, &o), "keeper", "so is a command");
	close_stage(&s);
}

static void not_taken(void)
{
	struct stage         s;
	struct keeper_ticket word;
	struct cell          c;

	open_stage(&s);
	s.service.tickets.most = 0;
	c                      = give(&s, NULL);
	tap_ok(s.service.tickets.n == 0 && is_closed(c.supervisor, POLLIN) && at_keeper(&s).kind == KEEPER_RETURN, "a ticket for which there is no room goes back");
	end_cell(&c);
	word = ticket_word(&s, KEEPER_TICKET);
	if (packet_send(s.keeper, &word, sizeof word, NULL, 0) < 0)
		die("ticket");
	tap_ok(hear(&s) && at_keeper(&s).kind == KEEPER_RETURN, "so does one that came without its descriptors");
	shutdown(s.keeper, SHUT_RDWR);
	tap_ok(!hear(&s), "the keeper's end is heard");
	close_stage(&s);
}

int main(void)
{
	runs_by_ticket();
	has_all_streams();
	oldest_first();
	dead_launcher();
	dead_fork();
	called_in();
	built_anew();
	fits();
	not_taken();
	return tap_done();
}
