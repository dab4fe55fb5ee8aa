//! Sums and means compared with exact ones, for rows that are sealed, merged, or reopened.

use std::collections::BTreeMap;

use engine::query::{GroupQuery, group};
use engine::rows::{NOT_DECIMAL, RowsWriter};
use engine::{Aggregate, SegmentWriter, Store, Unit};

use crate::files::Files;

const BUCKET: u32 = 1;
const SECOND: i64 = 1_000_000_000;
const LIMB_BITS: i32 = 32;
/// Exponent of the lowest bit.
const LOWEST: i32 = -1_074;

/// An exact sum: an integer of 2,240 bits in units of the smallest double. Limbs are normalized when the sum is read.
#[derive(Clone)]
struct ExactSum([i64; 70]);

impl ExactSum {
    fn new() -> Self {
        ExactSum([0; 70])
    }

    fn add(&mut self, value: f64) {
        assert!(value.is_finite());
        let bits = value.to_bits();
        let biased = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) = match biased {
            0 => (fraction, 0),
            _ => (fraction | 1 << 52, biased - 1),
        };
        let mut wide = u128::from(mantissa) << (shift % LIMB_BITS);
        let mut limb = (shift / LIMB_BITS) as usize;
        while wide > 0 {
            let part = (wide & 0xffff_ffff) as i64;
            self.0[limb] += if value < 0.0 { -part } else { part };
            wide >>= LIMB_BITS;
            limb += 1;
        }
    }

    /// Mantissa and exponent, exact to about 60 bits.
    fn scaled(&self) -> (f64, i32) {
        let mut limbs = self.0;
        let mut carry = 0;
        for limb in &mut limbs {
            let whole = *limb + carry;
            carry = whole >> LIMB_BITS;
            *limb = whole & 0xffff_ffff;
        }
        if carry < 0 {
            let mut opposite = ExactSum::new();
            opposite
                .0
                .iter_mut()
                .zip(self.0)
                .for_each(|(to, from)| *to = -from);
            let (mantissa, exponent) = opposite.scaled();
            return (-mantissa, exponent);
        }
        let Some(top) = limbs.iter().rposition(|limb| *limb != 0) else {
            return (0.0, 0);
        };
        let mut mantissa = 0u128;
        for limb in (top.saturating_sub(3)..=top).rev() {
            mantissa = mantissa << LIMB_BITS | limbs[limb] as u128;
        }
        let lowest = top.saturating_sub(3) as i32;
        // A sticky bit for the omitted limbs, so that rounding to nearest is correct.
        let rest = limbs[..lowest as usize].iter().any(|limb| *limb != 0);
        let mantissa = (mantissa | u128::from(rest)) as f64;
        (mantissa, LOWEST + lowest * LIMB_BITS)
    }

    /// The nearest double, or the greatest one on overflow.
    fn value(&self) -> f64 {
        let (mantissa, exponent) = self.scaled();
        times_power(mantissa, exponent).clamp(f64::MIN, f64::MAX)
    }

    /// The sum divided by `count`.
    fn mean(&self, count: u64) -> f64 {
        let (mantissa, exponent) = self.scaled();
        times_power(mantissa / count as f64, exponent)
    }
}

/// Scales in steps that neither overflow nor round before the last.
fn times_power(mut value: f64, mut exponent: i32) -> f64 {
    while exponent != 0 {
        let step = exponent.clamp(-500, 500);
        if exponent < 0 && value.abs() < 1e-100 {
            // The result is at most subnormal, below the tolerance of every test.
            return value * 2f64.powi(exponent.max(-1_000));
        }
        value *= 2f64.powi(step);
        exponent -= step;
    }
    value
}

/// The kind of values in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    /// Whole numbers up to 2^60: all sums are exact in two doubles.
    Whole,
    /// Multiples of 2^980 up to the greatest double.
    Huge,
    /// Doubles of every magnitude.
    Any,
    /// Up to 15 digits, some of them decimals.
    Decimals,
}

