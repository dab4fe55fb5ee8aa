//! Noise as a function: the same seed and position give the same number, so any time can be evaluated in any order.

/// Pseudorandom numbers, one per position.
#[derive(Clone, Copy, Debug)]
pub struct Noise(u64);

impl Noise {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Independent noise of the same seed, for another purpose.
    pub fn of(self, purpose: u64) -> Self {
        Self(mixed(self.0 ^ mixed(purpose)))
    }

    /// Uniform from 0 to below 1.
    pub fn at(self, place: i64) -> f64 {
        // A double holds 53 bits.
        (mixed(self.0 ^ mixed(place as u64)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From -1 to 1, small values more often, like measurement noise.
    pub fn scatter(self, place: i64) -> f64 {
        self.at(place) + self.of(1).at(place) - 1.0
    }

    /// From -1 to 1, smooth over `seconds`, changing direction about once per `period`.
    pub fn drift(self, seconds: f64, period: f64) -> f64 {
        let place = (seconds / period).floor();
        let (before, behind) = (self.at(place as i64), self.at(place as i64 + 1));
        let within = smooth(seconds / period - place);
        2.0 * (before + (behind - before) * within) - 1.0
    }
}

/// Smoothstep: from 0 at 0 to 1 at 1, flat at both ends, constant outside.
pub fn smooth(x: f64) -> f64 {
    let x = x.clamp(0.0, 1.0);
    x * x * (3.0 - 2.0 * x)
}

/// The finalizer of SplitMix64: every output bit depends on every input bit.
fn mixed(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_cover_their_range_and_depend_on_seed_purpose_and_place() {
        let noise = Noise::new(7);
        let numbers: Vec<f64> = (-5_000..5_000).map(|place| noise.at(place)).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert_ne!(noise.at(1), noise.at(2));
        assert_ne!(noise.at(1), Noise::new(8).at(1));
        assert_ne!(noise.at(1), noise.of(1).at(1));
        assert!((-1_000..1_000).all(|place| noise.scatter(place).abs() <= 1.0));
    }

    #[test]
    fn drift_has_no_jumps() {
        let noise = Noise::new(7);
        let mut before = noise.drift(-1_000.0, 60.0);
        for second in -999..1_000 {
            let now = noise.drift(f64::from(second), 60.0);
            // The steepest slope of smoothstep is one and a half times the average slope.
            assert!(now.abs() <= 1.0 && (now - before).abs() <= 2.0 * 1.5 / 60.0 + 1e-9);
            before = now;
        }
    }
}
