//! Chapter 6: what evaluators ask for and post, within one interval. What needs intervals to pass is in `tests/loop`.

mod due;
mod history;
mod queries;
mod verdicts;
