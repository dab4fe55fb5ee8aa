//! The HTTP interface: handlers translate between HTTP and `service`, which makes the decisions.
//!
//! A file of `resources` has the types of its bodies and answers, its rows of the table (`endpoints`), and its
//! handlers. `endpoint` defines a row and keeps the order of the checks, `shape` parses bodies, `write` writes rows
//! and points, `table` makes the router, and `docs` describes the interface. `server` has the middleware and
//! starts the listener, which handlers do not see.

mod auth;
mod body;
mod body_stream;
mod bundle;
pub mod docs;
mod endpoint;
mod error;
mod forward;
mod inside;
mod kept_body;
mod node_client;
mod page_url;
mod pieces;
mod proxies;
mod resources;
mod respond;
mod server;
mod session_cookie;
mod shape;
mod table;
mod write;

pub use node_client::{NodeAccess, NodeClient};
pub use resources::query_body::read_query;
pub use server::{Server, Tls, TlsError, start_recovering};
pub use shape::email;
