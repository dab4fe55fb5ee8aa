//! The bounds of an evaluation.
