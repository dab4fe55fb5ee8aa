//! Chapter 9: configuration, start, stop, health.

mod config;
mod cors;
mod health;
mod lifecycle;
