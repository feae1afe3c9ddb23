# schema.py - checks a tool's arguments against its JSON schema before they are sent, and shows them as a signature
#
# The schema comes from a server. The check is a convenience for the program: the other side checks again. So unknown keywords are
# ignored, patterns are ignored (one can take for ever), and a check that does not end, because references form a circle, passes.
STEPS_MAX = 20000
SHOWN_MAX = 400
KINDS_OF_JSON = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}
SHORT_NAMES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict", "null": "None"}
AN = {"integer": "an integer", "array": "a list", "object": "a dict", "string": "a text", "null": "None"}


class Mismatch(Exception):
    pass


class Endless(Exception):
    pass


def is_of_type(value, name):
    if name == "integer":
        return type(value) is int or (type(value) is float and value.is_integer())
    if name == "number":
        return type(value) in (int, float)
    kind = KINDS_OF_JSON.get(name)
    return kind is None or type(value) is kind # an unknown type accepts every value


def is_same(one, other):
    """Equal in JSON, where true is not 1."""
    return one == other and (type(one) is bool) == (type(other) is bool)


def brief(value):
    return cut(written(value), 60)


class Schema:
    """One check. "$ref" points into `root`."""

    def __init__(self, root):
        self.root, self.steps = root, 0

    def target(self, reference):
        if type(reference) is not str or reference[:2] not in ("#", "#/"):
            return {}
        at = self.root
        for name in reference[2:].split("/") if len(reference) > 1 else ():
            name = name.replace("~1", "/").replace("~0", "~")
            at = at.get(name, {}) if type(at) is dict else {}
        return at

    def check(self, schema, value, where):
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Endless
        if type(schema) is not dict:
            return self.refuse(where, "is not wanted") if schema is False else None
        if "$ref" in schema:
            self.check(self.target(schema["$ref"]), value, where)
        self.check_type(schema, value, where)
        self.check_choices(schema, value, where)
        if type(value) is str:
            self.check_size(schema, value, where, "minLength", "maxLength", "characters")
        elif type(value) is list:
            self.check_list(schema, value, where)
        elif type(value) is dict:
            self.check_object(schema, value, where)
        elif type(value) in (int, float):
            self.check_number(schema, value, where)

    def refuse(self, where, why):
        raise Mismatch(f"{where}: {why}" if where else why)

    def check_type(self, schema, value, where):
        names = schema.get("type")
        names = names if type(names) is list else [names] if type(names) is str else []
        if names and not any(is_of_type(value, name) for name in names):
            self.refuse(where, f"expected {' or '.join(AN.get(str(name), f'a {name}') for name in names)}, not {brief(value)}")

    def check_choices(self, schema, value, where):
        choices = schema.get("enum")
        if type(choices) is list and not any(is_same(value, choice) for choice in choices):
            self.refuse(where, f"expected one of {cut(', '.join(map(brief, choices)), SHOWN_MAX)}, not {brief(value)}")
        if "const" in schema and not is_same(value, schema["const"]):
            self.refuse(where, f"expected {brief(schema['const'])}, not {brief(value)}")
        for each in schema["allOf"] if type(schema.get("allOf")) is list else ():
            self.check(each, value, where)
        for word in "anyOf", "oneOf":
            if type(schema.get(word)) is list and schema[word]:
                self.check_any(schema[word], value, where)

    def check_any(self, schemas, value, where):
        """oneOf is checked like anyOf: more than one may match."""
        failures = []
        for each in schemas:
            try:
                return self.check(each, value, where)
            except Mismatch as failure:
                failures.append(str(failure))
        raise Mismatch(cut("; or ".join(dict.fromkeys(failures)), SHOWN_MAX))

    def check_size(self, schema, value, where, least, most, what):
        few, many = schema.get(least), schema.get(most)
        if type(few) is int and len(value) < few:
            self.refuse(where, f"at least {few} {what}, not {len(value)}")
        if type(many) is int and len(value) > many:
            self.refuse(where, f"at most {many} {what}, not {len(value)}")

    def check_list(self, schema, value, where):
        self.check_size(schema, value, where, "minItems", "maxItems", "items")
        first = schema.get("prefixItems")
        first = first if type(first) is list else []
        for i, item in enumerate(value):
            self.check(first[i] if i < len(first) else schema.get("items"), item, f"{where}[{i}]")

    def check_object(self, schema, value, where):
        known = schema.get("properties")
        known = known if type(known) is dict else {}
        dot = f"{where}." if where else ""
        for name in schema["required"] if type(schema.get("required")) is list else ():
            if name not in value:
                self.refuse(f"{dot}{name}", "is missing")
        others = schema.get("additionalProperties")
        has_patterns = "patternProperties" in schema
        for name, item in value.items():
            if name in known:
                self.check(known[name], item, f"{dot}{name}")
            elif others is False and not has_patterns:
                self.refuse(f"{dot}{name}", f"no such argument; there is {cut(', '.join(known), SHOWN_MAX) or 'none'}")
            elif type(others) is dict:
                self.check(others, item, f"{dot}{name}")

    def check_number(self, schema, value, where):
        for word, is_beyond, text in (("minimum", lambda most: value < most, "at least"), ("maximum", lambda most: value > most, "at most"),
                                      ("exclusiveMinimum", lambda most: value <= most, "more than"), ("exclusiveMaximum", lambda most: value >= most, "less than")):
            bound = schema.get(word)
            if type(bound) in (int, float) and is_beyond(bound):
                self.refuse(where, f"expected {text} {bound}, not {value}")


def find_mismatch(schema, arguments):
    """What is wrong with the arguments, or None."""
    try:
        Schema(schema).check(schema, arguments, "")
    except Mismatch as failure:
        return str(failure)
    except (Endless, RecursionError):
        pass # the other side decides
    return None


def may_be_null(schema):
    return find_mismatch(schema, None) is None if type(schema) is dict else True


# --- signatures ---

def properties_of(schema):
    found = schema.get("properties") if type(schema) is dict else None
    return found if type(found) is dict else {}


def required_of(schema):
    found = schema.get("required") if type(schema) is dict else None
    return found if type(found) is list else []


def type_text(schema, depth=0):
    if type(schema) is not dict or depth > 3:
        return "any"
    if type(schema.get("enum")) is list:
        return cut(" | ".join(map(brief, schema["enum"])), 100)
    for word in "anyOf", "oneOf":
        if type(schema.get(word)) is list:
            return cut(" | ".join(dict.fromkeys(type_text(each, depth + 1) for each in schema[word][:6])), 100)
    names = schema.get("type")
    names = names if type(names) is list else [names]
    text = " | ".join(SHORT_NAMES.get(name, "any") if type(name) is str else "any" for name in names)
    return f"list[{type_text(schema['items'], depth + 1)}]" if text == "list" and type(schema.get("items")) is dict else text


def parameter_text(name, schema, is_required):
    text = f"{name}: {type_text(schema)}"
    if is_required:
        return text
    has_preset = type(schema) is dict and "default" in schema
    return f"{text} = {cut(repr(schema['default']), 60) if has_preset else '...'}"


def ordered(schema):
    """(name, schema, is_required): those that must be given first."""
    known, must = properties_of(schema), required_of(schema)
    rows = [(name, known[name], name in must) for name in known]
    return sorted(rows, key=lambda row: not row[2])


def signature_text(schema):
    return f"({cut(', '.join(parameter_text(*row) for row in ordered(schema)), 1000)})"
