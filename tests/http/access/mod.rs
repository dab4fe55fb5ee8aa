//! Chapter 2: accounts, organizations, keys, plans; who may call what, and what a refused caller learns.

mod accounts;
mod bucket_keys;
mod callers;
mod cookie;
mod forgery;
mod login;
mod matrix;
mod organization;
mod plans;
pub mod quota;
mod scopes;
mod sessions;
mod sign_ups;
mod tokens;
