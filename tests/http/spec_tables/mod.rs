//! The specification's two tables *Errors* and *Limits*, line by line and in their order: each condition under its
//! name there, each limit on both of its sides. What else there is to say of a subject is in its own chapter's tests.

mod errors;
mod limits;
mod times;
