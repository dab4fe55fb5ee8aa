//! From text to the tree of a question.
//!
//! The grammar is the crate `promql-parser`; nothing outside of this room knows it. What it would panic on, or take for
//! another question, is refused before it sees the text (`bounds`); types and numbers that it lets through are checked
//! afterwards (`convert`).

mod bounds;
mod convert;

use std::sync::OnceLock;

use promql_parser::parser::Function as GrammarFunction;
use promql_parser::parser::register_extra_functions;
use promql_parser::parser::value::ValueType;

pub use bounds::{NESTING_MAX, OPERATORS_MAX, QUERY_BYTES_MAX};

use crate::error::Error;
use crate::expr::{Expr, Selector};
use crate::pattern::Newlines;

/// The tree of a question.
pub(crate) fn expression(query: &str, newlines: Newlines) -> Result<Expr, Error> {
    let text = bounds::check(query)?;
    registered()?;
    let tree = promql_parser::parser::parse(&text).map_err(|message| {
        let message = match message.as_str() {
            // The grammar's only words for whatever is not a rule of it.
            "invalid promql query" => {
                "the text is not PromQL: see that operators have two sides, brackets are closed, \
                and nothing follows the expression"
                    .to_owned()
            }
            _ => message,
        };
        Error::bad_data(format!("parse error: {message}"))
    })?;
    convert::expression(tree, newlines)
}

/// The selector of a parameter `match[]`.
pub(crate) fn selector(text: &str, newlines: Newlines) -> Result<Selector, Error> {
    match expression(text, newlines)? {
        Expr::Selector(selector) if selector.modifiers.at.is_none() && selector.modifiers.offset_ms == 0 => {
            Ok(selector)
        }
        _ => Err(Error::bad_data(format!(
            "{text:?} is not a selector of series: write a metric's name, matchers in braces, or both"
        ))),
    }
}

/// Makes the grammar know the name that `double_exponential_smoothing` had before Prometheus 3.
fn registered() -> Result<(), Error> {
    static REGISTERED: OnceLock<Result<(), String>> = OnceLock::new();
    let outcome = REGISTERED.get_or_init(|| {
        let args = vec![ValueType::Matrix, ValueType::Scalar, ValueType::Scalar];
        let function = GrammarFunction::new("holt_winters", args, 0, ValueType::Vector, false);
        register_extra_functions(vec![function])
    });
    outcome.clone().map_err(Error::internal)
}

#[cfg(test)]
mod tests;
