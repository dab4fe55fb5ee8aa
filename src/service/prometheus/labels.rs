//! Which series of a source satisfy matchers, by its index where that can tell.

use engine::SeriesSnapshot;
use promql::{Error, Labels, METRIC_NAME, MatchOp, Matcher};
use roaring::RoaringBitmap;

use super::is_name;
use super::metrics::label_name;
use super::storage::{BucketStorage, failed};
use crate::catalog::Source;
use crate::series::Matcher as Wanted;

impl BucketStorage<'_> {
    /// The series of a source that may satisfy the matchers, whose names are not looked at.
    pub(super) fn candidates(
        &self,
        source: &Source,
        matchers: &[Matcher],
    ) -> Result<Vec<SeriesSnapshot>, Error> {
        let view = &self.indexed.view;
        let members = view
            .members(source.ordinal)
            .filter(|_| source.dimensions.is_some());
        let Some(members) = members else {
            return Ok(view.series(source.ordinal).into_iter().collect());
        };
        let index = &self.indexed.index;
        let mut found = RoaringBitmap::clone(members);
        let by_labels = matchers.iter().filter(|matcher| !is_name(matcher));
        let mut names = None;
        for matcher in by_labels {
            let names = match &mut names {
                Some(names) => names,
                none => none.insert(index.all_names(source.ordinal, members).map_err(failed)?),
            };
            let mut of_label = names.iter().filter(|name| label_name(name) == matcher.name());
            let (first, second) = (of_label.next(), of_label.next());
            found = match (first, second) {
                // No series has it.
                (None, _) if matcher.matches("") => found,
                (None, _) => RoaringBitmap::new(),
                (Some(name), None) => self.satisfying(source, name, matcher, &found)?,
                // Several dimensions have this name: their labels tell.
                (Some(_), Some(_)) => found,
            };
        }
        Ok(found.iter().filter_map(|ordinal| view.series(ordinal)).collect())
    }

    fn satisfying(
        &self,
        source: &Source,
        name: &str,
        matcher: &Matcher,
        among: &RoaringBitmap,
    ) -> Result<RoaringBitmap, Error> {
        let index = &self.indexed.index;
        // An absent label has the empty value.
        let value = || match matcher.value() {
            "" => vec![None, Some("".into())],
            value => vec![Some(value.into())],
        };
        let wanted = match matcher.op() {
            MatchOp::Equal => Wanted::In(value().into()),
            MatchOp::NotEqual => Wanted::NotIn(value().into()),
            MatchOp::Matches | MatchOp::NotMatches => {
                let values = index.values(source.ordinal, name, "", among).map_err(failed)?;
                let mut found = RoaringBitmap::new();
                for (_, having) in values.iter().filter(|(value, _)| matcher.matches(value)) {
                    found |= having;
                }
                if matcher.matches("") {
                    found |= among - index.having(source.ordinal, name, among).map_err(failed)?;
                }
                return Ok(found);
            }
        };
        index.select(source.ordinal, name, &wanted, among).map_err(failed)
    }

    /// The labels of a series for a metric.
    pub(super) fn labels_of(
        &self,
        source: &Source,
        series: &SeriesSnapshot,
        metric: &str,
    ) -> Result<Labels, Error> {
        let metric = [(METRIC_NAME.to_owned(), metric.to_owned())];
        if source.dimensions.is_none() {
            return Ok(Labels::from_pairs(metric));
        }
        let series = engine::SeriesRef {
            ordinal: series.ordinal,
            source: source.ordinal,
        };
        let labels = self
            .indexed
            .index
            .labels(series)
            .map_err(failed)?
            .unwrap_or_default();
        let pairs = labels
            .iter()
            .map(|(name, value)| (label_name(name), value.to_owned()));
        Ok(Labels::from_pairs(pairs.chain(metric)))
    }
}
