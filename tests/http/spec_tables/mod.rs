//! The specification's two tables *Errors* and *Limits*, line by line and in their order: each condition under its
//! name there, each limit on both of its sides. Other tests of a subject are in its own chapter.

mod errors;
mod limits;
mod times;
