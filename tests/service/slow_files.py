"""A file system whose server answers as long as it likes, and then no more: whoever asks it something waits."""
import ctypes
import os
import struct
import tempfile
import threading

LOOKUP, GETATTR, OPEN, INIT, FLUSH, STATFS = 1, 3, 14, 26, 25, 17
NAMES = {FLUSH: "close", STATFS: "statfs", GETATTR: "stat"}
libc = ctypes.CDLL(None, use_errno=True)


def attributes(node):
    mode = 0o040755 if node == 1 else 0o100644
    return struct.pack("<QQQQQQIIIIIIIIII", node, 8, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class SlowFiles:
    """One directory with the file "program" in it, for everybody. closes: how many it answers. asked: what it was asked and did not answer."""

    def __init__(self, closes=0):
        self.folder, self.asked, self.closes = tempfile.mkdtemp(prefix="brig-test-"), [], closes
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if libc.mount(b"brig-test", self.folder.encode(), b"fuse.brig-test", 6, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                data = os.read(self.fd, 1 << 17)
            except OSError:
                return
            _, kind, unique, node = struct.unpack_from("<IIQQ", data)
            body = self.answer(kind, node)
            if body is None:
                self.asked.append(NAMES.get(kind, kind))
            else:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)

    def answer(self, kind, node):
        if kind == FLUSH and self.closes:
            self.closes -= 1
            return b""
        if kind == INIT:
            return struct.pack("<IIIIHHIIHH32x", 7, 31, 0, 0, 1, 1, 4096, 1, 0, 0)
        if kind == LOOKUP:
            return struct.pack("<QQQQII", 2, 0, 3600, 3600, 0, 0) + attributes(2)
        if kind == GETATTR and node == 2:
            return struct.pack("<QII", 3600, 0, 0) + attributes(2)
        if kind == OPEN:
            return struct.pack("<QII", 1, 0, 0)
        return None

    def hang_up(self):
        """Whoever waits is told that it is over."""
        libc.umount2(self.folder.encode(), 1) # MNT_FORCE

    def close(self):
        self.hang_up()
        libc.umount2(self.folder.encode(), 2) # MNT_DETACH
        os.close(self.fd)
        os.rmdir(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
