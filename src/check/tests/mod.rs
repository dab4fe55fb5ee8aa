//! `tidewatch check` over a directory of every kind of file.

mod damage;
mod directory;
mod lost;
