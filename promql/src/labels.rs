//! Label sets: sorted, shared, cheap to clone.

use std::fmt;
use std::sync::Arc;

/// The label that holds the name of a metric.
pub const METRIC_NAME: &str = "__name__";

/// A label. Its order is by name, then value, both by bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The name; unique in a set.
    pub name: Arc<str>,
    /// The value; never empty, since an empty value means an absent label.
    pub value: Arc<str>,
}

/// The labels of a series, sorted by name. A clone shares them.
///
/// The order of label sets is Prometheus's: label by label, the shorter set first when it is a prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<[Label]>);

impl Labels {
    /// The set without labels.
    pub fn empty() -> Labels {
        Labels(Arc::from([]))
    }

    /// A set of pairs of name and value. Empty values are left out; of a name given twice the last one stands.
    pub fn from_pairs<N: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (N, V)>) -> Labels {
        let mut labels: Vec<Label> = Vec::new();
        for (name, value) in pairs {
            labels.retain(|label| *label.name != *name.as_ref());
            if !value.as_ref().is_empty() {
                labels.push(Label {
                    name: Arc::from(name.as_ref()),
                    value: Arc::from(value.as_ref()),
                });
            }
        }
        labels.sort_unstable();
        Labels(labels.into())
    }

    /// The value of a label; the empty text when it is absent.
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|label| *label.name == *name);
        found.map_or("", |label| &label.value)
    }

    /// The labels in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Label> {
        self.0.iter()
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Without the name of the metric.
    pub(crate) fn without_name(&self) -> Labels {
        self.filter(|name| name != METRIC_NAME)
    }

    /// Only the named labels.
    pub(crate) fn only(&self, names: &[String]) -> Labels {
        self.filter(|name| names.iter().any(|kept| kept == name))
    }

    /// Without the named labels.
    pub(crate) fn without(&self, names: &[String]) -> Labels {
        self.filter(|name| names.iter().all(|dropped| dropped != name))
    }

    /// With a label set to a value, or without it when the value is empty.
    pub(crate) fn with(&self, name: &str, value: &str) -> Labels {
        let mut labels: Vec<Label> = self
            .0
            .iter()
            .filter(|label| *label.name != *name)
            .cloned()
            .collect();
        if !value.is_empty() {
            let at = labels.partition_point(|label| *label.name < *name);
            labels.insert(
                at,
                Label {
                    name: Arc::from(name),
                    value: Arc::from(value),
                },
            );
        }
        Labels(labels.into())
    }

    /// An upper estimate of the memory that a set of its own takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self
            .0
            .iter()
            .map(|label| label.name.len() + label.value.len())
            .sum();
        texts + self.0.len() * (size_of::<Label>() + 4 * size_of::<usize>())
    }

    fn filter(&self, keep: impl Fn(&str) -> bool) -> Labels {
        if self.0.iter().all(|label| keep(&label.name)) {
            return self.clone();
        }
        Labels(self.0.iter().filter(|label| keep(&label.name)).cloned().collect())
    }
}

/// As Prometheus shows a series: `{__name__="up", job="a"}`.
impl fmt::Display for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (index, label) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(out, "{comma}{}={:?}", label.name, label.value)?;
        }
        out.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_empty_values_are_absent() {
        let labels = Labels::from_pairs([("b", "1"), ("a", "2"), ("c", "")]);
        assert_eq!(labels.to_string(), r#"{a="2", b="1"}"#);
        assert_eq!(labels.get("c"), "");
    }

    #[test]
    fn the_order_is_by_label_and_then_by_length() {
        let short = Labels::from_pairs([("a", "1")]);
        let long = Labels::from_pairs([("a", "1"), ("b", "1")]);
        let other = Labels::from_pairs([("a", "2")]);
        assert!(short < long && long < other && Labels::empty() < short);
    }

    #[test]
    fn setting_a_label_keeps_the_order_and_an_empty_value_removes_it() {
        let labels = Labels::from_pairs([("a", "1"), ("c", "3")]);
        assert_eq!(labels.with("b", "2").to_string(), r#"{a="1", b="2", c="3"}"#);
        assert_eq!(labels.with("a", "").to_string(), r#"{c="3"}"#);
    }
}
