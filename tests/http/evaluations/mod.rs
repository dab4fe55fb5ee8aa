//! Chapter 6: the requests of evaluators within one interval. Tests over several intervals are in `tests/loop`.

mod acknowledge;
mod backtest;
mod backtest_command;
mod backtest_drafts;
mod due;
mod history;
mod queries;
mod verdicts;
