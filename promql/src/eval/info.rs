//! `info`: adds the labels of info metrics to the series that they describe.

use std::collections::HashMap;

use super::steps::Steps;
use super::{Equal, Evaluation, Merger, Row, Rows};
use crate::error::Error;
use crate::expr::{Expr, Selector};
use crate::labels::{Labels, METRIC_NAME};
use crate::matcher::{MatchOp, Matcher};
use crate::storage::is_stale_marker;

/// The info metric that is meant unless the second argument names another.
const TARGET_INFO: &str = "target_info";

/// The labels that name what an info metric describes.
const IDENTIFYING: [&str; 2] = ["instance", "job"];

impl<'a> Evaluation<'a> {
    pub(super) fn info(&self, vector: &Expr, labels: Option<&Expr>, steps: Steps) -> Result<Rows<'a>, Error> {
        let wanted: Vec<Matcher> = match labels.map(Expr::bare) {
            None => Vec::new(),
            Some(Expr::Selector(selector)) => selector.matchers.clone(),
            Some(_) => {
                return Err(Error::bad_data(
                    "the second argument of info is a selector of labels",
                ));
            }
        };
        let base = self.rows(vector, steps)?;
        let (infos, _info_charge) = self.infos(&wanted, vector, steps)?.take();
        let mut described: HashMap<Labels, Vec<&Row>> = HashMap::new();
        for info in &infos {
            described.entry(identity(&info.labels)).or_default().push(info);
        }
        let is_info = |labels: &Labels| is_wanted_name(&wanted, labels.get(METRIC_NAME));
        let (rows, _charge) = base.take();
        let mut merger = Merger::new(self.budget, Equal::Merged);
        for row in rows {
            self.budget.check_time()?;
            if is_info(&row.labels) {
                merger.add(row)?;
                continue;
            }
            let found = described
                .get(&identity(&row.labels))
                .map_or(&[][..], Vec::as_slice);
            self.enrich(row, found, &wanted, steps, &mut merger)?;
        }
        Ok(merger.finish())
    }

    /// The info series, by the matchers on the name and on the wanted labels.
    fn infos(&self, wanted: &[Matcher], vector: &Expr, steps: Steps) -> Result<Rows<'a>, Error> {
        let mut matchers = wanted.to_vec();
        if matchers.iter().all(|matcher| matcher.name() != METRIC_NAME) {
            let newlines = self.options.semantics.newlines();
            matchers.push(Matcher::new(METRIC_NAME, MatchOp::Equal, TARGET_INFO, newlines)?);
        }
        let modifiers = match vector.bare() {
            Expr::Selector(selector) => selector.modifiers,
            _ => crate::expr::Modifiers::default(),
        };
        self.selected(
            &Selector { matchers, modifiers },
            steps,
            super::selectors::Wanted::Value,
        )
    }

    /// Adds a series, split by the info series that describe it at each step.
    fn enrich(
        &self,
        row: Row,
        infos: &[&Row],
        wanted: &[Matcher],
        steps: Steps,
        merger: &mut Merger<'a>,
    ) -> Result<(), Error> {
        let conditions: Vec<&Matcher> = wanted
            .iter()
            .filter(|matcher| matcher.name() != METRIC_NAME)
            .collect();
        // A step without info is left out when a wanted label has to have a value.
        let is_required = conditions.iter().any(|matcher| !matcher.matches(""));
        let mut by_labels: HashMap<Labels, Vec<f64>> = HashMap::new();
        for (step, value) in row.present() {
            let mut labels = row.labels.clone();
            let mut is_described = false;
            for info in infos.iter().filter(|info| !is_stale_marker(info.value(step))) {
                is_described = true;
                for label in info.labels.iter() {
                    let is_asked = conditions.is_empty()
                        || conditions.iter().any(|matcher| *matcher.name() == *label.name);
                    let is_data = *label.name != *METRIC_NAME && !IDENTIFYING.contains(&&*label.name);
                    if is_asked && is_data && row.labels.get(&label.name).is_empty() {
                        labels = labels.with(&label.name, &label.value);
                    }
                }
            }
            if is_described || !is_required {
                let values = by_labels.entry(labels);
                values.or_insert_with(|| vec![crate::storage::STALE_MARKER; steps.count])[step] = value;
            }
        }
        for (labels, values) in by_labels {
            if let Some(row) = Row::new(labels, &values) {
                merger.add(row)?;
            }
        }
        Ok(())
    }
}

fn identity(labels: &Labels) -> Labels {
    labels.only(&IDENTIFYING.map(str::to_owned))
}

fn is_wanted_name(wanted: &[Matcher], name: &str) -> bool {
    let mut names = wanted
        .iter()
        .filter(|matcher| matcher.name() == METRIC_NAME)
        .peekable();
    if names.peek().is_none() {
        return name == TARGET_INFO;
    }
    names.all(|matcher| matcher.matches(name))
}
