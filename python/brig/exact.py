"""Reads untrusted JSON as strictly as brig does: bounded before it is parsed, and without anything that two readers may understand differently."""
from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterator, List, Tuple

DEPTH_MAX = 32
WEIGHT_MAX = 1_800_000 # more than the worst that an honest runner sends: half a MiB of "[],"
_SIGNS = re.compile(rb'"[^"]*"?|([][{},])') # a text without an end matches up to the end: otherwise quadratic time


class Unusable(ValueError):
    """The data is refused; the text says why."""


def _whole(text: str) -> int:
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63: # int() takes quadratic time for long ones
        raise Unusable("a number beyond 64 bits")
    return int(text)


def _real(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Unusable("a number beyond those of JSON")
    return value


def _constant(text: str) -> Any:
    raise Unusable(f"{text} is not JSON")


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unusable("a key twice")
    return found


_decode = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_unique).decode


def _signs(data: bytes) -> Iterator[bytes]:
    """The signs outside of texts. Escapes are removed first: a pattern that knows them takes memory for each of the text's bytes."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"") # where a backslash is outside of a text, this is wrong, and JSON ends there
    return (found[1] for found in _SIGNS.finditer(plain) if found[1])


def _check_weight(data: bytes, depth_max: int) -> None:
    """Each list or object counts four: "[]," is three bytes of text, and many more once it is parsed."""
    opened = data.count(b"[") + data.count(b"{")
    if opened <= depth_max and data.count(b",") + 4 * opened <= WEIGHT_MAX:
        return # light enough even if no sign is inside a text
    depth = weight = 0
    for sign in _signs(data):
        weight += 4 if sign in b"[{" else 1
        depth += 1 if sign in b"[{" else -1 if sign in b"]}" else 0
        if depth > depth_max:
            raise Unusable(f"nested deeper than {depth_max}")
        if weight > WEIGHT_MAX:
            raise Unusable("it has too many values")


def read(data: bytes, bytes_max: int, depth_max: int = DEPTH_MAX) -> Any:
    """Returns the value, or raises Unusable."""
    if len(data) > bytes_max:
        raise Unusable(f"it has more than {bytes_max} bytes")
    if not data:
        raise Unusable("it is empty")
    _check_weight(data, depth_max)
    try:
        text = data.decode("utf-8")
        value = _decode(text)
        if "\\u" in text: # a lone surrogate cannot be encoded
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except Unusable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unusable(f"no JSON: {error}") from None
    return value
