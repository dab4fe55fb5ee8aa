//! `label_replace` and `label_join`.

use super::steps::Steps;
use super::{Equal, Evaluation, Merger, Row, Rows};
use crate::error::Error;
use crate::expr::Expr;
use crate::labels::Labels;
use crate::options::Semantics;
use crate::pattern;

impl<'a> Evaluation<'a> {
    /// Sets a label to what a pattern finds in another one, where it matches.
    pub(super) fn label_replace(&self, args: &[Expr], steps: Steps) -> Result<Rows<'a>, Error> {
        let [vector, target, replacement, source, regex] = args else {
            return Err(Error::bad_data("label_replace takes five arguments"));
        };
        let target = self.string(target)?;
        let replacement = self.string(replacement)?;
        let source = self.string(source)?;
        let regex =
            pattern::compile(&self.string(regex)?, self.options.semantics.newlines()).map_err(|error| {
                Error::execution(format!("invalid regular expression in label_replace(): {error}"))
            })?;
        self.check_label(&target, "destination label name in label_replace()")?;
        self.relabelled(vector, steps, |labels| {
            let Some(found) = regex.captures(labels.get(&source)) else {
                return labels.clone();
            };
            let mut value = String::new();
            found.expand(&replacement, &mut value);
            labels.with(&target, &value)
        })
    }

    /// Sets a label to the values of others with a separator between them.
    pub(super) fn label_join(&self, args: &[Expr], steps: Steps) -> Result<Rows<'a>, Error> {
        let [vector, target, separator, sources @ ..] = args else {
            return Err(Error::bad_data("label_join takes at least three arguments"));
        };
        let target = self.string(target)?;
        let separator = self.string(separator)?;
        let sources = sources
            .iter()
            .map(|source| self.string(source))
            .collect::<Result<Vec<_>, _>>()?;
        self.check_label(&target, "destination label name in label_join()")?;
        for source in &sources {
            self.check_label(source, "source label name in label_join()")?;
        }
        self.relabelled(vector, steps, |labels| {
            let values: Vec<&str> = sources.iter().map(|source| labels.get(source)).collect();
            labels.with(&target, &values.join(&separator))
        })
    }

    fn relabelled(
        &self,
        vector: &Expr,
        steps: Steps,
        labels: impl Fn(&Labels) -> Labels,
    ) -> Result<Rows<'a>, Error> {
        let (rows, _charge) = self.rows(vector, steps)?.take();
        let mut merger = Merger::new(self.budget, Equal::Merged);
        for row in rows {
            self.budget.check_time()?;
            merger.add(Row {
                labels: labels(&row.labels),
                ..row
            })?;
        }
        Ok(merger.finish())
    }

    /// Since Prometheus 3 any text but the empty one names a label.
    pub(super) fn check_label(&self, name: &str, what: &str) -> Result<(), Error> {
        let is_plain = |char: char| char == '_' || char.is_ascii_alphanumeric();
        let is_valid = match self.options.semantics {
            Semantics::V3 => !name.is_empty(),
            Semantics::V2 => {
                !name.is_empty()
                    && name.chars().all(is_plain)
                    && !name.starts_with(|char: char| char.is_ascii_digit())
            }
        };
        if is_valid {
            Ok(())
        } else {
            Err(Error::execution(format!("invalid {what}: {name:?}")))
        }
    }
}
