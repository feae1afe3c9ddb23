# value.py - a value as strict JSON if it is JSON, otherwise as a bounded repr
#
# Objects of the program are read with the methods of the built-in types, because those of a subclass may loop, print or lie.
# The object's own methods are used only where there is no JSON for it: its repr(), str() for WRITTEN_OUT, item() of a numpy scalar.
WRITTEN_OUT = "datetime", "decimal", "fractions", "uuid", "pandas._libs.tslibs.timestamps", "pandas._libs.tslibs.timedeltas"
STOPS = ()     # exceptions from a repr() that end the whole report (context.py)
BITS_MAX = 13000 # beyond it Python refuses to write an integer in decimal


class TooLarge(Exception):
    pass


def integer_text(number):
    return hex(number) if number.bit_length() > BITS_MAX else int.__repr__(number)


def float_text(number):
    if number != number:
        return '"NaN"'
    if number - number != 0:
        return '"Infinity"' if number > 0 else '"-Infinity"'
    return float.__repr__(number)


def plain_number(value):
    """What a scalar of numpy stands for, in Python's own types; else None. Its repr() names numpy's type since numpy 2."""
    kind = type(value)
    if module_of(kind) == "numpy" and hasattr(kind, "item") and getattr(value, "shape", None) == ():
        item = value.item()
        return item if type(item) in (int, float, bool, str, complex) else None
    return None


# --- JSON ---

class Json:
    """Writes one value, or raises TooLarge when it exceeds RESULT_MAX."""

    def __init__(self):
        self.pieces, self.left, self.path, self.is_cut = [], RESULT_MAX, [], False

    def put(self, text):
        self.left -= len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        if self.left < 0:
            raise TooLarge
        self.pieces.append(text)

    def text(self, text):
        if len(text) > self.left:
            raise TooLarge
        self.put(json_text(text))

    def integer(self, number):
        if number.bit_length() > 4 * self.left:
            raise TooLarge
        text = integer_text(number)
        self.put(text if -SAFE_INTEGER <= number <= SAFE_INTEGER else f'"{text}"')

    def key(self, key, taken):
        """Writes a key as json.dumps() does. If two keys have the same text, the second one gets an apostrophe."""
        if is_a(key, str):
            text = str.__str__(key)
        elif key is None or key is True or key is False:
            text = "null" if key is None else "true" if key else "false"
        elif is_a(key, int):
            text = integer_text(int.__int__(key))
        elif is_a(key, float):
            text = float_text(float.__float__(key)).strip('"')
        elif (number := plain_number(key)) is not None:
            return self.key(number, taken)
        else:
            text = short(key, LINE_MAX)
        text = text.replace("\0", "\ufffd") # readers of the report refuse NUL in a key
        while text in taken:
            text += "'"
        taken.add(text)
        self.text(text)

    def enter(self, value, size):
        """False if the container was written as text instead, because it is nested too deeply or contains itself."""
        if size > self.left:
            raise TooLarge
        if len(self.path) < DEPTH_MAX and not any(value is above for above in self.path):
            self.path.append(value)
            return True
        self.text(short(value, LINE_MAX))
        self.is_cut |= len(self.path) == DEPTH_MAX
        return False

    def sequence(self, value, kind):
        if self.enter(value, kind.__len__(value)):
            self.put("[")
            for i, item in enumerate(kind.__getitem__(value, slice(None))):
                if i:
                    self.put(", ")
                self.value(item)
            self.put("]")
            self.path.pop()

    def mapping(self, value):
        taken = set()
        if self.enter(value, dict.__len__(value)):
            self.put("{")
            for i, (key, item) in enumerate(list(dict.items(value))):
                if i:
                    self.put(", ")
                self.key(key, taken)
                self.put(": ")
                self.value(item)
            self.put("}")
            self.path.pop()

    def value(self, value):
        if value is None or value is True or value is False:
            self.put("null" if value is None else "true" if value else "false")
        elif is_a(value, str):
            self.text(str.__str__(value))
        elif is_a(value, int):
            self.integer(int.__int__(value))
        elif is_a(value, float):
            self.put(float_text(float.__float__(value)))
        elif is_a(value, list):
            self.sequence(value, list)
        elif is_a(value, tuple):
            self.sequence(value, tuple)
        elif is_a(value, dict):
            self.mapping(value)
        elif (number := plain_number(value)) is not None:
            self.value(number)
        elif module_of(type(value)) in WRITTEN_OUT:
            self.text(written_out(value))
        else:
            self.text(short(value))


