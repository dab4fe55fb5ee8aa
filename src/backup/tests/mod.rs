//! Backups of a simulated disk.
