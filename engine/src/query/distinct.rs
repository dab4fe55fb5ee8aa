//! The number of distinct values.

use std::collections::HashSet;
use std::sync::Arc;

use super::budget::Held;
use crate::EngineError;

/// Distinct values of one field, or of fields with the same name in merged sources.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    /// Bits of numbers.
    numbers: HashSet<u64>,
    texts: HashSet<Arc<str>>,
    text_bytes: usize,
    /// Whether false and true occur.
    booleans: [bool; 2],
    /// The result, once the values are not needed any more.
    reduced: Option<u64>,
}

/// Approximate memory of an entry, and of the free ones beside it.
const NUMBER_BYTES: usize = 2 * (size_of::<u64>() + 1);
const TEXT_BYTES: usize = 2 * (size_of::<Arc<str>>() + 1);

impl Distinct {
    pub(super) fn count(&self) -> u64 {
        self.reduced.unwrap_or_else(|| {
            let booleans = self.booleans.iter().filter(|occurs| **occurs).count();
            (self.numbers.len() + self.texts.len() + booleans) as u64
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.numbers.len() * NUMBER_BYTES + self.texts.len() * TEXT_BYTES + self.text_bytes
    }

    pub(super) fn add_number(&mut self, number: f64, held: &mut Held<'_>) -> Result<(), EngineError> {
        // Zero has two representations.
        if self.numbers.insert((number + 0.0).to_bits()) {
            held.grow(NUMBER_BYTES)?;
        }
        Ok(())
    }

    pub(super) fn add_boolean(&mut self, boolean: bool) {
        self.booleans[usize::from(boolean)] = true;
    }

    pub(super) fn add_text(&mut self, text: &Arc<str>, held: &mut Held<'_>) -> Result<(), EngineError> {
        if !self.texts.contains(text) {
            held.grow(TEXT_BYTES + text.len())?;
            self.text_bytes += text.len();
            self.texts.insert(Arc::clone(text));
        }
        Ok(())
    }

    pub(super) fn absorb(&mut self, others: Distinct) {
        self.numbers.extend(others.numbers);
        for text in others.texts {
            let bytes = text.len();
            if self.texts.insert(text) {
                self.text_bytes += bytes;
            }
        }
        for (occurs, other) in self.booleans.iter_mut().zip(others.booleans) {
            *occurs |= other;
        }
        self.reduced = self.reduced.or(others.reduced);
    }

    /// Keeps only the number.
    pub(super) fn reduce(&mut self) {
        *self = Distinct {
            reduced: Some(self.count()),
            ..Distinct::default()
        };
    }
}
