"""The report of a program about itself (brig-protocol(7), "The report"): hostile until every part of it was checked.

The rules are those of brig(1): all keys and no others, each of its type, and no number that JSON readers disagree about. A report that
breaks one of them counts as none.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import exact
from .exact import Unusable

REPORT_MAX = 8 << 20
RESULT_MAX, DATUM_MAX = 1 << 20, 2 << 20 # bytes of text in the result, and in one datum of a bundle
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


def _text_bytes(value: Any) -> int:
    """The bytes of all texts in a value; exact.read() has limited the number of the other values."""
    if isinstance(value, str):
        return len(value.encode("utf-8"))
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    return sum(_text_bytes(key) + _text_bytes(one) for key, one in value.items()) if isinstance(value, dict) else 0


def _anything(most: int) -> Shape:
    def judge(key: str, value: Any) -> Any:
        if _text_bytes(value) > most:
            raise Unusable(f"{key}: more than {most} bytes of text")
        return value
    return judge


_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")


def _base64(key: str, value: Any) -> str:
    text: str = _text(DATUM_MAX)(key, value)
    if not text or len(text) % 4 or not _BASE64.fullmatch(text):
        raise Unusable(f"{key}: expected base64")
    return text


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


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unusable(f"{key}: expected true or false")
    return value


_count = _number(0)
_MIMES: Dict[str, Shape] = {
    **{mime: _text(DATUM_MAX) for mime in ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript")},
    **{mime: _base64 for mime in ("image/png", "image/jpeg", "application/pdf")},
    **{mime: _anything(DATUM_MAX) for mime in ("application/json", "application/vnd.plotly.v1+json")},
}
_bundle = _object(_MIMES, may_lack=tuple(_MIMES))
_line = {"line": _or_none(_count), "offset": _or_none(_count)}
RUN = _object({
    "result": _anything(RESULT_MAX),
    "result_repr": _or_none(_text(32 << 10)),
    "error": _or_none(_object({"type": _text(), "message": _text(), "traceback": _or_none(_text(128 << 10)), **_line, "text": _or_none(_text())})),
    "variables": _list(_text(400)),
    "exit_code": _or_none(_number(None)),
    "security_event": _or_none(_word("blocked_import")),
    "security_warnings": _list(_text()),
    "figures": _count,
    "displays": _list(_bundle, 32),
    "bundle": _bundle,
    "left_out": _list(_text(1024), 100),
    "written": _list(_object({"path": _text(), "bytes": _count, "shown": _flag}), 200),
    "workspace": _list(_text(1024), 20),
}, may_lack=("figures", "displays", "bundle", "left_out", "written", "workspace"))


_finding = _object({**_line, "message": _text()})
CHECK = _object({
    "valid": _flag,
    "message": _text(),
    "errors": _list(_finding),
    "warnings": _list(_finding),
    "syntax_error": _or_none(_object({"message": _text(), **_line, "text": _or_none(_text())})),
    "line_count": _count,
    "character_count": _count,
    "estimated_complexity": _text(),
    "imports": _list(_text(1024)),
    "recommendations": _list(_text()),
})


def read(data: bytes, shape: Shape) -> Dict[str, Any]:
    """The report, or Unusable."""
    judged: Dict[str, Any] = shape("report", exact.read(data, REPORT_MAX))
    return judged
