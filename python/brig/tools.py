"""Functions of this process that programs in jails may call: their names and schemas, and which calls are allowed."""
from __future__ import annotations

import dataclasses
import fnmatch
import inspect
import math
import re
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import schema

Patterns = Union[str, Iterable[str], None]
_NAME = re.compile(r"[\w/-]+(\.[\w/-]+)*")
NAME_MAX = 128


class ToolError(Exception):
    """Raise it in a function: the program gets a ToolError with this text, and nothing else."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One call, as ask() gets it."""

    name: str
    args: Dict[str, Any]
    description: str = ""


Ask = Callable[[Call], Any]


@dataclasses.dataclass(frozen=True)
class Tool:
    """A function with a description and schemas, instead of those made from its docstring and type hints."""

    function: Callable[..., Any]
    description: str = ""
    input_schema: Optional[schema.Schema] = None
    output_schema: Optional[schema.Schema] = None


@dataclasses.dataclass(frozen=True)
class ToolLimits:
    """What one run may do with its tools. Calls beyond `calls` and `per_second` fail; beyond `bytes` the program loses its tools."""

    calls: int = 1000                   # as many other requests (search, list, describe) are allowed in addition
    at_once: int = 64                   # further calls wait
    bytes: int = 64 << 20               # each way
    per_second: Optional[float] = None  # bursts of this many calls are allowed
    seconds: Optional[float] = None     # the time limit of a coroutine's call; a plain function cannot be stopped


class _Known:
    """A tool with its name, and what is known about it."""

    def __init__(self, name: str, tool: Tool) -> None:
        if len(name) > NAME_MAX or not _NAME.fullmatch(name):
            raise ValueError(f"tools: {name[:NAME_MAX]!r} is no name; use letters, digits, _, - and /, dots between groups, at most {NAME_MAX} characters")
        self.name, self.function = name, tool.function
        try:
            self.input = tool.input_schema or schema.of_function(tool.function)
        except ValueError: # some functions that are written in C
            raise TypeError(f"tools: {name}: Python does not know its arguments; wrap it in a function with named arguments, or use Tool(function, input_schema=...)") from None
        self.output = tool.output_schema or schema.of_result(tool.function)
        self.description = tool.description or inspect.getdoc(tool.function) or ""
        self.summary = self.description.strip().partition("\n")[0][:200]
        self.signature = schema.signature_text(name, self.input, self.output)
        self.words = f"{name} {self.description}".lower()
        self.by_position = _leading_positionals(tool.function)
        self.seconds = math.inf # how long its last call took

    def call(self, args: Dict[str, Any]) -> Any:
        first = [args.pop(name) for name in self.by_position if name in args]
        return self.function(*first, **args)


def _leading_positionals(function: Callable[..., Any]) -> List[str]:
    """Arguments that cannot be given by name."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return []
    return [name for name, each in parameters.items() if each.kind is each.POSITIONAL_ONLY]


# --- from the caller's objects to tools ---

def _is_public(thing: object, name: str) -> bool:
    """Is this a public function? Properties are not read, because that would execute them."""
    if name.startswith("_"):
        return False
    found = inspect.getattr_static(thing, name)
    if isinstance(thing, types.ModuleType):
        return inspect.isfunction(found) and found.__module__ == thing.__name__
    return isinstance(found, (types.FunctionType, types.BuiltinFunctionType, types.MethodType, staticmethod, classmethod))


def _members(source: Any) -> Iterator[Tuple[str, Any]]:
    if isinstance(source, Mapping):
        yield from ((str(name), each) for name, each in source.items())
    elif isinstance(source, (list, tuple, set, frozenset)):
        yield from ((str(getattr(each, "__name__", "")), each) for each in source)
    else:
        yield from ((name, getattr(source, name)) for name in dir(source) if _is_public(source, name))


def _collect(source: Any, prefix: str) -> Iterator[_Known]:
    for name, each in _members(source):
        if isinstance(each, Tool):
            yield _Known(prefix + name, each)
        elif callable(each) and not isinstance(each, type):
            yield _Known(prefix + name, Tool(each))
        else:
            inner = list(_collect(each, f"{prefix}{name}.")) if not isinstance(each, (str, bytes, int, float, type, type(None))) else []
            if not inner:
                raise TypeError(f"tools: {prefix}{name} is neither a function nor something with functions")
            yield from inner


def _patterns(patterns: Patterns) -> Optional[List[str]]:
    return None if patterns is None else [patterns] if isinstance(patterns, str) else list(patterns)


def _matches(name: str, patterns: Optional[Sequence[str]]) -> bool:
    return any(fnmatch.fnmatchcase(name, each) for each in patterns or ())


class Toolbox:
    """
    tools: {name: function}, a list of functions, an object with methods, a module; {name: {...}} is a group.
    allow, deny: patterns of names, like "github.*". A call is denied if deny matches; otherwise allowed if allow matches; otherwise
    ask(call) decides. Without ask, it is denied if there is an allow, and allowed if there is none.
    tracebacks: when a function raises, the program gets the whole traceback.
    """

    def __init__(self, tools: Any, *, allow: Patterns = None, deny: Patterns = None, ask: Optional[Ask] = None, limits: ToolLimits = ToolLimits(),
                 tracebacks: bool = False) -> None:
        self._tools: Dict[str, _Known] = {}
        for each in _collect(tools, ""):
            if each.name in self._tools:
                raise ValueError(f"tools: {each.name} is there twice")
            self._tools[each.name] = each
        self.allow, self.deny, self.ask = _patterns(allow), _patterns(deny), ask
        self.limits, self.tracebacks = limits, tracebacks

    # --- requests of the program ---

    def get(self, name: str) -> Optional[_Known]:
        return self._tools.get(name)

    def names(self, under: str) -> List[str]:
        return sorted(name for name in self._tools if not under or name == under or name.startswith(under + "."))

    def describe(self, name: str) -> Optional[Dict[str, Any]]:
        known = self._tools.get(name)
        if known is None:
            return None
        told = {"name": name, "description": known.description, "inputSchema": known.input}
        return {**told, "outputSchema": known.output} if known.output else told

    def find(self, words: str, most: int) -> List[Dict[str, Any]]:
        """The best matches first: those with most of the words; a word in the name counts more than one in the description."""
        wanted = words.lower().split()[:32]
        scores = {name: sum(2 * (word in name.lower()) + (word in each.words) for word in wanted) for name, each in self._tools.items()}
        best = sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))
        return [{"name": name, "summary": self._tools[name].summary, "signature": self._tools[name].signature} for name in best[:most]]

    # --- permission ---

    def verdict(self, name: str) -> Optional[bool]:
        """True: allowed, False: denied, None: ask() decides."""
        if _matches(name, self.deny):
            return False
        if _matches(name, self.allow):
            return True
        return None if self.ask else self.allow is None

    def why_denied(self, name: str) -> str:
        return "denied by this run's rules" if _matches(name, self.deny) else "not among the tools that this run is allowed"


def toolbox(tools: Any, allow: Patterns, deny: Patterns, ask: Optional[Ask]) -> Optional[Toolbox]:
    """The Toolbox that the keywords of run() mean, or None."""
    if isinstance(tools, Toolbox):
        if allow is not None or deny is not None or ask is not None:
            raise TypeError("allow, deny, ask: set them in the Toolbox")
        return tools
    if tools is None:
        if allow is not None or deny is not None or ask is not None:
            raise TypeError("allow, deny, ask: they need tools=")
        return None
    return Toolbox(tools, allow=allow, deny=deny, ask=ask)
