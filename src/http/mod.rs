//! The HTTP side: handlers translate, `service` decides.
//!
//! A file of `resources` has the types of its bodies and answers, its rows of the table (`endpoints`), and its handlers.
//! `endpoint` says what a row is and keeps the order of the checks, `shape` reads bodies, `table` makes the router, and
//! `docs` the description of it all. `server` has what handlers do not see: the listener and the middleware.

mod auth;
mod body;
pub mod docs;
mod endpoint;
mod error;
mod pieces;
mod resources;
mod respond;
mod server;
mod session_cookie;
mod shape;
mod table;

pub use resources::query_body::read_query;
pub use server::{Listener, RunningServer, Tls, TlsError, listen, start, start_recovering};
pub use shape::email;
