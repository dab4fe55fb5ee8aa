"""Uses `tidewatch mcp` as a model's host would, by the official client. Called by run.py in its environment.

usage: session.py BINARY SERVER_ADDRESS
"""
import asyncio
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import httpx2
import jsonschema
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from world import HOTTEST, POINTS, RULES, World

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/mcp/client.json"
DEFAULT_ADDRESS = "http://127.0.0.1:8080"
TOOLS = {"list_buckets", "list_sources", "list_rules", "query", "due", "verdict"}


async def done(client, tool, **arguments):
    """The JSON of a call, and its hint."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.content[0].text)
    hint = result.content[1].text if len(result.content) > 1 else None
    return json.loads(result.content[0].text), hint


async def failed(client, tool, **arguments):
    """The message of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result.content)
    return result.content[0].text


async def evaluate(client, schema):
    """Finds due rules, reads, and posts verdicts; the outcomes by name."""
    outcomes = {}
    due, _ = await done(client, "due", claimSeconds=60)
    for rule in due["evaluations"]:
        values = []
        for each in rule["inputs"]:
            jsonschema.validate(each["query"], schema)
            rows, _ = await done(client, "query", **each["query"])
            values += [row["values"][each["field"]] for row in rows["data"]]
        assert len(values) == POINTS, len(values)
        threshold = rule["parameters"]["value"]
        outcome = "met" if max(values) > threshold else "not_met"
        evidence = {"currentValue": max(values), "threshold": threshold, "operator": "gt", "explanation": "the maximum"}
        verdict, _ = await done(client, "verdict", ruleId=rule["ruleId"], outcome=outcome, evidence=evidence)
        outcomes[rule["name"]] = (outcome, verdict["evaluation"]["triggered"])
    return outcomes


def of_example(binary, base, key):
    """What a host starts by the example's configuration, with this program, address and key in it."""
    server = json.loads(EXAMPLE.read_text())["mcpServers"]["tidewatch"]
    assert server["command"] == "tidewatch", server
    arguments = [base if argument == DEFAULT_ADDRESS else argument for argument in server["args"]]
    assert base in arguments, server
    environment = {**os.environ, **{name: key for name in server["env"]}}
    return StdioServerParameters(command=binary, args=arguments, env=environment)


async def over_stdio(binary, world):
    """A model as the evaluator, with an integration key."""
    command = of_example(binary, world.base, world.integration)
    async with Client(command) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOLS, set(tools)
        reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
        assert reading == TOOLS - {"due", "verdict"}, reading
        schema = tools["query"].input_schema
        check_schema(world, schema)
        outcomes = await evaluate(client, schema)
        assert outcomes == {"calm": ("not_met", False), "overheated": ("met", True)}, outcomes
        due, _ = await done(client, "due")
        assert due["count"] == 0, due
        again = await failed(client, "verdict", ruleId=world.rules["overheated"], outcome="not_met")
        assert again.startswith("409") and '"outcome":"met"' in again, again
        refused = await failed(client, "list_buckets")
        assert refused.startswith("403") and "an integration key" in refused and "admin key" in refused, refused
        unknown = await failed(client, "verdict", ruleId="0" * 24, outcome="met")
        assert unknown.startswith("404"), unknown
        odd = await failed(client, "verdict", ruleId=world.rules["calm"], outcome="perhaps")
        assert odd.startswith("400") and "outcome" in odd, odd
    history = world.call("GET", f"/api/alerts/{world.rules['overheated']}/history")["history"]
    assert any(entry["evidence"]["currentValue"] == HOTTEST for entry in history), history


def check_schema(world, schema):
    """The tool describes every member that the server's own description of a query has, and no other."""
    schemas = world.call("GET", "/api/docs")["components"]["schemas"]
    pairs = [
        (schema["properties"], schemas["QueryBody"]["properties"]),
        (schema["properties"]["filters"]["properties"], schemas["QueryFilters"]["properties"]),
    ]
    for described, own in pairs:
        missing, more = set(own) - set(described), set(described) - set(own)
        assert not missing and not more, (missing, more)


async def over_http(address, world):
    """Callers with keys of their own."""
    async with with_key(address, world.admin) as client:
        buckets, _ = await done(client, "list_buckets")
        assert [bucket["_id"] for bucket in buckets["buckets"]] == [world.bucket], buckets
        sources, hint = await done(client, "list_sources", bucketId=world.bucket)
        assert sources["dataSources"][0]["schema"]["temperature"]["type"] == "number" and hint is None, sources
        rules, hint = await done(client, "list_rules", bucketId=world.bucket, limit=1)
        assert len(rules["alertRules"]) == 1 and f"of {len(RULES)}" in hint, hint
        rows, hint = await done(client, "query", bucketId=world.bucket, downsampling=False)
        assert len(rows["data"]) == 200 and "nextCursor" in hint and "groupBy" in hint, hint
        rest, hint = await done(
            client, "query", bucketId=world.bucket, downsampling=False, cursor=rows["metadata"]["nextCursor"]
        )
        assert len(rest["data"]) == POINTS - 200 and hint is None, hint
        groups, _ = await done(client, "query", bucketId=world.bucket, aggregation="max", groupBy="all")
        assert groups["data"][0]["temperature"] == HOTTEST, groups
        told = await failed(client, "query", bucketId=world.bucket, aggregation="mean", groupBy="day")
        assert told.startswith("400") and "aggregation" in told, told
    async with with_key(address, world.read) as client:
        rules, _ = await done(client, "list_rules", bucketId=world.bucket)
        states = {rule["name"]: rule["state"] for rule in rules["alertRules"]}
        assert states == {"calm": "armed", "overheated": "firing"}, states
        told = await failed(client, "verdict", ruleId=world.rules["calm"], outcome="met")
        assert told.startswith("403") and "a read key" in told, told
    async with with_key(address, "svc_a_" + "x" * 43) as client:
        told = await failed(client, "list_buckets")
        assert told.startswith("401") and "does not know this key" in told, told
    async with httpx2.AsyncClient() as stranger:
        answer = await stranger.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert answer.status_code == 401, answer.status_code


def with_key(address, key):
    http_client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    return Client(streamable_http_client(address, http_client=http_client))


class HttpServer:
    """`tidewatch mcp --listen` without a key."""

    def __init__(self, binary, base):
        environment = {name: value for name, value in os.environ.items() if name != "TIDEWATCH_KEY"}
        command = [binary, "mcp", "--url", base, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        lines = iter(self.process.stderr.readline, "")
        found = (re.search(r"listening on (http://\S+/mcp)", line) for line in lines)
        self.address = next((match.group(1) for match in found if match), None)
        if self.address is None:
            sys.exit("tidewatch mcp --listen did not start")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=60)
        assert self.process.returncode == 0 and "stopped" in log, log
        assert "svc_" not in log, "a key is in the log"


def main():
    binary, base = sys.argv[1:]
    began = time.monotonic()
    world = World(base)
    asyncio.run(over_stdio(binary, world))
    server = HttpServer(binary, base)
    try:
        asyncio.run(over_http(server.address, world))
    finally:
        server.stop()
    print(f"mcp: an evaluation over stdio and calls over HTTP in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
