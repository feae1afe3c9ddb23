# session_terminal.py - a command of a session at a terminal: the command's parent holds the master's end, and copies
#
# The client gets two pipes and no end of the terminal, so a program cannot give it another terminal instead. It can write, read, and set
# the size. No other process of the session has the master's end, or can take it, because this process is not dumpable.
from posix import POSIX_SPAWN_OPEN, openpty, tcgetpgrp, ttyname

fcntl = extension("fcntl")

TIOCSWINSZ, READ_WRITE = 0x5414, 2
IN, OUT = 1, 4 # of poll()
INPUT_IS_UTF8 = 0x4000
END_OF_FILE = b"\4" # Ctrl-D
COPIED_BYTES = 4 << 10 # read() of a master never returns more
HELD_BYTES = 64 << 10 # more than a terminal ever holds: 8 KiB of the slave's, and a buffer of the master's
EIO, EAGAIN = 5, 11


def set_size(fd, rows, columns):
    fcntl.ioctl(fd, TIOCSWINSZ, b"".join(number.to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0)))


def open_terminal(rows, columns):
    master, slave = openpty()
    set_size(master, rows, columns)
    termios = extension("termios")
    modes = termios.tcgetattr(slave)
    modes[0] |= INPUT_IS_UTF8
    termios.tcsetattr(slave, 0, modes)
    set_blocking(master, False)
    return master, slave


def streams_at(path):
    """File actions for posix_spawn(). The command is a session leader, so the terminal that it opens becomes its controlling terminal."""
    return [(POSIX_SPAWN_OPEN, 0, path, READ_WRITE, 0), (POSIX_SPAWN_DUP2, 0, 1), (POSIX_SPAWN_DUP2, 0, 2)]


class Terminal:
    """Copies until the command has ended and the client has its output. typed: pipe from the client; shown: pipe to it."""

    def __init__(self, channel, typed, shown, master):
        self.channel, self.typed, self.shown, self.master = channel, typed, shown, master
        self.to_master = self.to_client = b""
        self.is_killed = False
        set_blocking(shown, False)
        self.wake, self.woken = pipe()
        set_blocking(self.woken, False)
        _signal.signal(SIGCHLD, lambda *_: None)
        _signal.signal(SIGTERM, self.kill)
        _signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)

    def kill(self, *_):
        self.is_killed = True
        end_children()

    # --- messages of the server ---

    def hear(self):
        data = self.channel.recv(WORD_MAX)
        if not data:
            _exit(1) # the server has ended, and the session with it
        kind, rows, columns = (int.from_bytes(data[at:at + 4], sys.byteorder) for at in (0, 8, 12))
        if kind == RESIZE:
            set_size(self.master, rows, columns)
        else:
            self.interrupt()

    def interrupt(self):
        """Interrupts the foreground process group, as Ctrl-C does, and not the shell behind it."""
        try:
            killpg(tcgetpgrp(self.master), SIGINT)
        except OSError:
            pass

    # --- copying ---

    def type(self):
        try:
            self.to_master = self.to_master[write(self.master, self.to_master):]
        except BlockingIOError:
            pass

    def read_typed(self):
        self.to_master = read(self.typed, COPIED_BYTES)
        if not self.to_master:
            close(self.typed)
            self.typed = -1
            self.to_master = END_OF_FILE

    def read_master(self):
        """False: there was nothing to read."""
        try:
            self.to_client = read(self.master, COPIED_BYTES)
        except OSError as error:
            if error.errno not in (EIO, EAGAIN):
                raise
        return bool(self.to_client)

    def show(self):
        try:
            self.to_client = self.to_client[write(self.shown, self.to_client):]
        except BlockingIOError:
            pass
        except OSError: # the client has closed it: what comes now is dropped
            self.to_client = b""
            close(self.shown)
            self.shown = -1

    def poll(self):
        poll = select.poll()
        poll.register(self.wake, IN)
        poll.register(self.channel.fileno(), IN)
        poll.register(self.master, OUT * bool(self.to_master) | IN * (not self.to_client))
        if self.typed >= 0 and not self.to_master:
            poll.register(self.typed, IN)
        if self.shown >= 0 and self.to_client:
            poll.register(self.shown, OUT)
        return dict(poll.poll())

    def turn(self):
        ready = self.poll()
        if self.wake in ready:
            read(self.wake, COPIED_BYTES)
        if self.channel.fileno() in ready:
            self.hear()
        if ready.get(self.master, 0) & OUT:
            self.type()
        if ready.get(self.master, 0) & IN:
            self.read_master()
        if self.typed in ready:
            self.read_typed()
        if self.shown in ready:
            self.show()
        if self.shown < 0:
            self.to_client = b""

    def copy_until_end(self, leader):
        """Returns the command's status from waitpid()."""
        while True:
            pid, status = waitpid(-1, WNOHANG)
            if pid == leader:
                return status
            if not pid:
                self.turn()

    def copy_rest(self):
        """Copies what the terminal holds when all processes of the command have ended: at most HELD_BYTES, because other calls of
        the session can open the terminal and write for ever. If the call is killed, this does not wait for a client that does not read."""
        left = HELD_BYTES
        while self.shown >= 0 and not self.is_killed:
            if not self.to_client:
                if left <= 0 or not self.read_master():
                    return
                left -= len(self.to_client)
            poll = select.poll()
            poll.register(self.wake, IN) # a signal does not end poll(), which goes on after its handler
            poll.register(self.shown, OUT)
            poll.register(self.channel.fileno(), IN)
            for fd, _ in poll.poll():
                if fd == self.wake:
                    read(self.wake, COPIED_BYTES)
                else:
                    self.show() if fd == self.shown else self.hear()


def stay_at_terminal(order, channel, shown, unused, typed):
    """stay_in_pipes() for a terminal. The slave's end stays open here, so that the master gives no end of file before the command has opened it."""
    close(unused)
    try:
        master, slave = open_terminal(*order["terminal"])
        terminal = Terminal(channel, typed, shown, master)
        leader, errnum, flags = start_leader(order, streams_at(ttyname(slave)))
    except OSError as error:
        leader, errnum, flags = 0, error.errno or 5, NO_EXEC
    channel.sendmsg([packed(FAILED if errnum else STARTED, leader, errnum, flags)], [], DONTWAIT)
    if errnum:
        _exit(0)
    _signal.pthread_sigmask(UNBLOCK, [SIGTERM]) # a SIGTERM that came before the command was started takes effect now
    status = terminal.copy_until_end(leader)
    end_children()
    reap_children()
    terminal.copy_rest()
    return leader, status
