//! Tests of the MCP server: pure parts by their rules, the transport over HTTP in this process. The tools against the
//! real server, by the official Python client, are in `tests/mcp`.

mod answers;
mod calls;
mod keys;
mod tools;
mod transport;