impl Family {
    fn value(self, random: &mut fastrand::Rng, earlier: &[f64]) -> f64 {
        if !earlier.is_empty() && random.u8(0..3) == 0 {
            return -earlier[random.usize(0..earlier.len())];
        }
        let sign = if random.bool() { 1.0 } else { -1.0 };
        sign * match self {
            Family::Whole => match random.u8(0..3) {
                0 => 1e16,
                1 => random.u32(0..100).into(),
                _ => (random.u64(0..1 << 53) << random.u32(0..8)) as f64,
            },
            Family::Huge => match random.u8(0..4) {
                0 => f64::MAX,
                1 => 1.5e308_f64,
                2 => 0.0,
                _ => random.u32(..) as f64 * 2f64.powi(980),
            },
            Family::Any => match random.u8(0..8) {
                0 => f64::MAX,
                1 => f64::MIN_POSITIVE,
                2 => f64::from_bits(1),
                3 => random.f64(),
                _ => random.f64() * 10f64.powi(random.i32(-300..=308)),
            },
            Family::Decimals => {
                let digits = random.u32(1..=14);
                random.u64(0..10u64.pow(digits)) as f64 / 100.0
            }
        }
    }

    fn decimals(self) -> u8 {
        match self {
            Family::Decimals => 2,
            _ => NOT_DECIMAL,
        }
    }
}

/// A store, and the segments that a restart would find.
struct World {
    store: Store,
    files: Files,
    next_sequence: u64,
}

impl World {
    fn write(&mut self, rows: &[(i64, f64)], decimals: u8) {
        let mut writer = RowsWriter::new();
        for (timestamp_ns, value) in rows {
            writer.begin(1);
            writer.number(0, *value, decimals);
            writer.commit(*timestamp_ns);
        }
        let mut bytes = Vec::new();
        writer.encode(&mut bytes);
        self.store.apply(&bytes, self.next_sequence, &[]).unwrap();
        self.next_sequence += rows.len() as u64;
    }

    fn seal(&mut self) {
        let seals = self.store.take_seals();
        seals
            .into_iter()
            .for_each(|seal| self.store.finish_seal(seal.run()));
    }

    fn checkpoint(&mut self) {
        let Some(checkpoint) = self.store.begin_checkpoint() else {
            return;
        };
        let file = self.files.write(|segment| {
            segment.begin_bucket(BUCKET);
            checkpoint.write(segment)
        });
        let part = file.part(BUCKET).unwrap();
        self.store.finish_checkpoint(checkpoint, part, i64::MIN);
    }

    fn merge(&mut self) -> bool {
        let live = self.store.live_segments().into_iter().collect();
        let Some(chosen) = self.files.choose_merge(&live) else {
            return false;
        };
        let merge = self.store.begin_merge(&chosen).unwrap();
        let file = self.files.write(|segment: &mut SegmentWriter<'_>| {
            segment.begin_bucket(BUCKET);
            merge.write(segment, i64::MIN, &[])
        });
        let part = file.part(BUCKET).unwrap();
        self.store.finish_merge(merge, part, i64::MIN);
        let live = self.store.live_segments().into_iter().collect();
        self.files.remove_unused(&live);
        true
    }

    fn restart(&mut self) {
        self.checkpoint();
        self.store = Store::new();
        for file in self.files.open_all() {
            self.store.add_segment(file.part(BUCKET).unwrap().unwrap());
        }
    }

    fn groups(&self, unit: Unit) -> BTreeMap<i64, Aggregate> {
        let snapshot = [self.store.view().series(1).unwrap()];
        let query = GroupQuery {
            range_ns: (i64::MIN, i64::MAX),
            step: unit.into(),
            fields: &[0],
            metadata: None,
            stop: &|| false,
            values: &[],
        };
        let groups = group(&snapshot[0], &query).unwrap();
        let cells = groups.starts_ns.iter().enumerate();
        cells
            .map(|(cell, start_ns)| (*start_ns, groups.cell(cell)[0]))
            .collect()
    }
}

