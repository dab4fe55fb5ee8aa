//! Exact quantiles: linear interpolation between the two nearest ranks (Hyndman and Fan, Sample quantiles in statistical
//! packages, 1996, type 7).

/// The numbers of a field in a cell.
#[derive(Debug)]
pub(super) enum Values {
    /// All of them.
    Unsorted(Vec<f64>),
    /// Their quantiles, by their shares.
    Reduced(Box<[(f64, f64)]>),
}

impl Default for Values {
    fn default() -> Self {
        Values::Unsorted(Vec::new())
    }
}

impl Values {
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Values::Unsorted(values) => values.capacity() * size_of::<f64>(),
            Values::Reduced(found) => size_of_val(&**found),
        }
    }

    pub(super) fn absorb(&mut self, others: Values) {
        match (&mut *self, others) {
            (Values::Unsorted(values), Values::Unsorted(mut others)) => {
                if values.len() < others.len() {
                    std::mem::swap(values, &mut others);
                }
                values.reserve_exact(others.len());
                values.extend(others);
            }
            // Only cells of a single source are reduced, once they are complete.
            (Values::Reduced(_), _) => {}
            (values, others @ Values::Reduced(_)) => *values = others,
        }
    }

    pub(super) fn reduce(&mut self, shares: &[f64]) {
        if let Values::Unsorted(values) = self {
            let found = shares
                .iter()
                .filter_map(|share| Some((*share, quantile(values, *share)?)));
            *self = Values::Reduced(found.collect());
        }
    }
}

/// A quantile of these values, whose order changes; `None` without values.
pub(super) fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let rank = last as f64 * share;
    let below = (rank as usize).min(last);
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    let part = rank - below as f64;
    let distance = high - low;
    Some(match distance.is_finite() {
        // From the nearer side, so that the result is never beyond the other one.
        true if part >= 0.5 => high - distance * (1.0 - part),
        true => low + distance * part,
        false => low * (1.0 - part) + high * part,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_two_nearest_ranks() {
        let of = |share: f64, values: &[f64]| quantile(&mut values.to_vec(), share);
        assert_eq!(of(0.5, &[]), None);
        assert_eq!([of(0.01, &[3.0]), of(0.999, &[3.0])], [Some(3.0); 2]);
        assert_eq!(of(0.5, &[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        // As numpy.quantile gives them.
        assert_eq!(of(0.95, &[1.0, 2.0, 3.0, 4.0, 5.0]), Some(4.8));
        assert_eq!(of(0.25, &[10.0, 0.0, 7.0]), Some(3.5));
        assert_eq!(of(0.5, &[f64::MIN, f64::MAX]), Some(0.0));
    }
}
