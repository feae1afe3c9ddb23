"""What clients of the first release take: each answer to a connection whose hello had no version has these keys and no other.

They refuse an answer with a key that they do not know. The shapes are theirs and stay as they are: a key that a later release adds comes after a
hello with a version (brig-protocol(7), VERSIONS), and not into this file.
"""
import functools
import json
import pathlib

IS = {
    "text": lambda value: isinstance(value, str),
    "count": lambda value: type(value) is int and value >= 0,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "bool": lambda value: isinstance(value, bool),
    "any": lambda value: True,
    "texts": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "counts": lambda value: isinstance(value, dict) and all(map(IS["count"], value.values())),
    "object": lambda value: isinstance(value, dict),
    "table": lambda value: isinstance(value, dict),
    "rows": lambda value: isinstance(value, list),
}


@functools.cache
def shapes():
    """reply, event, report: {name: {key: [type, need, keys of it]}}; error: {key: ...}."""
    return json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())


def refuses(shape, value, where):
    """Why such a client refuses it, or None."""
    if strange := value.keys() - shape.keys():
        return f"{where}: {min(strange)}: no such key"
    return next(filter(None, (refuses_key(*row, value, key, f"{where}: {key}") for key, row in ((key, (*row, None)[:3]) for key, row in shape.items()))), None)


def refuses_key(kind, need, inner, value, key, where):
    if key not in value or (value[key] is None and need == "null"):
        return None if key in value or need == "may" else f"{where}: missing"
    if not IS[kind](value[key]):
        return f"{where}: {value[key]!r} is no {kind}"
    rows = value[key] if kind == "rows" else [value[key]] if kind == "table" else []
    return next(filter(None, (refuses(inner, each, where) for each in rows)), None)


def check(answer):
    """Returns which answer it is: a name of a reply or an event, or "error"."""
    kind = next(kind for kind in ("reply", "event", "error") if kind in answer)
    name = kind if kind == "error" else answer[kind]
    if kind == "reply" and name not in shapes()[kind]: # of a request that they do not have
        return name
    why = refuses(shapes()[kind] if kind == "error" else shapes()[kind].get(name, {}), answer, name)
    assert why is None, f"clients of the first release refuse this: {why}\n{answer}"
    return name


def check_report(name, report):
    why = refuses(shapes()["report"][name], report, f"report of {name}")
    assert why is None, f"clients of the first release refuse this: {why}\n{report}"
