//! Chapter 9: configuration, start, stop, health.

mod config;
mod health;
mod lifecycle;
