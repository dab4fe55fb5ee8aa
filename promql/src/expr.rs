//! The tree of a question, with every time in milliseconds.

use crate::functions::Function;
use crate::matcher::Matcher;

/// The type of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Scalar,
    String,
    Vector,
    Matrix,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Number(f64),
    String(String),
    /// An instant selector.
    Selector(Selector),
    /// A selector with a range in brackets.
    Range(RangeSelector),
    Subquery(Box<Subquery>),
    Call(Call),
    Aggregate(Box<Aggregate>),
    Binary(Box<Binary>),
    Negation(Box<Expr>),
    /// Has the same value at every step, so it is evaluated at the first one.
    Invariant(Box<Expr>),
}

/// `@` of a selector or subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Start,
    End,
    Time(i64),
}

/// `offset` and `@`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Modifiers {
    pub(crate) offset_ms: i64,
    pub(crate) at: Option<At>,
}

#[derive(Clone, Debug)]
pub(crate) struct Selector {
    pub(crate) matchers: Vec<Matcher>,
    pub(crate) modifiers: Modifiers,
}

#[derive(Clone, Debug)]
pub(crate) struct RangeSelector {
    pub(crate) selector: Selector,
    pub(crate) range_ms: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Subquery {
    pub(crate) expr: Expr,
    pub(crate) range_ms: i64,
    /// None: the evaluation's default.
    pub(crate) step_ms: Option<i64>,
    pub(crate) modifiers: Modifiers,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) function: Function,
    pub(crate) args: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateOp {
    Sum,
    Avg,
    Count,
    Min,
    Max,
    Group,
    Stddev,
    Stdvar,
    Topk,
    Bottomk,
    Limitk,
    LimitRatio,
    Quantile,
    CountValues,
}

/// Which labels name a group or a match: the listed ones, or all but the listed ones and the metric's name.
#[derive(Clone, Debug)]
pub(crate) enum Grouping {
    By(Vec<String>),
    Without(Vec<String>),
}

#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) op: AggregateOp,
    pub(crate) grouping: Grouping,
    pub(crate) param: Option<Expr>,
    pub(crate) expr: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
    Atan2,
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    And,
    Or,
    Unless,
}

impl BinaryOp {
    pub(crate) fn is_comparison(self) -> bool {
        use BinaryOp::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        matches!(
            self,
            Equal | NotEqual | Greater | Less | GreaterOrEqual | LessOrEqual
        )
    }
}

/// Which side of a binary operation may have several series for one match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    Neither,
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) op: BinaryOp,
    pub(crate) left: Expr,
    pub(crate) right: Expr,
    pub(crate) returns_bool: bool,
    /// `on` is `By`, `ignoring` is `Without`; nothing written is `Without` nothing.
    pub(crate) matching: Grouping,
    pub(crate) many: Many,
    /// Labels that are taken from the side with one series.
    pub(crate) include: Vec<String>,
}

impl Expr {
    pub(crate) fn value_type(&self) -> Type {
        match self {
            Expr::Number(_) => Type::Scalar,
            Expr::String(_) => Type::String,
            Expr::Selector(_) | Expr::Aggregate(_) => Type::Vector,
            Expr::Range(_) | Expr::Subquery(_) => Type::Matrix,
            Expr::Call(call) => call.function.returns(),
            Expr::Negation(inner) | Expr::Invariant(inner) => inner.value_type(),
            Expr::Binary(binary) => match (binary.left.value_type(), binary.right.value_type()) {
                (Type::Scalar, Type::Scalar) => Type::Scalar,
                _ => Type::Vector,
            },
        }
    }

    /// Without the mark of invariance around it.
    pub(crate) fn bare(&self) -> &Expr {
        match self {
            Expr::Invariant(inner) => inner.bare(),
            other => other,
        }
    }
}
