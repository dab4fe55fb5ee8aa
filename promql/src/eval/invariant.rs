//! What a tree needs before its evaluation: `@ start()` and `@ end()` as instants, and marks on the parts that have the
//! same value at every step, so that they are evaluated once.
//!
//! Prometheus does the same, and the marks can be seen in answers: a marked part is evaluated at the first step only.

use crate::expr::{Aggregate, At, Binary, Call, Expr, Modifiers, RangeSelector, Selector, Subquery, Type};

/// The tree, ready for an evaluation from `start_ms` to `end_ms`.
pub(super) fn prepared(expr: &Expr, start_ms: i64, end_ms: i64) -> Expr {
    let bounds = Bounds { start_ms, end_ms };
    let (expr, is_invariant) = bounds.prepare(expr);
    marked(expr, is_invariant)
}

fn marked(expr: Expr, is_invariant: bool) -> Expr {
    let is_worth_it = !matches!(expr, Expr::Number(_) | Expr::String(_)) && expr.value_type() != Type::Matrix;
    if is_invariant && is_worth_it {
        Expr::Invariant(Box::new(expr))
    } else {
        expr
    }
}

struct Bounds {
    start_ms: i64,
    end_ms: i64,
}

impl Bounds {
    /// The tree, and whether its value is the same at every step.
    fn prepare(&self, expr: &Expr) -> (Expr, bool) {
        match expr {
            Expr::Number(_) | Expr::String(_) => (expr.clone(), true),
            Expr::Selector(selector) => {
                let selector = self.selector(selector);
                let is_invariant = selector.modifiers.at.is_some();
                (Expr::Selector(selector), is_invariant)
            }
            Expr::Range(range) => {
                let selector = self.selector(&range.selector);
                let is_invariant = selector.modifiers.at.is_some();
                let range_ms = range.range_ms;
                (Expr::Range(RangeSelector { selector, range_ms }), is_invariant)
            }
            Expr::Subquery(subquery) => {
                let (inner, is_invariant) = self.prepare(&subquery.expr);
                let modifiers = self.modifiers(subquery.modifiers);
                let prepared = Subquery {
                    expr: marked(inner, is_invariant),
                    modifiers,
                    ..**subquery
                };
                (Expr::Subquery(Box::new(prepared)), modifiers.at.is_some())
            }
            Expr::Call(call) => self.call(call),
            Expr::Aggregate(aggregate) => {
                let (inner, is_invariant) = self.prepare(&aggregate.expr);
                let param = aggregate.param.as_ref().map(|param| {
                    let (param, is_invariant) = self.prepare(param);
                    marked(param, is_invariant)
                });
                let prepared = Aggregate {
                    op: aggregate.op,
                    grouping: aggregate.grouping.clone(),
                    param,
                    expr: inner,
                };
                (Expr::Aggregate(Box::new(prepared)), is_invariant)
            }
            Expr::Binary(binary) => self.binary(binary),
            Expr::Negation(inner) => {
                let (inner, is_invariant) = self.prepare(inner);
                (Expr::Negation(Box::new(inner)), is_invariant)
            }
            Expr::Invariant(_) => (expr.clone(), true),
        }
    }

    fn call(&self, call: &Call) -> (Expr, bool) {
        let args: Vec<(Expr, bool)> = call.args.iter().map(|arg| self.prepare(arg)).collect();
        let is_invariant =
            !call.function.depends_on_time() && args.iter().all(|(_, is_invariant)| *is_invariant);
        let mark = |(arg, arg_is_invariant)| {
            if is_invariant {
                arg
            } else {
                marked(arg, arg_is_invariant)
            }
        };
        let prepared = Call {
            function: call.function,
            args: args.into_iter().map(mark).collect(),
        };
        (Expr::Call(prepared), is_invariant)
    }

    fn binary(&self, binary: &Binary) -> (Expr, bool) {
        let (left, left_is_invariant) = self.prepare(&binary.left);
        let (right, right_is_invariant) = self.prepare(&binary.right);
        let is_invariant = left_is_invariant && right_is_invariant;
        let prepared = Binary {
            op: binary.op,
            left: marked(left, left_is_invariant && !is_invariant),
            right: marked(right, right_is_invariant && !is_invariant),
            returns_bool: binary.returns_bool,
            matching: binary.matching.clone(),
            many: binary.many,
            include: binary.include.clone(),
        };
        (Expr::Binary(Box::new(prepared)), is_invariant)
    }

    fn selector(&self, selector: &Selector) -> Selector {
        Selector {
            matchers: selector.matchers.clone(),
            modifiers: self.modifiers(selector.modifiers),
        }
    }

    fn modifiers(&self, modifiers: Modifiers) -> Modifiers {
        let at = modifiers.at.map(|at| {
            At::Time(match at {
                At::Start => self.start_ms,
                At::End => self.end_ms,
                At::Time(time_ms) => time_ms,
            })
        });
        Modifiers { at, ..modifiers }
    }
}
