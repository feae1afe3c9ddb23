"""Any value becomes JSON that every reader takes, within its bounds, and says the same as json.dumps() where that says anything."""
import collections
import enum
import json
import pathlib
import random
import sys
import types

import pytest

GUEST = pathlib.Path(__file__).resolve().parents[2] / "jail/guest"


@pytest.fixture(scope="module")
def value():
    """value.py and what it stands on."""
    module = types.ModuleType("value")
    for name in "base", "value":
        exec(compile((GUEST / f"{name}.py").read_bytes(), f"/usr/lib/brig/{name}.py", "exec"), module.__dict__)
    return module


class Colour(enum.IntEnum):
    RED = 1


class Odd:
    def __init__(self, chance):
        self.text = "".join(chr(chance.choice([0, 10, 34, 92, 0x7f, 0xe9, 0x2028, 0xd800, 0x1f40d, 97])) for _ in range(chance.randrange(20)))

    def __repr__(self):
        return self.text


LEAVES = [lambda c: None, lambda c: c.choice([True, False]), lambda c: c.randrange(-10, 10), lambda c: c.getrandbits(c.randrange(1, 20_000)) * c.choice([1, -1]),
          lambda c: c.uniform(-1, 1) * 10.0 ** c.randrange(-320, 308), lambda c: c.choice([float("nan"), float("inf"), -float("inf"), -0.0]), lambda c: repr(Odd(c)), Odd,
          lambda c: Colour.RED, lambda c: bytes([c.randrange(256)]), lambda c: {c.randrange(9)}, lambda c: object, lambda c: 1j, lambda c: range(5), lambda c: "é" * c.randrange(3000)]
KEYS = [lambda c: c.randrange(5), lambda c: str(c.randrange(5)), lambda c: None, lambda c: (c.randrange(3),), lambda c: float(c.randrange(3)), lambda c: "\0" * c.randrange(3), lambda c: Odd(c)]


def make(chance, depth):
    kind = chance.randrange(8) if depth else 7
    if kind == 0:
        return [make(chance, depth - 1) for _ in range(chance.randrange(5))]
    if kind == 1:
        return tuple(make(chance, depth - 1) for _ in range(chance.randrange(5)))
    if kind == 2:
        return {chance.choice(KEYS)(chance): make(chance, depth - 1) for _ in range(chance.randrange(5))}
    if kind == 3:
        return collections.OrderedDict((chance.choice(KEYS)(chance), make(chance, depth - 1)) for _ in range(chance.randrange(3)))
    if kind == 4:
        row = [make(chance, depth - 1)]
        row.append(row)
        return row
    return chance.choice(LEAVES)(chance)


def no_doubles(pairs):
    assert len({key for key, _ in pairs}) == len(pairs), pairs
    assert not any("\0" in key for key, _ in pairs)
    return dict(pairs)


def test_whatever_it_is_it_is_strict_json_within_its_bounds(value):
    chance = random.Random(11)
    for _ in range(3000):
        made = make(chance, chance.randrange(30))
        try:
            text = value.json_of(made).encode("utf-8", "replace")
        except value.TooLarge:
            continue
        assert len(text) <= 512 << 10
        json.loads(text, parse_constant=lambda name: pytest.fail(name), object_pairs_hook=no_doubles)


def test_its_repr_is_bounded_and_text(value):
    chance = random.Random(12)
    for _ in range(3000):
        assert len(value.short(make(chance, chance.randrange(30)))) <= 4096 + 16


def plain(chance, depth):
    kind = chance.randrange(5) if depth else 4
    if kind == 0:
        return [plain(chance, depth - 1) for _ in range(chance.randrange(5))]
    if kind == 1:
        return {repr(i): plain(chance, depth - 1) for i in range(chance.randrange(5))}
    return chance.choice([None, True, chance.randrange(-1000, 1000), chance.uniform(-1e9, 1e9), "a\n\"\\\x01é\u2028\U0001f40d"])


def test_what_json_has_comes_back_as_it_was(value):
    chance = random.Random(13)
    for _ in range(2000):
        made = plain(chance, 6)
        try:
            assert json.loads(value.json_of(made)) == made
        except value.TooLarge:
            pass
        text = value.short(made)
        assert text == repr(made) or len(repr(made)) > 4000


def test_an_integer_is_a_number_exactly_as_far_as_a_double_goes(value):
    for number in (0, 1, -1, 2**53, -2**53, 2**53 + 1, -2**53 - 1, 2**64, 10**300, 10**4000, 10**5000):
        read = json.loads(value.json_of(number))
        assert isinstance(read, int) == (abs(number) <= 2**53)
        assert (read if isinstance(read, int) else int(read, 16 if "x" in read else 10)) == number


def test_floats_keep_their_last_digit(value):
    chance = random.Random(14)
    for number in [sys.float_info.max, sys.float_info.min, 5e-324, 0.1 + 0.2, *(chance.random() for _ in range(1000))]:
        assert json.loads(value.json_of(number)) == number
