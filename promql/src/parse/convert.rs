//! From the grammar's tree to ours, with the checks that the grammar leaves out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use promql_parser::label::{MatchOp as GrammarMatchOp, Matchers};
use promql_parser::parser as grammar;
use promql_parser::parser::token::{self, TokenType};

use crate::error::Error;
use crate::expr::{
    Aggregate, AggregateOp, At, Binary, BinaryOp, Call, Expr, Grouping, Many, Modifiers, RangeSelector,
    Selector, Subquery, Type,
};
use crate::functions::Function;
use crate::labels::METRIC_NAME;
use crate::matcher::{MatchOp, Matcher};
use crate::parse::NESTING_MAX;
use crate::pattern::Newlines;

/// The latest and, negative, the earliest instant of `@`, in milliseconds: far enough, and sums with it do not overflow.
const AT_MS_MAX: i64 = 1 << 52;

pub(super) fn expression(tree: grammar::Expr, newlines: Newlines) -> Result<Expr, Error> {
    Conversion { newlines }.expr(tree, 0)
}

struct Conversion {
    newlines: Newlines,
}

impl Conversion {
    fn expr(&self, tree: grammar::Expr, depth: usize) -> Result<Expr, Error> {
        if depth > NESTING_MAX {
            return Err(Error::bad_data(format!(
                "the query is nested more than {NESTING_MAX} times (a chain of operators nests at each): split it, or \
                 put parentheses around parts of it"
            )));
        }
        match tree {
            grammar::Expr::NumberLiteral(number) => Ok(Expr::Number(number.val)),
            grammar::Expr::StringLiteral(string) => Ok(Expr::String(string.val)),
            grammar::Expr::Paren(paren) => self.expr(*paren.expr, depth + 1),
            grammar::Expr::Unary(unary) => Ok(Expr::Negation(Box::new(self.expr(*unary.expr, depth + 1)?))),
            grammar::Expr::VectorSelector(selector) => Ok(Expr::Selector(self.selector(selector)?)),
            grammar::Expr::MatrixSelector(matrix) => Ok(Expr::Range(RangeSelector {
                range_ms: positive_ms(matrix.range)?,
                selector: self.selector(matrix.vs)?,
            })),
            grammar::Expr::Subquery(subquery) => Ok(Expr::Subquery(Box::new(Subquery {
                expr: self.expr(*subquery.expr, depth + 1)?,
                range_ms: positive_ms(subquery.range)?,
                step_ms: subquery.step.map(positive_ms).transpose()?,
                modifiers: modifiers(subquery.offset, subquery.at)?,
            }))),
            grammar::Expr::Call(call) => self.call(call, depth),
            grammar::Expr::Aggregate(aggregate) => self.aggregate(aggregate, depth),
            grammar::Expr::Binary(binary) => self.binary(binary, depth),
            grammar::Expr::Extension(_) => {
                Err(Error::bad_data("extensions of the grammar are not supported"))
            }
        }
    }

    fn selector(&self, selector: grammar::VectorSelector) -> Result<Selector, Error> {
        let mut matchers = self.matchers(selector.matchers)?;
        if let Some(name) = selector.name {
            matchers.insert(
                0,
                Matcher::new(METRIC_NAME, MatchOp::Equal, &name, self.newlines)?,
            );
        }
        if matchers.iter().all(|matcher| matcher.matches("")) {
            return Err(Error::bad_data(
                "vector selector must contain at least one non-empty matcher",
            ));
        }
        Ok(Selector {
            matchers,
            modifiers: modifiers(selector.offset, selector.at)?,
        })
    }

    fn matchers(&self, matchers: Matchers) -> Result<Vec<Matcher>, Error> {
        if !matchers.or_matchers.is_empty() {
            return Err(Error::bad_data(
                "matchers are separated by commas: `or` stands between selectors",
            ));
        }
        let convert = |matcher: promql_parser::label::Matcher| {
            let op = match matcher.op {
                GrammarMatchOp::Equal => MatchOp::Equal,
                GrammarMatchOp::NotEqual => MatchOp::NotEqual,
                GrammarMatchOp::Re(_) => MatchOp::Matches,
                GrammarMatchOp::NotRe(_) => MatchOp::NotMatches,
            };
            Matcher::new(&matcher.name, op, &matcher.value, self.newlines)
        };
        matchers.matchers.into_iter().map(convert).collect()
    }

    fn call(&self, call: grammar::Call, depth: usize) -> Result<Expr, Error> {
        let name = call.func.name;
        let Some(function) = Function::named(name) else {
            return Err(Error::bad_data(format!("the function {name} is not supported")));
        };
        let args = call
            .args
            .args
            .into_iter()
            .map(|arg| self.expr(*arg, depth + 1))
            .collect::<Result<Vec<_>, _>>()?;
        for (index, arg) in args.iter().enumerate() {
            let last = call.func.arg_types.len().saturating_sub(1);
            let wanted = call.func.arg_types.get(index.min(last)).copied();
            let wanted = wanted.map(value_type);
            if wanted.is_some_and(|wanted| wanted != arg.value_type()) {
                return Err(Error::bad_data(format!(
                    "argument {} of {name} has the wrong type",
                    index + 1
                )));
            }
        }
        Ok(Expr::Call(Call { function, args }))
    }

    fn aggregate(&self, aggregate: grammar::AggregateExpr, depth: usize) -> Result<Expr, Error> {
        let op = aggregate_op(aggregate.op)?;
        let param = aggregate
            .param
            .map(|param| self.expr(*param, depth + 1))
            .transpose()?;
        let wanted = match op {
            AggregateOp::CountValues => Type::String,
            _ => Type::Scalar,
        };
        if param.as_ref().is_some_and(|param| param.value_type() != wanted) {
            return Err(Error::bad_data(format!(
                "the parameter of {} has the wrong type",
                aggregate.op
            )));
        }
        Ok(Expr::Aggregate(Box::new(Aggregate {
            op,
            grouping: aggregate.modifier.map_or(Grouping::By(Vec::new()), grouping),
            param,
            expr: self.expr(*aggregate.expr, depth + 1)?,
        })))
    }