fn check(world: &World, rows: &[(i64, f64)], family: Family, what: &str) {
    for unit in [Unit::Minute, Unit::Hour, Unit::Day] {
        let mut expected: BTreeMap<i64, (u64, ExactSum, f64)> = BTreeMap::new();
        for (timestamp_ns, value) in rows {
            let cell = expected.entry(unit.start_ns(*timestamp_ns));
            let (count, exact, whole) = cell.or_insert_with(|| (0, ExactSum::new(), 0.0));
            *count += 1;
            exact.add(*value);
            *whole += value.abs() / 2f64.powi(64);
        }
        let found = world.groups(unit);
        assert!(found.keys().eq(expected.keys()), "{what}");
        for ((start_ns, found), (count, exact, whole)) in found.iter().zip(expected.values()) {
            let (sum, avg) = (exact.value(), exact.mean(*count));
            let what = format!(
                "{what}, {unit:?} {start_ns}: {} for {sum}, {} for {avg}",
                found.sum(),
                found.avg()
            );
            assert_eq!(found.count, *count, "{what}");
            if matches!(family, Family::Whole | Family::Huge) {
                assert_eq!(found.sum(), sum, "to the bit: {what}");
            }
            let n = *count as f64;
            // The part that two doubles cannot hold, and for decimals the error of their doubles.
            let slack = match family {
                Family::Decimals => n * 2f64.powi(-12) / 100.0,
                _ => n * n * 2f64.powi(-104) * whole * 2f64.powi(64),
            };
            let near = |found: f64, exact: f64, slack: f64| {
                (found - exact).abs() <= 1e-9 * exact.abs().min(f64::MAX) + slack
            };
            assert!(near(found.sum() / 4.0, sum / 4.0, slack / 4.0), "{what}");
            assert!(near(found.avg() / 4.0, avg / 4.0, slack / n / 4.0), "{what}");
        }
    }
}

#[test]
fn sums_equal_those_of_the_rows_after_any_change() {
    let seed = 1_604;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut merges = 0;
    for round in 0..60 {
        let family = [Family::Whole, Family::Huge, Family::Any, Family::Decimals][round % 4];
        let mut world = World {
            store: Store::new(),
            files: Files::default(),
            next_sequence: 1,
        };
        let (mut rows, mut values): (Vec<(i64, f64)>, Vec<f64>) = (Vec::new(), Vec::new());
        // One round in ten is long enough for blocks that fill without a checkpoint.
        let (parts, rows_max) = if round % 10 == 5 { (6, 4_000) } else { (12, 400) };
        for _ in 0..parts {
            let part: Vec<(i64, f64)> = (0..random.usize(1..rows_max))
                .map(|_| {
                    let value = family.value(&mut random, &values);
                    values.push(value);
                    (random.i64(0..5 * 3_600) * SECOND, value)
                })
                .collect();
            world.write(&part, family.decimals());
            rows.extend(part);
            match random.u8(0..6) {
                0 | 1 => world.checkpoint(),
                2 => merges += u32::from(world.merge()),
                3 => world.restart(),
                4 => world.seal(),
                _ => {}
            }
        }
        let what = format!("seed {seed}, round {round}, {family:?}");
        check(&world, &rows, family, &what);
        world.restart();
        check(&world, &rows, family, &format!("{what}, restarted"));
        while world.merge() {
            merges += 1;
        }
        check(&world, &rows, family, &format!("{what}, merged"));
    }
    assert!(merges > 5, "seed {seed}: {merges} merges");
}

/// Regression: these values were summed to 0, with a mean of 4.49e307.
#[test]
fn carries_and_overflows_survive_sealing() {
    let of = |parts: &[&[f64]]| {
        let mut world = World {
            store: Store::new(),
            files: Files::default(),
            next_sequence: 1,
        };
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                world.restart();
            }
            let rows: Vec<(i64, f64)> = part.iter().map(|value| (index as i64, *value)).collect();
            world.write(&rows, NOT_DECIMAL);
        }
        let aggregate = world.groups(Unit::Day).into_values().next().unwrap();
        (aggregate.sum(), aggregate.avg())
    };
    assert_eq!(of(&[&[1e16, 1.0], &[-1e16]]).0, 1.0);
    assert_eq!(of(&[&[1e16, 1.0, -1e16]]).0, 1.0);
    let large = (1.5e308, 3.75e307);
    assert_eq!(of(&[&[1.5e308, 1.5e308, -1.5e308, 0.0]]), large);
    assert_eq!(of(&[&[1.5e308, 1.5e308], &[-1.5e308, 0.0]]), large);
    assert_eq!(of(&[&[1.5e308, 1.5e308, -1.5e308, 0.0], &[]]), large);
    assert_eq!(of(&[&[f64::MAX, f64::MAX], &[]]), (f64::MAX, f64::MAX));
}