def json_of(value):
    return json_and_cut(value)[0]


def json_and_cut(value):
    """Its text, and a sentence if that is not all of the value, or ""."""
    json = Json()
    json.value(value)
    return "".join(json.pieces), f"the result is nested deeper than {DEPTH_MAX}: what is deeper is there as a text" if json.is_cut else ""


# --- repr ---

class Short:
    """A bounded repr: of built-in types it never makes more text than it shows."""
    BRACKETS = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: ("frozenset({", "})")}

    def __init__(self, most):
        self.pieces, self.left, self.path = [], most, []

    def put(self, text):
        if len(text) > self.left:
            self.pieces.append(text[:self.left] + " ...")
            raise TooLarge
        self.left -= len(text)
        self.pieces.append(text)

    def text(self, value):
        self.put(repr(value[:self.left]) if len(value) > self.left else repr(value)) # with its quotes the cut text is too long, so put() raises

    def items(self, value, kind):
        for i, item in enumerate(dict.items(value) if kind is dict else kind.__iter__(value)):
            if i:
                self.put(", ")
            if kind is dict:
                self.value(item[0])
                self.put(": ")
                item = item[1]
            self.value(item)
        if kind is tuple and kind.__len__(value) == 1:
            self.put(",")

    def container(self, value, kind):
        opening, closing = self.BRACKETS[kind]
        self.put(opening)
        if len(self.path) == DEPTH_MAX or any(value is above for above in self.path):
            self.put("...")
        else:
            self.path.append(value)
            self.items(value, kind)
            self.path.pop()
        self.put(closing)

    def large(self, value):
        """Writes a large instance of a subclass, whose own repr would make all of the text. False if the value is none."""
        kind = next((kind for kind in self.BRACKETS if is_a(value, kind) and kind.__len__(value) > self.left), None)
        if kind is not None:
            self.put(f"{type_name(type(value))}(")
            self.container(value, kind)
            self.put(")")
        return kind is not None

    def value(self, value):
        kind = type(value)
        if kind in (str, bytes, bytearray):
            self.text(value)
        elif kind is int:
            self.put(integer_text(value) if value.bit_length() <= 4 * self.left else f"<an integer of {value.bit_length()} bits>")
        elif kind in self.BRACKETS and value:
            self.container(value, kind)
        elif not self.large(value):
            self.put(own_repr(value))


def written_out(value):
    """As print() shows it: 2026-01-31, 0.10. Its repr() names the class and is in result_repr."""
    try:
        text = str(value)
    except BaseException:
        text = ""
    return cut(text, REPR_MAX) if text else short(value)


def own_repr(value):
    try:
        return repr(value)
    except STOPS:
        raise
    except BaseException as error:
        return f"<{type_name(type(value))} object whose repr() raised {type_name(type(error))}>"


def short(value, most=REPR_MAX):
    writer = Short(most - 8)
    try:
        writer.value(value)
    except TooLarge:
        pass
    except RuntimeError: # a thread changed it meanwhile
        writer.pieces.append(" ...")
    return "".join(writer.pieces)


def module_of(kind):
    """kind.__module__ if it is a string; a metaclass may return anything, or raise."""
    try:
        module = kind.__module__
    except BaseException:
        return None
    return module if type(module) is str else None


def type_name(kind):
    """As in a traceback."""
    name, module = type.__dict__["__qualname__"].__get__(kind), module_of(kind)
    return name if module in (None, "builtins", "__main__") else f"{module}.{name}"
