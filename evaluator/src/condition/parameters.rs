//! Reads a rule's parameters and describes what is wrong with them.

use serde_json::{Map, Value};

use super::clip;

/// The parameters of a rule. Remembers which were read, to reject the others.
pub struct Parameters<'a> {
    given: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Parameters<'a> {
    pub fn new(given: &'a Map<String, Value>) -> Self {
        Self {
            given,
            known: Vec::new(),
        }
    }

    /// The parameter's value, unchecked.
    pub fn optional(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.given.get(name)
    }

    /// The parameter's value as `parse` reads it. `expected` describes it in the message for another value.
    fn parsed<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.optional(name) else {
            return Ok(None);
        };
        let parsed = parse(value).ok_or_else(|| format!("parameter `{name}` must be {expected}"))?;
        Ok(Some(parsed))
    }

    pub fn optional_number(&mut self, name: &'static str) -> Result<Option<f64>, String> {
        self.parsed(name, "a number", Value::as_f64)
    }

    pub fn optional_boolean(&mut self, name: &'static str) -> Result<Option<bool>, String> {
        self.parsed(name, "true or false", Value::as_bool)
    }

    pub fn number(&mut self, name: &'static str) -> Result<f64, String> {
        self.optional_number(name)?.ok_or_else(|| missing(name))
    }

    /// A number above zero.
    pub fn optional_positive(&mut self, name: &'static str) -> Result<Option<f64>, String> {
        match self.optional_number(name)? {
            Some(number) if number <= 0.0 => Err(format!("parameter `{name}` must be greater than 0")),
            number => Ok(number),
        }
    }

    /// An integer of at least `least`; `5.0` is accepted.
    pub fn optional_count(&mut self, name: &'static str, least: u32) -> Result<Option<u64>, String> {
        match self.optional_number(name)? {
            Some(number) if number.fract() != 0.0 || number < f64::from(least) || number > 1e15 => Err(
                format!("parameter `{name}` must be an integer of at least {least}"),
            ),
            number => Ok(number.map(|number| number as u64)),
        }
    }

    /// One of these words.
    pub fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, String> {
        let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        self.parsed(name, &format!("one of {}", names.join(", ")), |value| {
            let found = words.iter().find(|(word, _)| value.as_str() == Some(word))?;
            Some(found.1)
        })
    }

    /// Ends parsing.
    ///
    /// # Errors
    /// There is a parameter that was not read.
    pub fn finish(self) -> Result<(), String> {
        let unknown = |name: &&String| !self.known.contains(&name.as_str());
        match self.given.keys().find(unknown) {
            Some(name) => Err(format!(
                "parameter `{}` is not one of {}",
                clip(name),
                self.known.join(", ")
            )),
            None => Ok(()),
        }
    }
}

pub fn missing(name: &str) -> String {
    format!("parameter `{name}` is missing")
}
