//! The memory of a server as reported by the operating system.

use std::fs;

use crate::support::process::Server;

/// A `kB` line of the process's status, in bytes.
#[track_caller]
fn status(server: &Server, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().unwrap() * 1024
}

pub fn resident_bytes(server: &Server) -> u64 {
    status(server, "VmRSS:")
}

pub fn resident_bytes_max(server: &Server) -> u64 {
    status(server, "VmHWM:")
}