    fn binary(&self, binary: grammar::BinaryExpr, depth: usize) -> Result<Expr, Error> {
        let op = binary_op(binary.op)?;
        let modifier = binary.modifier.unwrap_or_default();
        let fill = &modifier.fill_values;
        if fill.lhs.is_some() || fill.rhs.is_some() {
            return Err(Error::bad_data(
                "fill, fill_left and fill_right are not supported",
            ));
        }
        let (many, include) = match modifier.card {
            grammar::VectorMatchCardinality::OneToOne | grammar::VectorMatchCardinality::ManyToMany => {
                (Many::Neither, Vec::new())
            }
            grammar::VectorMatchCardinality::ManyToOne(labels) => (Many::Left, labels.labels),
            grammar::VectorMatchCardinality::OneToMany(labels) => (Many::Right, labels.labels),
        };
        Ok(Expr::Binary(Box::new(Binary {
            op,
            left: self.expr(*binary.lhs, depth + 1)?,
            right: self.expr(*binary.rhs, depth + 1)?,
            returns_bool: modifier.return_bool,
            matching: modifier.matching.map_or(Grouping::Without(Vec::new()), grouping),
            many,
            include,
        })))
    }
}

fn grouping(modifier: grammar::LabelModifier) -> Grouping {
    match modifier {
        grammar::LabelModifier::Include(labels) => Grouping::By(labels.labels),
        grammar::LabelModifier::Exclude(labels) => Grouping::Without(labels.labels),
    }
}

fn value_type(value_type: grammar::value::ValueType) -> Type {
    match value_type {
        grammar::value::ValueType::Vector => Type::Vector,
        grammar::value::ValueType::Scalar => Type::Scalar,
        grammar::value::ValueType::Matrix => Type::Matrix,
        grammar::value::ValueType::String => Type::String,
    }
}

fn modifiers(offset: Option<grammar::Offset>, at: Option<grammar::AtModifier>) -> Result<Modifiers, Error> {
    let offset_ms = match offset {
        None => 0,
        Some(grammar::Offset::Pos(duration)) => milliseconds(duration)?,
        Some(grammar::Offset::Neg(duration)) => -milliseconds(duration)?,
    };
    let at = match at {
        None => None,
        Some(grammar::AtModifier::Start) => Some(At::Start),
        Some(grammar::AtModifier::End) => Some(At::End),
        Some(grammar::AtModifier::At(time)) => Some(At::Time(instant(time)?)),
    };
    Ok(Modifiers { offset_ms, at })
}

fn milliseconds(duration: Duration) -> Result<i64, Error> {
    i64::try_from(duration.as_millis()).map_err(|_| Error::bad_data("a duration is out of range"))
}

fn positive_ms(duration: Duration) -> Result<i64, Error> {
    match milliseconds(duration)? {
        0 => Err(Error::bad_data("duration must be greater than 0")),
        ms => Ok(ms),
    }
}

fn instant(time: SystemTime) -> Result<i64, Error> {
    let ms = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).ok(),
        Err(before) => i64::try_from(before.duration().as_millis()).ok().map(|ms| -ms),
    };
    ms.filter(|ms| ms.abs() <= AT_MS_MAX)
        .ok_or_else(|| Error::bad_data("timestamp out of bounds for @ modifier"))
}

fn aggregate_op(op: TokenType) -> Result<AggregateOp, Error> {
    Ok(match op.id() {
        token::T_SUM => AggregateOp::Sum,
        token::T_AVG => AggregateOp::Avg,
        token::T_COUNT => AggregateOp::Count,
        token::T_MIN => AggregateOp::Min,
        token::T_MAX => AggregateOp::Max,
        token::T_GROUP => AggregateOp::Group,
        token::T_STDDEV => AggregateOp::Stddev,
        token::T_STDVAR => AggregateOp::Stdvar,
        token::T_TOPK => AggregateOp::Topk,
        token::T_BOTTOMK => AggregateOp::Bottomk,
        token::T_LIMITK => AggregateOp::Limitk,
        token::T_LIMIT_RATIO => AggregateOp::LimitRatio,
        token::T_QUANTILE => AggregateOp::Quantile,
        token::T_COUNT_VALUES => AggregateOp::CountValues,
        _ => return Err(Error::bad_data(format!("the aggregation {op} is not supported"))),
    })
}

fn binary_op(op: TokenType) -> Result<BinaryOp, Error> {
    Ok(match op.id() {
        token::T_ADD => BinaryOp::Add,
        token::T_SUB => BinaryOp::Sub,
        token::T_MUL => BinaryOp::Mul,
        token::T_DIV => BinaryOp::Div,
        token::T_MOD => BinaryOp::Mod,
        token::T_POW => BinaryOp::Pow,
        token::T_ATAN2 => BinaryOp::Atan2,
        token::T_EQLC => BinaryOp::Equal,
        token::T_NEQ => BinaryOp::NotEqual,
        token::T_GTR => BinaryOp::Greater,
        token::T_LSS => BinaryOp::Less,
        token::T_GTE => BinaryOp::GreaterOrEqual,
        token::T_LTE => BinaryOp::LessOrEqual,
        token::T_LAND => BinaryOp::And,
        token::T_LOR => BinaryOp::Or,
        token::T_LUNLESS => BinaryOp::Unless,
        _ => return Err(Error::bad_data(format!("the operator {op} is not supported"))),
    })
}
