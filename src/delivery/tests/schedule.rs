//! The schedule in simulated time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::delivery::schedule::{
    Class, IN_FLIGHT_MAX, PROVEN_RECEIVER_IN_FLIGHT_MAX, ReceiverKey, Schedule, UNPROVEN_IN_FLIGHT_MAX,
};
use crate::ids::ObjectId;

fn id(number: u64) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn webhook(number: u64) -> ReceiverKey {
    ReceiverKey::Webhook(id(number))
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Starts all deliveries that may start now.
fn start(schedule: &mut Schedule, now: Duration) -> Vec<ObjectId> {
    std::iter::from_fn(|| schedule.next(now)).collect()
}

#[test]
fn a_receiver_has_one_slot_until_it_responds_and_four_after() {
    let mut schedule = Schedule::default();
    (0..10).for_each(|n| schedule.add(id(n), webhook(1), Class::Owed, ms(0)));
    assert_eq!(start(&mut schedule, ms(0)), [id(0)]);
    schedule.ended(id(0), Some(true));
    assert_eq!(start(&mut schedule, ms(1)), [id(1), id(2), id(3), id(4)]);
    schedule.ended(id(2), Some(false));
    assert_eq!(start(&mut schedule, ms(2)), [], "three are in flight still");
    [1, 3]
        .into_iter()
        .for_each(|n| schedule.ended(id(n), Some(false)));
    assert_eq!(start(&mut schedule, ms(3)), []);
    schedule.ended(id(4), Some(false));
    assert_eq!(start(&mut schedule, ms(4)), [id(5)]);
    assert_eq!((schedule.len(), schedule.in_flight()), (5, 1));
}

#[test]
fn pending_deliveries_go_before_best_effort_then_in_order() {
    let mut schedule = Schedule::default();
    schedule.add(id(1), webhook(1), Class::BestEffort, ms(0));
    schedule.add(id(2), webhook(1), Class::BestEffort, ms(0));
    schedule.add(id(3), webhook(1), Class::Owed, ms(0));
    schedule.add(id(4), webhook(1), Class::Owed, ms(0));
    let mut order = Vec::new();
    while let Some(next) = schedule.next(ms(0)) {
        order.push(next);
        schedule.ended(next, Some(false));
    }
    assert_eq!(order, [3, 4, 1, 2].map(id));
}

#[test]
fn receivers_take_turns_regardless_of_queue_length() {
    let mut schedule = Schedule::default();
    (0..1_000).for_each(|n| schedule.add(id(n), webhook(1), Class::Owed, ms(0)));
    (1_000..1_003).for_each(|n| schedule.add(id(n), webhook(2), Class::Owed, ms(0)));
    let mut order = Vec::new();
    for _ in 0..6 {
        let next = schedule.next(ms(0)).unwrap();
        order.push(next);
        schedule.ended(next, Some(true));
    }
    let of_second = order.iter().filter(|next| **next >= id(1_000)).count();
    assert_eq!(of_second, 3, "{order:?}");
}

#[test]
fn a_waiting_delivery_takes_no_slot_and_can_be_rescheduled() {
    let mut schedule = Schedule::default();
    schedule.add(id(1), webhook(1), Class::Owed, ms(1_000));
    schedule.add(id(2), webhook(1), Class::Owed, ms(0));
    assert_eq!(start(&mut schedule, ms(0)), [id(2)]);
    schedule.ended(id(2), Some(true));
    assert_eq!(start(&mut schedule, ms(999)), []);
    assert_eq!(schedule.next_due(), Some(ms(1_000)));
    schedule.add(id(1), webhook(1), Class::Owed, ms(500));
    assert_eq!(start(&mut schedule, ms(999)), [id(1)]);
    schedule.add(id(1), webhook(1), Class::Owed, ms(0));
    assert_eq!(start(&mut schedule, ms(2_000)), [], "it is in flight once");
    schedule.remove(id(1));
    assert!(
        schedule.is_in_flight(id(1)),
        "an attempt in flight ends by itself"
    );
    schedule.ended(id(1), Some(true));
    assert_eq!((schedule.len(), schedule.next_due()), (0, None));
    schedule.add(id(3), webhook(1), Class::Owed, ms(0));
    schedule.remove(id(3));
    assert_eq!(start(&mut schedule, ms(3_000)), []);
}

#[test]
fn dead_receivers_leave_half_of_the_slots_free() {
    let mut schedule = Schedule::default();
    (0..2_000).for_each(|n| schedule.add(id(n), webhook(n), Class::Owed, ms(0)));
    assert_eq!(start(&mut schedule, ms(0)).len(), UNPROVEN_IN_FLIGHT_MAX);
    // One of them answers, and has slots of its own from then on.
    schedule.add(id(9_000), webhook(0), Class::Owed, ms(0));
    schedule.ended(id(0), Some(true));
    let started = start(&mut schedule, ms(1));
    assert!(started.contains(&id(9_000)), "{started:?}");
}

/// The behaviour of a receiver.
#[derive(Clone, Copy)]
enum Behaviour {
    /// Answers after this many milliseconds, with this percentage of successes.
    Alive(u64, u8),
    /// Never answers: the attempt times out after 30 seconds.
    Unresponsive,
}

/// The result of a run of the schedule: when each delivery ended, by its number.
struct Run {
    ended: HashMap<u64, Duration>,
    attempts: HashMap<u64, Vec<Duration>>,
}

const TRIES: usize = 4;

/// Simulates all arrivals `(at, number, receiver)` to their end; asserts the bounds at every step.
fn simulate(arrivals: &[(Duration, u64, u64)], behaviours: &[Behaviour], random_seed: u64) -> Run {
    let mut schedule = Schedule::default();
    let mut run = Run {
        ended: HashMap::new(),
        attempts: HashMap::new(),
    };
    let mut arrivals = arrivals.iter().peekable();
    // Ends of attempts in progress.
    let mut ends: BTreeMap<(Duration, u64), (bool, bool)> = BTreeMap::new();
    let mut receivers: HashMap<u64, u64> = HashMap::new();
    let mut flying: HashMap<u64, HashSet<u64>> = HashMap::new();
    let mut due: HashMap<u64, Duration> = HashMap::new();
    loop {
        let moments = [
            arrivals.peek().map(|(at, ..)| *at),
            ends.first_key_value().map(|((at, _), _)| *at),
            schedule.next_due(),
        ];
        let Some(now) = moments.into_iter().flatten().min() else {
            break;
        };
        while let Some((_, number, receiver)) = arrivals.next_if(|(at, ..)| *at <= now) {
            receivers.insert(*number, *receiver);
            due.insert(*number, now);
            schedule.add(id(*number), webhook(*receiver), Class::Owed, now);
        }
        while let Some(entry) = ends.first_entry()
            && entry.key().0 <= now
        {
            let ((_, number), (success, prompt)) = entry.remove_entry();
            let receiver = receivers[&number];
            flying.entry(receiver).or_default().remove(&number);
            schedule.ended(id(number), Some(prompt));
            let tried = run.attempts[&number].len();
            if success || tried == TRIES {
                run.ended.insert(number, now);
            } else {
                let retry = now + Duration::from_secs(1 << (tried - 1));
                due.insert(number, retry);
                schedule.add(id(number), webhook(receiver), Class::Owed, retry);
            }
        }
        while let Some(next) = schedule.next(now) {
            let number = u64::from_be_bytes(next.as_bytes()[4..].try_into().unwrap());
            let receiver = receivers[&number];
            assert!(due[&number] <= now, "an attempt before its time");
            let of_receiver = flying.entry(receiver).or_default();
            assert!(of_receiver.insert(number), "twice in flight");
            assert!(of_receiver.len() <= PROVEN_RECEIVER_IN_FLIGHT_MAX);
            let attempts = run.attempts.entry(number).or_default();
            attempts.push(now);
            let (took, success) = match behaviours[receiver as usize] {
                Behaviour::Unresponsive => (Duration::from_secs(30), false),
                Behaviour::Alive(took, percent) => {
                    let dice = fastrand::Rng::with_seed(random_seed ^ number << 8 ^ attempts.len() as u64)
                        .u8(0..100);
                    (ms(took), dice < percent)
                }
            };
            let prompt = took < Duration::from_secs(5);
            ends.insert((now + took, number), (success, prompt));
        }
        assert!(schedule.in_flight() <= IN_FLIGHT_MAX);
        assert_eq!(schedule.in_flight(), ends.len());
    }
    assert_eq!(schedule.len(), 0);
    run
}

#[test]
fn no_delivery_is_early_or_lost_or_delayed_by_dead_receivers() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..20 {
        let alive = rng.u64(1..40);
        let dead = rng.u64(1..80);
        let behaviours: Vec<_> = (0..alive + dead)
            .map(|receiver| match receiver {
                receiver if receiver >= alive => Behaviour::Unresponsive,
                _ => Behaviour::Alive(rng.u64(1..2_000), rng.u8(50..=100)),
            })
            .collect();
        let mut arrivals: Vec<_> = (0..rng.u64(100..2_000))
            .map(|number| (ms(rng.u64(0..20_000)), number, rng.u64(0..alive + dead)))
            .collect();
        arrivals.sort();
        let all = simulate(&arrivals, &behaviours, seed);
        assert_eq!(all.ended.len(), arrivals.len(), "all end");
        let living: Vec<_> = arrivals
            .iter()
            .copied()
            .filter(|(.., receiver)| *receiver < alive)
            .collect();
        let without_the_dead = simulate(&living, &behaviours, seed);
        for (_, number, _) in &living {
            assert_eq!(
                all.attempts[number], without_the_dead.attempts[number],
                "delivery {number} is delayed by the dead"
            );
        }
    }
}

#[test]
fn many_dead_receivers_do_not_block_live_ones() {
    // More unresponsive receivers than slots, queued first; another receiver has a burst, then a steady stream.
    let behaviours: Vec<_> = (0..1_001)
        .map(|receiver| {
            if receiver == 0 {
                Behaviour::Alive(10, 100)
            } else {
                Behaviour::Unresponsive
            }
        })
        .collect();
    let mut arrivals: Vec<_> = (1..1_001).map(|n| (ms(0), n, n)).collect();
    arrivals.extend((0..500).map(|n| (ms(1 + 10 * n), 10_000 + n, 0)));
    arrivals.sort();
    // It has responded before: one delivery at the very start, before those to unresponsive receivers.
    arrivals.insert(0, (ms(0), 9_999, 0));
    let run = simulate(&arrivals, &behaviours, 1);
    for n in 1..500 {
        let waited = run.attempts[&(10_000 + n)][0] - ms(1 + 10 * n);
        assert!(waited <= ms(20), "delivery {n} waited {waited:?}");
    }
}
