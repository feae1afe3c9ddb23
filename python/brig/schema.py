"""Makes a JSON schema of a function's arguments, and checks arguments against a schema."""
from __future__ import annotations

import collections.abc
import functools
import inspect
import json
import types
import typing
from typing import Any, Callable, Dict, List, Literal, Optional, Union

Schema = Dict[str, Any]
_UNIONS = [Union, getattr(types, "UnionType", Union)] # types.UnionType: int | str, since Python 3.10
_SIMPLE: Dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", None: "null"}
_LISTS = list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection
_DICTS = dict, collections.abc.Mapping, collections.abc.MutableMapping
STEPS_MAX = 200000 # more values are refused, as what is not checked does not pass


# --- of a function ---

def of_type(hint: Any) -> Schema:
    """The schema of a type hint; {}, which accepts anything, for an unknown one."""
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"): # Annotated[int, "how many"]
        about = next((each for each in hint.__metadata__ if isinstance(each, str)), None)
        return {**of_type(hint.__origin__), **({"description": about} if about else {})}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in _UNIONS:
        return {"anyOf": [of_type(each) for each in args]}
    if hint in _LISTS or origin in _LISTS:
        items = of_type(args[0]) if args and not isinstance(args[0], typing.TypeVar) and (origin is not tuple or len(args) == 2) else {}
        return {"type": "array", **({"items": items} if items else {})}
    if hint in _DICTS or origin in _DICTS:
        values = of_type(args[1]) if len(args) == 2 and not isinstance(args[1], typing.TypeVar) else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    return {}


def _hints(function: Callable[..., Any]) -> Dict[str, Any]:
    """Evaluates each hint by itself: one that this Python cannot evaluate leaves only its own argument without a type."""
    if not hasattr(function, "__annotations__") or isinstance(function, functools.partial): # an object that can be called
        function = getattr(function, "func", getattr(type(function), "__call__", function))
    found = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        only = types.SimpleNamespace(__annotations__={name: hint})
        try:
            found.update(typing.get_type_hints(only, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True))
        except Exception: # evaluating a hint can raise anything
            continue
    return found


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def of_function(function: Callable[..., Any]) -> Schema:
    """The schema of an object with a property for each argument."""
    hints, known, must, others = _hints(function), {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            others = True
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            known[name] = of_type(hints.get(name, Any))
            if parameter.default is parameter.empty:
                must.append(name)
            elif _is_json(parameter.default):
                known[name]["default"] = parameter.default
    return {"type": "object", "properties": known, **({"required": must} if must else {}), "additionalProperties": others}


def of_result(function: Callable[..., Any]) -> Optional[Schema]:
    return of_type(_hints(function).get("return", Any)) or None


# --- as text ---

_WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None"}


def type_text(schema: Any, depth: int = 0) -> str:
    if not isinstance(schema, dict) or depth > 3:
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(each) for each in schema["enum"])[:100]
    for word in "anyOf", "oneOf":
        if isinstance(schema.get(word), list):
            return " | ".join(dict.fromkeys(type_text(each, depth + 1) for each in schema[word][:6]))[:100]
    names = schema.get("type")
    text = " | ".join(_WORDS.get(name, "any") if isinstance(name, str) else "any" for name in (names if isinstance(names, list) else [names]))
    return f"list[{type_text(schema['items'], depth + 1)}]" if text == "list" and isinstance(schema.get("items"), dict) else text


def signature_text(name: str, schema: Schema, result: Optional[Schema]) -> str:
    known, must = schema.get("properties") or {}, schema.get("required") or []
    parts = [f"{each}: {type_text(of)}" + ("" if each in must else f" = {of['default']!r}" if isinstance(of, dict) and "default" in of else " = ...")
             for each, of in sorted(known.items(), key=lambda item: item[0] not in must)]
    return f"{name}({', '.join(parts)[:1000]})" + (f" -> {type_text(result)}" if result else "")


# --- of arguments ---

class Mismatch(ValueError):
    """The arguments do not fit. The text begins with the name of the argument."""


_KINDS: Dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str), "boolean": lambda value: isinstance(value, bool), "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list), "object": lambda value: isinstance(value, dict),
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()), "number": lambda value: type(value) in (int, float),
}


class _Check:
    """Checks the common part of schemas: types, choices, properties, items. The function must check the rest."""

    def __init__(self) -> None:
        self.steps = 0

    def value(self, schema: Any, value: Any, where: str) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Mismatch(f"{where or 'arguments'}: more than {STEPS_MAX} values to check; send fewer at once")
        if not isinstance(schema, dict):
            return
        names = schema.get("type")
        names = names if isinstance(names, list) else [names] if isinstance(names, str) else []
        if names and not any(_KINDS.get(str(name), lambda _: True)(value) for name in names):
            raise Mismatch(f"{where or 'arguments'}: expected {' or '.join(map(str, names))}, not {type(value).__name__}")
        choices = schema.get("enum")
        if isinstance(choices, list) and not any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in choices):
            raise Mismatch(f"{where or 'arguments'}: expected one of {json.dumps(choices)[:400]}")
        for word in "anyOf", "oneOf":
            if isinstance(schema.get(word), list):
                self.any(schema[word], value, where)
        if isinstance(value, dict):
            self.object(schema, value, where)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for i, item in enumerate(value):
                self.value(schema["items"], item, f"{where}[{i}]")

    def any(self, schemas: List[Any], value: Any, where: str) -> None:
        failures = []
        for each in schemas:
            try:
                return self.value(each, value, where)
            except Mismatch as failure:
                failures.append(str(failure))
        if failures:
            raise Mismatch("; or ".join(dict.fromkeys(failures))[:400])

    def object(self, schema: Schema, value: Dict[str, Any], where: str) -> None:
        known, others, dot = schema.get("properties") or {}, schema.get("additionalProperties", True), f"{where}." if where else ""
        for name in schema.get("required") or []:
            if name not in value:
                raise Mismatch(f"{dot}{name}: is missing")
        for name, item in value.items():
            if name in known:
                self.value(known[name], item, f"{dot}{name}")
            elif others is False:
                raise Mismatch(f"{dot}{name[:100]}: no such argument")
            else:
                self.value(others, item, f"{dot}{name[:100]}")


def check(schema: Schema, arguments: Dict[str, Any]) -> None:
    """Raises Mismatch if the arguments do not fit."""
    _Check().value(schema, arguments, "")
