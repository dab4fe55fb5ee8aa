"""Makes requests use the ids and words of the prepared organization, which no generator could guess.

Only requests are restricted, and only here: answers are checked against the unmodified document.
"""
import copy
import datetime
import json
import os
import pathlib

import schemathesis
from hypothesis import strategies

WORLD = json.loads(pathlib.Path(os.environ["TIDEWATCH_WORLD"]).read_text())
UNKNOWN = "0123456789abcdef01234567"

# The kind of id in a path by the parameter's name, unless the operation determines it.
PATH = {
    "bucketId": "bucket", "sourceId": "source", "ruleId": "dueRule", "deliveryId": "delivery", "file": "asset",
    "token": "link",
}
# The kind of the last id in the path, by operation.
OWN = {
    "showBucket": "bucket", "updateBucket": "disposableBucket", "deleteBucket": "disposableBucket",
    "updateSource": "disposableSource", "deleteSource": "disposableSource", "deleteBucketKey": "disposableBucketKey",
    "deleteOrganizationKey": "disposableOrganizationKey", "rotateBucketKey": "disposableBucketKey",
    "rotateOrganizationKey": "disposableOrganizationKey",
    "showRule": "rule", "updateRule": "rule", "deleteRule": "disposableRule", "listRuleHistory": "rule", "acknowledgeRule": "rule",
    "listCycles": "dueRule", "testVerdicts": "dueRule",
    "listRuleDeliveries": "rule", "showSilence": "silence", "deleteSilence": "disposableSilence",
    "showAnnotation": "annotation", "updateAnnotation": "disposableAnnotation", "deleteAnnotation": "disposableAnnotation",
    "showBoard": "board", "updateBoard": "disposableBoard", "deleteBoard": "disposableBoard", "copyBoard": "board",
    "exportBoard": "board", "shareBoard": "disposableBoard", "listShares": "board", "deleteShare": "disposableShare",
    "showWebhook": "webhook", "updateWebhook": "webhook",
    "deleteWebhook": "disposableWebhook", "listDeliveries": "webhook", "testWebhook": "webhook",
    "changePlan": "organization",
    "updateMember": "disposableMember", "removeMember": "disposableMember", "createPasswordReset": "disposableMember",
    "showInvitation": "invitation", "withdrawInvitation": "disposableInvitation",
    "showSession": "session", "endSession": "session",
}
# Routes that agents call.
OF_AGENTS = {"/write", "/api/v2/write", "/query", "/ping", "/api/v1/write", "/v1/metrics"}
FILES = {"/api/buckets/{bucketId}/import"}
# Members of bodies, at any depth.
MEMBERS = {"bucketId": "bucket", "dataSourceId": "source"}
FIELDS = ["level", "door", "open"]
CONDITION = "level is above 3"
# No control characters, and one that is not white space.
NAME = "^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$"


@schemathesis.hook
def before_load_schema(context, raw_schema):
    schemas = raw_schema["components"]["schemas"]
    close_answers(schemas)
    # Their bodies and errors are those of other protocols, which `tests/http` tests.
    for path in [path for path in raw_schema["paths"] if path in OF_AGENTS | FILES or path.startswith("/prometheus/")]:
        del raw_schema["paths"][path]
    for path, methods in raw_schema["paths"].items():
        for operation in methods.values():
            set_parameter_schemas(operation)
            body = operation.get("requestBody")
            if body:
                content = body["content"]["application/json"]
                content["schema"] = prepared_schema(content["schema"], schemas)
                for example in [content] + list(content.get("examples", {}).values()):
                    for member in ("example", "value"):
                        if member in example:
                            example[member] = prepared_example(example[member])
    def body_of(path, method):
        return raw_schema["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]

    for member in ("currentPassword", "newPassword"):
        body_of("/api/auth/password", "post")["properties"][member]["enum"] = [WORLD["password"]]
    # A link may lead to the prepared organization's own plan: a smaller plan would limit later requests that the
    # schemas allow.
    body_of("/api/operator/organizations/{id}", "patch")["properties"]["plan"] = {"enum": ["Enterprise"]}


def close_answers(schemas):
    """Clients must accept unknown members; here a member that is missing in the document is a violation."""
    for name, schema in schemas.items():
        # The account is also a part of the larger answer of a log-in.
        if name.endswith(("Answer", "View")) and "properties" in schema and name != "AccountAnswer":
            schema["additionalProperties"] = False


def ids(kind):
    return WORLD[kind] + [UNKNOWN]


def set_parameter_schemas(operation):
    in_path = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "path"]
    for parameter in in_path:
        kind = PATH.get(parameter["name"])
        if parameter is in_path[-1]:
            kind = OWN.get(operation["operationId"], kind)
        if parameter is in_path[0] and operation["operationId"] == "redeliver":
            kind = "webhook"
        if parameter is in_path[0] and operation["operationId"] == "deleteShare":
            kind = "board"
        if parameter["name"] == "name":
            parameter["schema"] = {"type": "string", "enum": ["host", "level"]}
            continue
        if parameter["name"] == "index":
            parameter["schema"] = {"type": "integer", "enum": [0, 1, 99]}
            continue
        parameter["schema"] = {"type": "string", "enum": ids(kind)}
    # Which version a board has depends on the requests before, and which dimensions there are on the points.
    variable = ("If-Match", "dimensions")
    operation["parameters"] = [part for part in operation.get("parameters", []) if part["name"] not in variable]
    for parameter in operation["parameters"]:
        if parameter["in"] == "query" and parameter["name"] in ("bucketId", "dataSourceId", "startTime", "endTime"):
            parameter["schema"] = prepared_member(parameter["name"], parameter["schema"])


