//! Every encoding round-trips and takes no more space than the plain one.

use super::*;
use crate::column::Texts;

fn integers_round_trip(values: &[i64]) -> usize {
    let mut out = Vec::new();
    encode_integers(&mut out, values);
    assert_eq!(decode_integers(&out, values.len()).unwrap(), values);
    out.len()
}

fn doubles_round_trip(values: &[f64], decimals: u8) -> usize {
    let mut out = Vec::new();
    encode_doubles(&mut out, values, decimals);
    let (back, _) = decode_doubles(&out, values.len()).unwrap();
    assert!(
        back.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits()),
        "{values:?} came back as {back:?}"
    );
    out.len()
}

#[test]
fn a_regular_series_costs_a_few_bytes_in_all() {
    let seconds: Vec<i64> = (0..8192)
        .map(|n| 1_700_000_000_000_000_000 + n * 1_000_000_000)
        .collect();
    assert!(integers_round_trip(&seconds) < 20);
    assert!(integers_round_trip(&[7; 8192]) < 5);
}

#[test]
fn integers_of_every_length_and_size_round_trip() {
    for len in [0usize, 1, 2, 3, 31, 32, 33, 255, 256, 257, 1000] {
        let jagged: Vec<i64> = (0..len as i64).map(|n| n * n % 97 - 40).collect();
        integers_round_trip(&jagged);
        let wide: Vec<i64> = (0..len as i64)
            .map(|n| if n % 2 == 0 { i64::MIN + n } else { i64::MAX - n })
            .collect();
        integers_round_trip(&wide);
    }
}

/// The first byte of an encoded column.
fn form_of(values: &[i64]) -> u8 {
    let mut out = Vec::new();
    encode_integers(&mut out, values);
    out[0]
}

#[test]
fn short_columns_are_packed_unless_that_is_longer() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut value = 0;
    let walk: Vec<i64> = std::iter::repeat_with(|| {
        value += random.i64(-9..=9) + random.i64(-9..=9);
        value
    })
    .take(8_192)
    .collect();
    let (pco, packed) = (2, 3);
    assert_eq!(form_of(&walk[..30]), packed);
    assert_eq!(form_of(&walk[..300]), packed);
    assert_eq!(form_of(&walk), pco);
    let mut outliers = walk[..300].to_vec();
    outliers
        .iter_mut()
        .step_by(50)
        .for_each(|value| *value += 1 << 30);
    assert_eq!(form_of(&outliers), pco);
    let wide: Vec<i64> = (0..300).map(|_| random.i64(..)).collect();
    assert_eq!(form_of(&wide), pco);
    // A sensor that was offline once.
    let gap = |row: usize| if row < 150 { 0 } else { 86_400_000 };
    let times = (0..300).map(|row| row as i64 * 10_000 + random.i64(0..200) + gap(row));
    let times: Vec<i64> = times.map(|time_ms| time_ms * 1_000_000).collect();
    assert_eq!(form_of(&times), pco);
    let mut without_gap = times[..150].to_vec();
    assert_eq!(form_of(&without_gap), packed);
    without_gap.truncate(40);
    assert_eq!(form_of(&without_gap), packed);
    let mut rare = [0; 1_000];
    rare.iter_mut()
        .step_by(33)
        .for_each(|value| *value = random.i64(1..9));
    assert_eq!(form_of(&rare), pco);
}

#[test]
fn no_short_column_is_longer_than_its_differences_as_varints() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for len in 2..64 {
        for below in [2, 100, 1_000_000, 1 << 40] {
            for (step, unit) in [(0, 1), (10_000, 1_000_000), (77, 1)] {
                let values = (0..len).map(|row| (row * step + random.i64(0..below)) * unit);
                let values: Vec<i64> = values.map(|value| 1_700_000_000 + value).collect();
                let mut varints = Vec::new();
                let mut before = 0;
                for value in &values {
                    crate::bytes::put_signed(&mut varints, value - before);
                    before = *value;
                }
                let bytes = integers_round_trip(&values);
                // A column by the same step has one more number.
                assert!(bytes <= 2 + varints.len(), "{values:?}: {bytes} bytes");
            }
        }
    }
}

#[test]
fn doubles_round_trip_bit_for_bit() {
    let specials = [
        0.0,
        -0.0,
        1e308,
        -1e308,
        f64::MIN_POSITIVE,
        5e-324,
        0.1 + 0.2,
        1.0 / 3.0,
        9.007_199_254_740_993e15,
    ];
    for decimals in [0, 1, 2, 22, crate::rows::NOT_DECIMAL] {
        doubles_round_trip(&specials, decimals);
        doubles_round_trip(&specials.repeat(10), decimals);
    }
}

#[test]
fn decimals_are_smaller_as_mantissas_than_as_doubles() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut value = 200i32;
    let walk: Vec<f64> = std::iter::repeat_with(|| {
        value += rng.i32(-3..=3);
        f64::from(value) / 10.0
    })
    .take(8192)
    .collect();
    let mantissas = doubles_round_trip(&walk, 1);
    let doubles = doubles_round_trip(&walk, crate::rows::NOT_DECIMAL);
    assert!(
        mantissas <= doubles,
        "{mantissas} bytes as mantissas, {doubles} as doubles"
    );
}

#[test]
fn texts_round_trip() {
    let words = ["", "open", "closed", "ÄÖ\u{1F30A}", &"long ".repeat(100)];
    let codes: Vec<u32> = (0..500u32).map(|n| n * n % 5).collect();
    let texts = Texts::new(words.iter().map(|word| (*word).into()).collect(), codes.clone());
    let mut out = Vec::new();
    encode_texts(&mut out, &texts);
    let back = decode_texts(&out, codes.len()).unwrap();
    assert!((0..codes.len()).all(|row| back.get(row) == texts.get(row)));
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    // Second differences have three values, 1,013 apart.
    let short: Vec<i64> = (0..300).map(|n| n * n % 1013).collect();
    let uneven: Vec<i64> = (0..300).map(|n| n * n * n % 1013).collect();
    let long: Vec<i64> = (0..2_000).map(|n| n * n % 1013).collect();
    for (values, form) in [(&short, 4), (&uneven, 3), (&long, 2)] {
        let mut out = Vec::new();
        encode_integers(&mut out, values);
        assert_eq!(out[0], form);
        for cut in 0..out.len() {
            assert!(
                decode_integers(&out[..cut], values.len()).is_err(),
                "cut at {cut}"
            );
        }
        for byte in 0..out.len() {
            for bit in 0..8 {
                let mut flipped = out.clone();
                flipped[byte] ^= 1 << bit;
                let _ = decode_integers(&flipped, values.len());
                let _ = decode_doubles(&flipped, values.len());
                let _ = decode_texts(&flipped, values.len());
            }
        }
    }
}

#[test]
fn the_order_of_differences_with_the_smallest_result_is_chosen() {
    // The second differences of a counter are small, too, but its first differences are smaller; noise has no small
    // differences.
    let mut rng = fastrand::Rng::with_seed(3);
    let mut count = 0;
    let counter: Vec<i64> = std::iter::repeat_with(|| {
        count += rng.i64(0..=3);
        count
    })
    .take(8192)
    .collect();
    assert!(integers_round_trip(&counter) < 2_200, "two bits a value");
    let mut spiked = counter.clone();
    spiked[4_000] = 1 << 40;
    assert!(integers_round_trip(&spiked) < 2_300, "a spike costs its own bits");
    let noise: Vec<i64> = (0..8192).map(|_| rng.i64(0..1_000)).collect();
    assert!(integers_round_trip(&noise) < 10_500, "ten bits a value");
}
