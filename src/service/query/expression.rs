//! `expressions`: arithmetic over the fields of a row. An expression is compiled to postfix notation, so that evaluating
//! it needs no recursion. Parsing recurses at most once per character, of which there are at most 1,000.

use std::sync::Arc;

use crate::limits::EXPRESSION_CHARS_MAX;

/// A named expression.
#[derive(Clone, Debug)]
pub struct NamedExpression {
    /// Name of the result in rows.
    pub name: Arc<str>,
    /// The expression as it was sent.
    pub text: Box<str>,
    /// The expression.
    pub expression: Expression,
}

/// A compiled expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// Distinct names of the fields it uses.
    operands: Vec<String>,
    /// In postfix notation.
    operations: Vec<Operation>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Number(f64),
    /// Index of an operand.
    Field(usize),
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    /// Of this many values.
    Min(usize),
    Max(usize),
    Abs,
    /// Half away from zero.
    Round,
}

impl Expression {
    /// Parses an expression: numbers, names of fields (in backquotes if they have other characters than letters, digits
    /// and underscores), `+ - * / ( )`, `min`, `max`, `abs`, `round`.
    ///
    /// # Errors
    /// A description of what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let chars = text.chars().count();
        if chars > EXPRESSION_CHARS_MAX {
            return Err(format!(
                "must have at most {EXPRESSION_CHARS_MAX} characters, not {chars}"
            ));
        }
        let mut parser = Parser {
            text,
            at: 0,
            expression: Expression {
                operands: Vec::new(),
                operations: Vec::new(),
            },
        };
        parser.sum()?;
        match parser.peek() {
            None => Ok(parser.expression),
            Some(_) => Err(parser.unexpected("an operator or the end")),
        }
    }

    /// Distinct names of the fields it uses.
    pub fn operands(&self) -> &[String] {
        &self.operands
    }

    /// Its value; `None` if an operand has none, for a division by zero, and for a result that is not finite. `operand`
    /// returns the number of an operand by its index.
    pub fn evaluate(&self, operand: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let mut stack: Vec<f64> = Vec::with_capacity(8);
        for operation in &self.operations {
            let value = match *operation {
                Operation::Number(number) => number,
                Operation::Field(index) => operand(index)?,
                Operation::Negate => -stack.pop()?,
                Operation::Abs => stack.pop()?.abs(),
                Operation::Round => stack.pop()?.round(),
                Operation::Min(count) => fold(&mut stack, count, f64::min)?,
                Operation::Max(count) => fold(&mut stack, count, f64::max)?,
                Operation::Add => fold(&mut stack, 2, |one, other| one + other)?,
                Operation::Subtract => fold(&mut stack, 2, |one, other| one - other)?,
                Operation::Multiply => fold(&mut stack, 2, |one, other| one * other)?,
                Operation::Divide if stack.last() == Some(&0.0) => return None,
                Operation::Divide => fold(&mut stack, 2, |one, other| one / other)?,
            };
            stack.push(value);
        }
        stack.pop().filter(|value| value.is_finite())
    }
}

/// Takes the last values, and combines them from the first to the last.
fn fold(stack: &mut Vec<f64>, count: usize, combine: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let first = stack.len().checked_sub(count)?;
    stack.drain(first..).reduce(combine)
}

struct Parser<'t> {
    text: &'t str,
    /// The next byte.
    at: usize,
    expression: Expression,
}