def prepared_schema(schema, schemas):
    """The complete schema of a request with the prepared ids and words."""
    if "$ref" in schema:
        target = schemas[schema["$ref"].rsplit("/", 1)[1]]
        return prepared_schema({**target, **{name: value for name, value in schema.items() if name != "$ref"}}, schemas)
    schema = copy.deepcopy(schema)
    for combined in ("oneOf", "anyOf", "allOf"):
        if combined in schema:
            schema[combined] = [prepared_schema(part, schemas) for part in schema[combined]]
    for single in ("items", "additionalProperties"):
        if isinstance(schema.get(single), dict):
            schema[single] = prepared_schema(schema[single], schemas)
    for name, member in schema.get("properties", {}).items():
        schema["properties"][name] = prepared_member(name, prepared_schema(member, schemas))
    return schema


def prepared_member(name, member):
    if name in MEMBERS:
        return choice(member, ids(MEMBERS[name]))
    # No prepared source has dimensions, and which names are known no schema expresses.
    if name == "groupByDimensions":
        return {"type": "null"}
    if name == "dimensions" and "Conditions" in json.dumps(member):
        return {"type": ["object", "null"], "maxProperties": 0}
    if name == "dataSourceIds":
        return {**member, "items": {"type": "string", "enum": ids("source")}}
    if name == "field":
        return choice(member, FIELDS)
    if name == "alertIds":
        return {**member, "items": {"type": "string", "enum": ids("rule")}}
    if name == "fields":
        return {**member, "items": {"type": "string", "enum": FIELDS[:1]}}
    if name in ("url", "webhookUrl"):
        return choice(member, ["https://receiver.invalid/hooks"])
    if name == "timezone":
        return choice(member, ["Europe/Stockholm", "Etc/GMT+5"])
    if name == "variables":
        # Names are unique, which no schema expresses.
        return {**member, "maxItems": 1}
    if name == "panels":
        return choice_of_panels(member)
    if name == "cursor":
        return {"type": "null"}
    # The other formats of webhooks need members of their own, which do not go with these.
    if name == "format" and "csv" not in json.dumps(member):
        return choice(member, ["standard", "slack", "teams", "ntfy"])
    if name in ("template", "routingKey"):
        return {"type": "null"}
    if name == "expiresAt":
        # Of a link to a board, at most 366 days away.
        return choice(member, [WORLD["soon"]])
    if name == "until":
        return choice(member, ["2100-01-01T00:00:00Z", "2099-12-31T23:59:59.5+02:00"])
    if name == "at":
        return choice(member, ["2026-01-01T00:00:00Z", "2025-12-31T23:59:59.5+02:00"])
    if name == "startTime":
        return choice(member, ["2001-02-03T04:05:06Z", "2026-01-01T00:00:00+02:00"])
    if name == "endTime":
        return choice(member, ["2027-02-03T04:05:06.789Z", "2100-01-01T00:00:00Z"])
    if name == "offset" and "example" in json.dumps(member):
        return choice(member, ["7d", "90m"])
    if name == "expression":
        return choice(member, ["level * 2 + 1", "max(`level`, -3) / abs(level)"])
    if name == "expressions":
        # Two of one name are refused, which no schema expresses.
        for part in member.get("oneOf", [member]):
            if "items" in part:
                part["items"]["properties"]["name"]["pattern"] = NAME
        return {**member, "maxItems": 1}
    if name == "groupBy" and "example" in json.dumps(member):
        # Not what a rule says of it.
        return choice(member, ["minute", "15m", "36h", "52w", "quarter", "all"])
    if name == "top":
        # Most aggregations are of numbers.
        return with_field(member, FIELDS[:1])
    if name == "range":
        return choice(member, ["24h", "52w"])
    # Not the words of a board's variable.
    if name == "values" and any(part.get("type") == "array" for part in member.get("oneOf", [])):
        return member
    if name == "values" and "minProperties" in member:
        # What a rule says of conditions.
        return {**CONDITIONS, "type": "object", "minProperties": 1}
    if name == "values" and "gte" in json.dumps(member):
        return {**CONDITIONS, "type": ["object", "null"]}
    if name == "values":
        level = {"type": "number", "minimum": -1e300, "maximum": 1e300}
        return {
            "type": "object", "required": ["level"], "additionalProperties": False,
            "properties": {"level": level, "door": {"type": ["string", "null"]}, "open": {"type": ["boolean", "null"]}},
        }
    return member


