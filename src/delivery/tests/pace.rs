//! The rate at which a full queue is refilled is bounded.

use std::time::Duration;

use super::world::id;
use crate::delivery::pace::Pace;
use crate::delivery::recent::PER_WEBHOOK_MAX;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn free_room_is_always_granted_and_the_allowance_refills_each_second() {
    let mut pace = Pace::default();
    assert_eq!(pace.take(id(1), 700, 1_000, ms(0)), 700);
    assert_eq!(pace.take(id(1), 900, 300, ms(0)), 900, "600 of the allowance");
    assert_eq!(pace.take(id(1), 900, 0, ms(0)), PER_WEBHOOK_MAX - 600);
    assert_eq!(pace.take(id(1), 900, 0, ms(0)), 0);
    assert_eq!(pace.take(id(1), 900, 10, ms(0)), 10, "room costs no allowance");
    assert_eq!(pace.take(id(2), 900, 0, ms(0)), 900, "each webhook has its own");
    assert_eq!(pace.take(id(1), 900, 0, ms(100)), PER_WEBHOOK_MAX / 10);
    assert_eq!(pace.take(id(1), 5_000, 0, ms(60_000)), PER_WEBHOOK_MAX);
}

#[test]
fn frequent_calls_lose_no_part_of_the_allowance() {
    let mut pace = Pace::default();
    assert_eq!(pace.take(id(1), PER_WEBHOOK_MAX, 0, ms(0)), PER_WEBHOOK_MAX);
    let taken = (1..=3_000u64).map(|step| pace.take(id(1), 5, 0, Duration::from_micros(333 * step)));
    assert_eq!(taken.sum::<usize>(), 999);
}

#[test]
fn webhooks_with_a_full_allowance_are_forgotten() {
    let mut pace = Pace::default();
    for number in 0..5_000 {
        assert_eq!(pace.take(id(number), 2, 1, ms(10 * number)), 2);
    }
    assert!(pace.remembered() <= 1_024, "{}", pace.remembered());
}
