//! Limits of the listener: memory of connections, refusals of malformed requests, and stopping. None of it requires a
//! key, so that any client can attack it.

mod bodies;
mod connection_limits;
mod heads;
mod http2;
mod pipelining;
mod raw_connection;
mod stop;
