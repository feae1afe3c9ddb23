"""The official schemas of MCP, one for each revision: is this message of a server what its revision says?"""
import base64
import binascii
import functools
import json
import re

import jsonschema

from support import host

SCHEMAS = host.REPO / "tests" / "mcp" / "schema"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*LEGACY, MODERN)

RESULTS = { # what is asked, and the definition of its result
    "initialize": "InitializeResult", "server/discover": "DiscoverResult", "ping": "EmptyResult",
    "tools/list": "ListToolsResult", "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult", "resources/templates/list": "ListResourceTemplatesResult", "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult", "resources/unsubscribe": "EmptyResult", "logging/setLevel": "EmptyResult",
    "prompts/list": "ListPromptsResult", "prompts/get": "GetPromptResult", "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
MAY_ASK_BACK = ("tools/call", "prompts/get", "resources/read") # of the modern era: their result may be a question
NOTIFICATIONS = {
    "notifications/progress": "ProgressNotification", "notifications/cancelled": "CancelledNotification",
    "notifications/message": "LoggingMessageNotification", "notifications/resources/list_changed": "ResourceListChangedNotification",
    "notifications/resources/updated": "ResourceUpdatedNotification", "notifications/prompts/list_changed": "PromptListChangedNotification",
    "notifications/tools/list_changed": "ToolListChangedNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}
QUESTIONS = {
    "elicitation/create": "ElicitRequest", "sampling/createMessage": "CreateMessageRequest", "roots/list": "ListRootsRequest", "ping": "PingRequest",
}
ERRORS = { # of the modern era, those that have more than a code
    -32700: "ParseError", -32600: "InvalidRequestError", -32601: "MethodNotFoundError", -32602: "InvalidParamsError", -32603: "InternalError",
    -32020: "HeaderMismatchError", -32021: "MissingRequiredClientCapabilityError", -32022: "UnsupportedProtocolVersionError",
}
SPECIFIED = range(-32768, -31999) # codes that are the specifications' to give
CODES = {*ERRORS} # a modern client gets no others of these
LEGACY_CODES = {-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32022}


class Invalid(AssertionError):
    """The server has sent what its revision does not allow."""


formats = jsonschema.FormatChecker(formats=())


@formats.checks("byte", raises=binascii.Error)
def is_base64(text):
    base64.b64decode(text, validate=True)
    return True


@formats.checks("uri")
def is_uri(text):
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"\\^`]*", text) is not None


@functools.lru_cache(maxsize=None)
def schema(revision):
    return json.loads((SCHEMAS / f"{revision}.json").read_text())


@functools.lru_cache(maxsize=None)
def validator(revision, name):
    whole = schema(revision)
    place = "$defs" if "$defs" in whole else "definitions"
    assert name in whole[place], f"{revision} has no {name}"
    kind = jsonschema.Draft202012Validator if place == "$defs" else jsonschema.Draft7Validator
    return kind({"$schema": whole["$schema"], "$ref": f"#/{place}/{name}", place: whole[place]}, format_checker=formats)


@functools.lru_cache(maxsize=None)
def knows(revision, name):
    whole = schema(revision)
    return name in whole.get("$defs", whole.get("definitions"))


def check(revision, name, value, what):
    wrong = jsonschema.exceptions.best_match(validator(revision, name).iter_errors(value))
    if wrong:
        where = "/".join(map(str, wrong.absolute_path)) or "the whole"
        raise Invalid(f"{what}: no {name} of {revision}: {where}: {wrong.message[:600]}\n{json.dumps(value)[:1500]}")


def pairs_once(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Invalid(f"a key twice in {[key for key, _ in pairs]}")
    return made


def no_constant(word):
    raise Invalid(f"{word} is no JSON")


def parse(data):
    """Strict JSON of a server: UTF-8, keys once, no NaN."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=pairs_once, parse_constant=no_constant)
    except ValueError as e:
        raise Invalid(f"no JSON: {e}: {data[:300]!r}") from e


def check_response(message, revision, method):
    """A result or an error; method None: nobody knows what was asked."""
    modern = revision == MODERN
    if set(message) - {"jsonrpc", "id", "result", "error"} or ("result" in message) == ("error" in message):
        raise Invalid(f"neither one result nor one error: {json.dumps(message)[:500]}")
    if "error" in message:
        # Before 2025-11-25 an error has an id; to bytes that show none there is no such answer, and the newest legacy form is the nearest.
        like = revision if "id" in message or modern else "2025-11-25"
        check(like, "JSONRPCErrorResponse" if knows(like, "JSONRPCErrorResponse") else "JSONRPCError", message, f"answer to {method}")
        code = message["error"]["code"]
        if modern and code in ERRORS and "data" in message["error"]:
            check(revision, ERRORS[code], message if knows_whole(revision, ERRORS[code]) else message["error"], f"answer to {method}")
        if code in SPECIFIED and code not in (CODES if modern else LEGACY_CODES):
            raise Invalid(f"answer to {method}: {code} is no code for a client of {revision}")
        return
    check(revision, "JSONRPCResultResponse" if knows(revision, "JSONRPCResultResponse") else "JSONRPCResponse", message, f"answer to {method}")
    result = message["result"]
    if modern and "resultType" not in result:
        raise Invalid(f"answer to {method}: no resultType: {json.dumps(result)[:500]}")
    name = RESULTS.get(method)
    if modern and method in MAY_ASK_BACK and result["resultType"] == "input_required":
        name = "InputRequiredResult"
    if name and knows(revision, name) and (not modern or result["resultType"] in ("complete", "input_required")):
        check(revision, name, result, f"answer to {method}")


@functools.lru_cache(maxsize=None)
def knows_whole(revision, name):
    """Some definitions of errors are the message, some only its error."""
    whole = schema(revision)
    return "error" in whole["$defs"][name].get("properties", {})


def check_notification(message, revision):
    name = NOTIFICATIONS.get(message["method"])
    if name is None or not knows(revision, name):
        raise Invalid(f"{revision} has no notification {message['method']}")
    check(revision, "JSONRPCNotification", message, message["method"])
    check(revision, name, message, message["method"])


def check_question(message, revision):
    name = QUESTIONS.get(message["method"])
    if revision == MODERN or name is None or not knows(revision, name):
        raise Invalid(f"a server of {revision} may not ask {message['method']}")
    check(revision, "JSONRPCRequest", message, message["method"])
    check(revision, name, message, message["method"])


def check_structured(result, tool):
    """A tool's own promise: a successful result of a tool with an outputSchema has what that says."""
    if not tool or "outputSchema" not in tool or result.get("resultType", "complete") != "complete":
        return
    if "structuredContent" not in result:
        if not result.get("isError"):
            raise Invalid(f"{tool['name']} has an outputSchema and no structuredContent: {json.dumps(result)[:500]}")
        return
    wrong = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(tool["outputSchema"]).iter_errors(result["structuredContent"]))
    if wrong:
        raise Invalid(f"{tool['name']}: not what its outputSchema says: {'/'.join(map(str, wrong.absolute_path))}: {wrong.message[:500]}")


def check_tools(tools):
    """What no schema says of a list of tools: names once, schemas that are schemas."""
    names = [tool["name"] for tool in tools]
    if len(set(names)) != len(names):
        raise Invalid(f"a tool twice: {names}")
    for tool in tools:
        for key in ("inputSchema", "outputSchema"):
            if key in tool:
                try:
                    jsonschema.Draft202012Validator.check_schema(tool[key])
                except jsonschema.SchemaError as e:
                    raise Invalid(f"{tool['name']}: {key} is no JSON schema: {e.message[:300]}") from e
