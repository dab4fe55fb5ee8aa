//! The specification's tables *Errors* and *Limits*, line by line and in order: each condition under its name, and each
//! limit on both sides. Other tests of a subject are in its chapter.

mod errors;
mod limits;
mod times;