def with_field(member, fields):
    """An object, or one of several schemas, whose member `field` is one of these."""
    if "oneOf" in member:
        return {**member, "oneOf": [with_field(part, fields) for part in member["oneOf"]]}
    known = member.get("properties", {})
    if "field" not in known:
        return member
    return {**member, "properties": {**known, "field": choice(known["field"], fields)}}


def choice_of_panels(member):
    """Panels that fit the grid and ask for the prepared bucket."""
    nullable = "null" in member.get("type", []) or {"type": "null"} in member.get("oneOf", [])
    return {"enum": [[], WORLD["panels"], *([None] if nullable else [])]}


NUMBER = {"type": "number"}
# Conditions on a field of numbers that the source declares.
CONDITIONS = {
    "additionalProperties": False,
    "properties": {
        "level": {
            "type": "object", "minProperties": 1, "additionalProperties": False,
            "properties": {
                **{name: NUMBER for name in ("gt", "gte", "lt", "lte", "eq", "neq")},
                "in": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 1000},
            },
        },
    },
}


def is_nested(value):
    return isinstance(value, dict) and any(isinstance(member, dict) for member in value.values())


def choice(member, words):
    """A schema of these words, and of null if it is permitted."""
    nullable = "null" in member.get("type", []) or {"type": "null"} in member.get("oneOf", [])
    return {"type": ["string", "null"], "enum": words + [None]} if nullable else {"type": "string", "enum": words}


def prepared_example(value):
    """An example of the document, with the prepared ids."""
    if isinstance(value, dict):
        return {
            name: WORLD[MEMBERS[name]][0] if name in MEMBERS
            else WORLD["source"] if name == "dataSourceIds"
            else None if name == "groupByDimensions" or (name == "dimensions" and isinstance(member, dict))
            else WORLD["rule"] if name == "alertIds"
            else {"level": {"gte": 1.5}} if name == "values" and is_nested(member)
            else {"level": 1.5} if name == "values"
            else "level / 2" if name == "expression"
            else "level" if name == "field"
            else ["level"] if name == "fields"
            else CONDITION if name in ("condition", "naturalLanguageQuery")
            else "https://receiver.invalid/hooks" if name in ("url", "webhookUrl")
            else prepared_example(member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [prepared_example(entry) for entry in value]
    return value


def timestamps():
    """A schema of timestamps within the accepted years."""
    return strategies.datetimes(
        min_value=datetime.datetime(1700, 1, 1), max_value=datetime.datetime(2260, 1, 1)
    ).map(lambda at: at.isoformat() + "Z")


schemathesis.openapi.format("date-time", timestamps())


@schemathesis.auth(refresh_interval=None).apply_to(operation_id="changePassword")
class OtherAccount:
    """The account whose password may be changed: each change ends the previous token."""

    def get(self, case, context):
        return WORLD["otherToken"]

    def set(self, case, data, context):
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def after_call(context, case, response):
    if case.operation.definition.raw.get("operationId") == "changePassword" and response.status_code == 200:
        WORLD["otherToken"] = response.json()["token"]
