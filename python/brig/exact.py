"""JSON of a stranger, as strictly as brig reads it: bounded before it is read, and nothing that two readers may understand differently."""
from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Tuple

DEPTH_MAX = 32
WEIGHT_MAX = 1_800_000 # half a MiB of "[],", which is the worst that an honest runner sends, is lighter
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*\\?(?:"|\Z)', re.DOTALL) # one without an end goes to the end: else each quote would be tried, in the square of time
_SIGNS = re.compile(rb"[][{},]")


class Unusable(ValueError):
    """Why it counts as nothing."""


def _whole(text: str) -> int:
    if len(text) > 20 or not -(1 << 63) <= int(text) < 1 << 63: # longer ones take their square of time to read
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


def _check_weight(data: bytes, depth_max: int) -> None:
    """A list or an object counts four: "[]," is three bytes, and many more once it was read."""
    opened = data.count(b"[") + data.count(b"{")
    if opened <= depth_max and data.count(b",") + 4 * opened <= WEIGHT_MAX:
        return # even if none of them is within a text
    bare = _TEXTS.sub(b"", data)
    depth = weight = 0
    for sign in _SIGNS.findall(bare):
        weight += 4 if sign in b"[{" else 1
        depth += 1 if sign in b"[{" else -1 if sign in b"]}" else 0
        if depth > depth_max:
            raise Unusable(f"nested deeper than {depth_max}")
        if weight > WEIGHT_MAX:
            raise Unusable("it has too many values")


def read(data: bytes, bytes_max: int, depth_max: int = DEPTH_MAX) -> Any:
    """The value, or Unusable."""
    if len(data) > bytes_max:
        raise Unusable(f"it has more than {bytes_max} bytes")
    if not data:
        raise Unusable("it is empty")
    _check_weight(data, depth_max)
    try:
        text = data.decode("utf-8")
        value = _decode(text)
        if "\\u" in text: # a lone half of a pair can be written no more
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except Unusable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unusable(f"no JSON: {error}") from None
    return value
