//! Chapter 2: accounts, organizations, keys, plans; who may call what, and what a refused caller learns.

mod accounts;
mod bucket_keys;
mod login;
mod matrix;
mod organization;
mod plans;
mod quota;
mod scopes;
mod sign_ups;
mod tokens;
