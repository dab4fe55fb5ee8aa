//! The HTTP side: handlers translate, `service` decides.
//!
//! A file of a resource has the types of its bodies and answers, its rows of the table (`endpoints`), and its handlers.
//! `endpoint` says what a row is, and keeps the order of the checks; `shape` reads bodies; `table` is the table. Around
//! every request stands `edge`.

mod accounts;
mod alert_history;
mod alert_views;
mod alerts;
mod analytics;
mod answer_budget;
mod auth;
mod body;
mod body_budget;
mod buckets;
mod changes;
mod dashboard;
mod data;
mod docs;
mod edge;
mod endpoint;
mod error;
mod evaluation_body;
mod evaluations;
mod health;
mod keys;
mod listener;
mod metrics;
mod noted;
mod operator;
mod organization;
mod pieces;
mod process;
mod query;
mod query_body;
mod rate_limit;
mod recovering;
mod request_id;
mod respond;
mod server;
mod session_cookie;
mod shape;
mod sources;
mod table;
mod tls;
mod traffic;
mod views;
mod webhook_deliveries;
mod webhooks;

pub use listener::{Listener, RunningServer, listen};
pub use recovering::start_recovering;
pub use server::start;
pub use shape::email;
pub use tls::{Tls, TlsError};
