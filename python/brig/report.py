"""What a program says of itself (brig-protocol(7), "The report"): hostile until every part of it was looked at.

The rules are those of brig(1): every key is there and no other, each of its type, no number that JSON readers disagree about. What
breaks one of them makes the whole report none.
"""
from __future__ import annotations

import json
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

REPORT_MAX = 1 << 20
DEPTH_MAX = 32
WEIGHT_MAX = 1_800_000 # half a MiB of "[],", which is the worst that an honest runner sends, is lighter
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*\\?(?:"|\Z)', re.DOTALL) # one without an end goes to the end: else each quote would be tried, in the square of time
_SIGNS = re.compile(rb"[][{},]")


class Unusable(ValueError):
    """Why a report counts as none."""


Shape = Callable[[str, Any], Any]


def _text(most: int = 16 << 10) -> Shape:
    def judge(key: str, value: Any) -> str:
        if not isinstance(value, str) or len(value.encode("utf-8")) > most:
            raise Unusable(f"{key}: expected a text of at most {most} bytes")
        return value.replace("\0", "\ufffd")
    return judge


def _number(least: Optional[int]) -> Shape:
    def judge(key: str, value: Any) -> int:
        if type(value) is not int or (least is not None and value < least):
            raise Unusable(f"{key}: expected a whole number")
        return value
    return judge


def _word(*words: str) -> Shape:
    def judge(key: str, value: Any) -> str:
        if value not in words:
            raise Unusable(f"{key}: expected one of {', '.join(words)}")
        return str(value)
    return judge


def _anything(_: str, value: Any) -> Any:
    return value


def _or_none(shape: Shape) -> Shape:
    return lambda key, value: None if value is None else shape(key, value)


def _list(shape: Shape, most: int = 1000) -> Shape:
    def judge(key: str, value: Any) -> List[Any]:
        if not isinstance(value, list) or len(value) > most:
            raise Unusable(f"{key}: expected a list of at most {most}")
        return [shape(key, one) for one in value]
    return judge


def _object(shapes: Dict[str, Shape], may_lack: Tuple[str, ...] = ()) -> Shape:
    def judge(key: str, value: Any) -> Dict[str, Any]:
        if not isinstance(value, dict):
            raise Unusable(f"{key}: expected an object")
        strange = value.keys() - shapes.keys()
        lacking = shapes.keys() - value.keys() - set(may_lack)
        if strange or lacking:
            raise Unusable(f"{key}: unknown or missing key {min(strange or lacking)!r}")
        return {name: shape(name, value[name]) for name, shape in shapes.items() if name in value}
    return judge


_count = _number(0)
_line = {"line": _or_none(_count), "offset": _or_none(_count)}
RUN = _object({
    "result": _anything,
    "result_repr": _or_none(_text(32 << 10)),
    "error": _or_none(_object({"type": _text(), "message": _text(), "traceback": _or_none(_text(128 << 10)), **_line, "text": _or_none(_text())})),
    "variables": _list(_text(400)),
    "exit_code": _or_none(_number(None)),
    "security_event": _or_none(_word("blocked_import")),
    "security_warnings": _list(_text()),
    "figures": _count,
}, may_lack=("figures",))


# --- JSON, as strictly as brig reads it ---

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


def _check_weight(data: bytes) -> None:
    """A list or an object counts four: "[]," is three bytes, and many more once it was read."""
    bare = _TEXTS.sub(b"", data)
    depth = weight = 0
    for sign in _SIGNS.findall(bare):
        weight += 4 if sign in b"[{" else 1
        depth += 1 if sign in b"[{" else -1 if sign in b"]}" else 0
        if depth > DEPTH_MAX:
            raise Unusable(f"nested deeper than {DEPTH_MAX}")
        if weight > WEIGHT_MAX:
            raise Unusable("it has too many values")


def read(data: bytes, shape: Shape) -> Dict[str, Any]:
    """The report, or Unusable."""
    if len(data) > REPORT_MAX:
        raise Unusable(f"it has more than {REPORT_MAX} bytes")
    if not data:
        raise Unusable("it is empty")
    _check_weight(data)
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_constant, object_pairs_hook=_unique)
        if "\\u" in text: # a lone half of a pair can be written no more
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except Unusable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unusable(f"no JSON: {error}") from None
    judged: Dict[str, Any] = shape("report", value)
    return judged
