//! Chapter 9: configuration, start, stop, health.

mod config;
mod cors;
mod docs;
mod health;
mod lifecycle;
