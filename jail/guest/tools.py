# tools.py - the module `tools` of a run with tools: looks like a module of functions, and asks the other side once for each name
#
# It is a builtin, so it needs no import, and the program's own variables and modules of that name come first. Nothing is asked until
# a name is used, so thousands of tools cost nothing.
ABOUT = """Functions that run outside of this jail.

tools.NAME(argument=value)       calls one; in a coroutine: await tools.NAME(...)
tools.GROUP.NAME(...)            those of a server or a group
tools.call("NAME", {...})        the same, for a name that is not an identifier
tools.search("words")            finds tools: name, summary, signature
tools.list()                     all names; tools.list("GROUP")
tools.describe("NAME")           description and schemas of a tool
help(tools.NAME)                 the same as text

A call that fails raises ToolError; a call that is not allowed raises ToolDenied."""
HINT = 'tools.list() has all names, tools.search("words") finds some'


class Picture(dict):
    """An image of a tool, {"image/png": base64}: shown as an image, and printed without its bytes."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": repr(self), **self}

    def __repr__(self):
        return "{" + ", ".join(f"{key!r}: <{len(value)} characters of base64>" if is_image(key, value) else f"{key!r}: {value!r}" for key, value in self.items()) + "}"


class Blocks(list):
    """What a tool has answered, where that is more than text: where it is shown, its first image stands for it."""

    def _repr_mimebundle_(self, include=None, exclude=None):
        image = next((each for each in self if type(each) is Picture), {})
        return {**image, "text/plain": repr(self)}


def is_image(key, value):
    return key in ("image/png", "image/jpeg") and type(value) is str


def with_images(result):
    if type(result) is dict and any(is_image(key, value) for key, value in result.items()):
        return Picture(result)
    if type(result) is list and any(type(each) is dict and type(with_images(each)) is Picture for each in result):
        return Blocks(with_images(each) if type(each) is dict else each for each in result)
    return result


def result_of(name, answer):
    """The result in an answer; raises the error in it."""
    error = answer.get("error")
    if error is None:
        if "result" not in answer:
            raise ToolError(name, "the answer has no result", "lost")
        return with_images(answer["result"])
    kind, message = (error.get("kind"), error.get("message")) if type(error) is dict else (None, None)
    raise error_of(name, kind if kind in KINDS else "tool", message if type(message) is str else "no reason was given")


class Tool:
    """One tool, as a function."""

    def __init__(self, bridge, told):
        self._bridge, self._schema = bridge, told.get("inputSchema")
        self.__name__ = self.__qualname__ = self._name = told["name"]
        self.__module__ = "tools"
        self._text = f"{self._name}{signature_text(self._schema)}"
        self.__doc__ = self._doc(told.get("description"))

    def _doc(self, description):
        lines = [description if type(description) is str and description else "(no description)", "", self._text]
        rows = [(name, schema["description"]) for name, schema, _ in ordered(self._schema) if type(schema) is dict and type(schema.get("description")) is str]
        return "\n".join(lines + [f"    {name}: {text}" for name, text in rows])

    @property
    def __signature__(self):
        from inspect import Parameter, Signature
        rows = [(name, schema, must) for name, schema, must in ordered(self._schema) if name.isidentifier()]
        try:
            return Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=type_text(schema),
                                        default=Parameter.empty if must else schema.get("default", ...) if type(schema) is dict else ...)
                              for name, schema, must in rows])
        except ValueError: # a name is a keyword of Python
            return Signature([Parameter("arguments", Parameter.VAR_KEYWORD)])

    def __repr__(self):
        return f"<tool {self._text}>"

    def _bind(self, args, named):
        """The arguments by their names."""
        names = [name for name, _, _ in ordered(self._schema)]
        if len(args) > len(names):
            raise ToolError(self._name, f"at most {len(names)} arguments, not {len(args)}", "bad_arguments")
        given = dict(zip(names, args))
        twice = next((name for name in named if name in given), None)
        if twice is not None:
            raise ToolError(self._name, f"{twice}: is given twice", "bad_arguments")
        return {**given, **named}

    def _line(self, arguments):
        """The line to send, without its id. Raises ToolError if the arguments are not JSON or do not fit the schema."""
        made, known, must = {}, properties_of(self._schema), required_of(self._schema)
        for name, value in arguments.items():
            if value is None and name in known and name not in must and not may_be_null(known[name]):
                continue # None leaves the argument out
            try:
                made[key_of(name)] = plain(value)
            except NoJson as error:
                raise ToolError(self._name, f"{name}: {error}", "bad_arguments") from None
        wrong = find_mismatch(self._schema, made)
        if wrong:
            raise ToolError(self._name, f"{wrong}; it is {self._text}", "bad_arguments")
        return f'"op": "call", "name": {written(self._name)}, "args": {written(made)}'

    def __call__(self, /, *args, **named):
        return self._call(self._bind(args, named))

    def _call(self, arguments):
        body = self._line(arguments)
        events = sys.modules.get("asyncio.events")
        loop = events._get_running_loop() if events else None
        if loop is not None:
            return self._await(loop, body)
        return result_of(self._name, self._named(self._bridge.ask, body))

    async def _await(self, loop, body):
        try:
            answer = await self._bridge.ask_in(loop, body)
        except ToolError as error:
            raise self._with_name(error) from None
        return result_of(self._name, answer)

    def _with_name(self, error):
        return error if error.name else error_of(self._name, error.kind, error.message)

    def _named(self, ask, body):
        try:
            return ask(body)
        except ToolError as error:
            raise self._with_name(error) from None


# --- names ---

def identifier_of(name):
    return "".join(sign if sign.isalnum() else "_" for sign in name)


class Catalogue:
    """Asks the other side about tools, and keeps the tools that it has described."""

    def __init__(self, bridge):
        self.bridge, self.known = bridge, {}

    def ask(self, op, key, about, **words):
        body = "".join(f', "{word}": {written(value)}' for word, value in words.items())
        answer = self.bridge.ask(f'"op": "{op}"{body}')
        if "error" in answer:
            result_of(about, answer)
        if key not in answer:
            raise ToolError(about, "the answer has no " + key, "lost")
        return answer[key]

    def names(self, under=""):
        found = self.ask("names", "names", under, under=under)
        return [name for name in found if type(name) is str] if type(found) is list else []

    def describe(self, name):
        told = self.ask("describe", "tool", name, name=name)
        if type(told) is not dict or type(told.get("name")) is not str:
            raise ToolError(name, "the description is none", "lost")
        return told

    def tool(self, name):
        if name not in self.known:
            self.known[name] = Tool(self.bridge, self.describe(name))
        return self.known[name]

    def search(self, words, max=20):
        return self.ask("find", "tools", "search", words=str(words), max=int(max))


class Group(MODULE):
    """Tools whose names have a common prefix. A tool or group that was used becomes an attribute, so it is asked for once."""

    def __init__(self, catalogue, prefix, names):
        super().__init__("tools" + "".join("." + identifier_of(part) for part in prefix.split(".") if part), None)
        self.__dict__.update(_catalogue=catalogue, _prefix=prefix, _names=names, __path__=[])

    def _parts(self):
        """{attribute that a program can write: part of a tool's name}"""
        parts = [name[len(self._prefix):].partition(".")[0] for name in self._names]
        return {**{identifier_of(part): part for part in reversed(parts)}, **{part: part for part in parts}}

    def _of(self, part, names):
        """The tool or the group with this name, or None."""
        name = self._prefix + part
        if name in names:
            return self._catalogue.tool(name)
        below = [each for each in names if each.startswith(name + ".")]
        return Group(self._catalogue, name + ".", below) if below else None

    def _find(self, part):
        return self._of(self._parts().get(part, part), self._names)

    def __dir__(self):
        return sorted(part for part in self._parts() if part.isidentifier())

    def __getattr__(self, part):
        found = None if part[:1] == "_" else self._find(part)
        if found is None:
            raise AttributeError(f"no tool {self._prefix}{part}; {HINT}")
        self.__dict__[part] = found
        return found

    def __getitem__(self, name):
        return self._catalogue.tool(self._prefix + name)

    def __repr__(self):
        return f"<{self.__name__}: functions outside of this jail>"


class Tools(Group):
    def __init__(self, bridge):
        catalogue = Catalogue(bridge)
        super().__init__(catalogue, "", None)
        self.__dict__.update(__doc__=ABOUT, _helpers={
            "search": catalogue.search, "list": self._list, "describe": catalogue.describe, "call": self._call, "ToolError": ToolError, "ToolDenied": ToolDenied})

    def _list(self, group=""):
        return self._catalogue.names(group)

    def _call(self, name, arguments=None, /, **named):
        return self._catalogue.tool(name)._call({**(arguments or {}), **named})

    def _forget(self):
        """Drops what earlier calls of the context have asked for: this call may have other tools."""
        for part in [part for part in self.__dict__ if part[:1] != "_"]:
            del self.__dict__[part]
        self._catalogue.known.clear()
        self.__dict__["_names"] = None

    def _parts(self):
        if self._names is None:
            self.__dict__["_names"] = self._catalogue.names()
        return super()._parts()

    def __dir__(self):
        return sorted({*super().__dir__(), *self._helpers})

    def _find(self, part):
        """A tool comes before a helper of its name. All names are asked for last: the tool's own name may not be an identifier."""
        found = self._of(part, self._catalogue.names(part)) or self._helpers.get(part)
        return found or super()._find(part)


# --- where a program finds it ---

class Later(MODULE):
    """The module json, which is imported when it is used."""

    def __getattribute__(self, name):
        if name in ("__class__", "__dict__"):
            return MODULE.__getattribute__(self, name)
        really = __import__("json")
        self.__dict__.update(really.__dict__)
        self.__class__ = MODULE
        return getattr(really, name)


class Finder:
    """The last finder: `import tools` gives the tools, unless the program has a module of that name."""

    def __init__(self, tools):
        self.tools = tools

    def find_spec(self, name, path=None, target=None):
        return sys.modules["_frozen_importlib"].ModuleSpec(name, self) if name == "tools" else None

    def create_module(self, spec):
        return self.tools

    def exec_module(self, module):
        pass


def open_tools(fd):
    bridge = Bridge(fd)
    register_at_fork(after_in_child=bridge.leave)
    show_tools(Tools(bridge))


def show_tools(tools):
    if not any(type(finder) is Finder for finder in sys.meta_path):
        sys.meta_path.append(Finder(tools))
    for name, thing in ("tools", tools), ("ToolError", ToolError), ("ToolDenied", ToolDenied), ("json", Later("json")):
        setattr(builtins, name, thing)
