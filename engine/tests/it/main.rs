//! The engine from outside: random work against a naive twin, damage, and old formats.

mod model;
mod twin;