impl<'t> Parser<'t> {
    /// The next character that is not blank.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.at += wanted.len_utf8();
        }
        is_next
    }

    fn unexpected(&mut self, wanted: &str) -> String {
        let found = self.peek();
        let place = self.text[..self.at].chars().count() + 1;
        match found {
            Some(found) => format!("needs {wanted} at character {place}, not {found:?}"),
            None => format!("needs {wanted} at its end"),
        }
    }

    fn push(&mut self, operation: Operation) {
        self.expression.operations.push(operation);
    }

    fn sum(&mut self) -> Result<(), String> {
        self.product()?;
        loop {
            let operation = match self.peek() {
                Some('+') => Operation::Add,
                Some('-') => Operation::Subtract,
                _ => return Ok(()),
            };
            self.at += 1;
            self.product()?;
            self.push(operation);
        }
    }

    fn product(&mut self) -> Result<(), String> {
        self.operand()?;
        loop {
            let operation = match self.peek() {
                Some('*') => Operation::Multiply,
                Some('/') => Operation::Divide,
                _ => return Ok(()),
            };
            self.at += 1;
            self.operand()?;
            self.push(operation);
        }
    }

    fn operand(&mut self) -> Result<(), String> {
        if self.takes('-') {
            self.operand()?;
            self.push(Operation::Negate);
            return Ok(());
        }
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.sum()?;
                self.close()
            }
            Some('`') => {
                self.at += 1;
                let name = self.quoted()?;
                self.field(name);
                Ok(())
            }
            Some('0'..='9' | '.') => self.number(),
            Some('A'..='Z' | 'a'..='z' | '_') => self.name(),
            _ => Err(self.unexpected("a number, a field, a function or a parenthesis")),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        match self.takes(')') {
            true => Ok(()),
            false => Err(self.unexpected("an operator or a closing parenthesis")),
        }
    }

    /// The next characters of a kind.
    fn take_while(&mut self, is_of_kind: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c| !is_of_kind(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<(), String> {
        let start = self.at;
        let is_digit = |c: char| c.is_ascii_digit();
        self.take_while(is_digit);
        if self.text[self.at..].starts_with('.') {
            self.at += 1;
            self.take_while(is_digit);
        }
        if self.text[self.at..].starts_with(['e', 'E']) {
            self.at += 1;
            if self.text[self.at..].starts_with(['+', '-']) {
                self.at += 1;
            }
            self.take_while(is_digit);
        }
        let text = &self.text[start..self.at];
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| format!("{text:?} is no finite number"))?;
        self.push(Operation::Number(number));
        Ok(())
    }

    fn name(&mut self) -> Result<(), String> {
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.peek() == Some('(') {
            return self.function(name);
        }
        self.field(name.to_owned());
        Ok(())
    }

    /// A name in backquotes; a doubled backquote stands for one.
    fn quoted(&mut self) -> Result<String, String> {
        let mut name = String::new();
        loop {
            name.push_str(self.take_while(|c| c != '`'));
            if self.at == self.text.len() {
                return Err("has a name without its closing backquote".to_owned());
            }
            self.at += 1;
            if !self.text[self.at..].starts_with('`') {
                return Ok(name);
            }
            self.at += 1;
            name.push('`');
        }
    }

    fn field(&mut self, name: String) {
        let operands = &mut self.expression.operands;
        let index = operands.iter().position(|other| *other == name);
        let index = index.unwrap_or_else(|| {
            operands.push(name);
            operands.len() - 1
        });
        self.push(Operation::Field(index));
    }

    fn function(&mut self, name: &str) -> Result<(), String> {
        let of_count = match name {
            "min" => Operation::Min,
            "max" => Operation::Max,
            "abs" => |_| Operation::Abs,
            "round" => |_| Operation::Round,
            _ => {
                return Err(format!("{name:?} is no function; they are min, max, abs, round"));
            }
        };
        self.takes('(');
        let mut count = 0;
        loop {
            self.sum()?;
            count += 1;
            if !self.takes(',') {
                break;
            }
        }
        self.close()?;
        if count > 1 && matches!(name, "abs" | "round") {
            return Err(format!("{name} takes one value, not {count}"));
        }
        self.push(of_count(count));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let expression = Expression::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let operands = expression.operands().to_vec();
        expression.evaluate(|index| match operands[index].as_str() {
            "a" => Some(6.0),
            "b" => Some(-2.5),
            "min" => Some(100.0),
            "energy (kWh)" => Some(8.0),
            "back`quote" => Some(9.0),
            "zero" => Some(0.0),
            _ => None,
        })
    }

    #[test]
    fn expressions_follow_the_usual_precedence() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("24 / 4 / 3", 2.0),
            ("24 / 4 * 3", 18.0),
            ("-a * b", 15.0),
            ("- -a", 6.0),
            ("2 - -3", 5.0),
            ("a*-b", 15.0),
            ("1.5e1 + .5", 15.5),
            ("2E-1", 0.2),
            ("min(3, a, b)", -2.5),
            ("max(a)", 6.0),
            ("abs(b) + round(b)", -0.5),
            ("round(0.5) + round(-0.5)", 0.0),
            ("round(2.5)", 3.0),
            ("min * 2", 200.0),
            ("min (`min`, 7)", 7.0),
            ("`energy (kWh)` / 4", 2.0),
            ("`back``quote`", 9.0),
            ("\ta\n+ 1 ", 7.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_none() {
        for text in [
            "missing",
            "0 * missing",
            "min(a, missing)",
            "a / 0",
            "a / zero",
            "1 / (1 / zero)",
            "0 / zero",
            "1e308 * 10",
            "1e308 * 10 / 10",
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (text, reason) in [
            ("", "at its end"),
            ("  ", "at its end"),
            ("1 +", "at its end"),
            ("(1", "closing parenthesis"),
            ("1)", "character 2"),
            ("1 2", "character 3"),
            ("a b", "character 3"),
            ("a % b", "'%'"),
            ("a ^ 2", "'^'"),
            ("a > b", "'>'"),
            ("+a", "'+'"),
            ("1e", "finite number"),
            ("1e999", "finite number"),
            (".", "finite number"),
            ("`a", "backquote"),
            ("sqrt(a)", "no function"),
            ("min()", "')'"),
            ("abs(a, b)", "takes one value"),
            ("min(a,)", "')'"),
            ("größe", "'ö'"),
            ("2a", "'a'"),
        ] {
            let fault = Expression::parse(text).unwrap_err();
            assert!(fault.contains(reason), "{text}: {fault}");
        }
        assert!(Expression::parse(&"1".repeat(EXPRESSION_CHARS_MAX + 1)).is_err());
    }

    #[test]
    fn the_deepest_expressions_do_not_overflow_the_stack() {
        let half = EXPRESSION_CHARS_MAX / 2 - 1;
        let nested = format!("{}a{}", "(".repeat(half), ")".repeat(half));
        assert_eq!(value(&nested), Some(6.0));
        let negated = format!("{}a", "-".repeat(EXPRESSION_CHARS_MAX - 1));
        assert_eq!(value(&negated), Some(-6.0));
    }
}
