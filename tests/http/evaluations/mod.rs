//! Chapter 6: the requests of evaluators within one interval. Tests that need intervals to pass are in `tests/loop`.

mod due;
mod history;
mod queries;
mod verdicts;
