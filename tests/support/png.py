"""PNG as programs write it: decoded, so that a test can look at a picture."""
import struct
import zlib

CHANNELS = {2: 3, 6: 4} # colours; with alpha


class Png:
    """8 bits a channel, not interlaced."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:16]
        parts = list(chunks(data[8:]))
        self.width, self.height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", dict(parts)[b"IHDR"])
        assert (depth, interlaced) == (8, 0) and colours in CHANNELS, (depth, colours, interlaced)
        self.channels = CHANNELS[colours]
        self.lines = unfiltered(zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT")), self.width * self.channels, self.channels)
        assert len(self.lines) == self.height

    def pixel(self, x, y):
        """Red, green, blue."""
        return list(self.lines[y][x * self.channels:][:3])


def chunks(data):
    while data:
        length, kind = struct.unpack(">I4s", data[:8])
        body, (checksum,) = data[8:8 + length], struct.unpack(">I", data[8 + length:12 + length])
        assert zlib.crc32(kind + body) == checksum, kind
        yield kind, body
        data = data[12 + length:]


def paeth(left, above, corner):
    """Of the three the one that is next to left + above - corner."""
    return min((left, above, corner), key=lambda one: abs(left + above - corner - one))


def unfiltered(data, width, step):
    """Lines of `width` bytes; each is told as what it differs in from the byte `step` before, from the line above, or from both."""
    lines, above = [], bytes(width)
    for at in range(0, len(data), width + 1):
        kind, line = data[at], bytearray(data[at + 1:at + 1 + width])
        if kind == 2:
            line = bytearray((one + up) & 255 for one, up in zip(line, above))
        elif kind:
            for i in range(width):
                left, corner = (line[i - step], above[i - step]) if i >= step else (0, 0)
                line[i] = (line[i] + (left, None, (left + above[i]) // 2, paeth(left, above[i], corner))[kind - 1]) & 255
        lines.append(bytes(line))
        above = line
    return lines
