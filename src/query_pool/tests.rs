use std::pin::Pin;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Poll;

use engine::query::Touched;

use super::*;

const MEMORY: usize = 1 << 20;

fn block_on<F: Future>(future: F) -> F::Output {
    actix_web::rt::System::new().block_on(future)
}

fn organization(number: u8) -> ObjectId {
    ObjectId::from_bytes([number; 12])
}

/// Starts a request without waiting for its answer.
async fn begin<F: Future>(request: &mut Pin<Box<F>>) {
    std::future::poll_fn(|context| {
        let _ = request.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

/// A query that needs a long turn, reports its start, and then waits to be released.
fn long_query(
    started: Sender<u8>,
    name: u8,
    released: Receiver<()>,
) -> impl FnMut(&Stop, Turn) -> Result<Step<u8>, ServiceError> {
    move |_, turn| {
        if turn == Turn::Short {
            return Ok(Step::Long);
        }
        started.send(name).unwrap();
        released.recv().unwrap();
        Ok(Step::Answer(name))
    }
}

/// Waits until `count` queries have had their short turn and wait for a long one.
fn wait_for_long_queries(pool: &QueryPool, count: usize) {
    while pool.0.shared.queue.lock().turns.waiting_long() != count {
        std::thread::yield_now();
    }
}

fn answer_only(name: u8) -> impl FnMut(&Stop, Turn) -> Result<Step<u8>, ServiceError> {
    move |_, _| Ok(Step::Answer(name))
}

#[test]
fn a_full_queue_refuses_at_once() {
    let pool = QueryPool::start(1, 1, Duration::from_secs(60), MEMORY).unwrap();
    let (started, is_started) = channel();
    block_on(async {
        // Both threads are busy with short turns.
        let mut busy = Vec::new();
        for _ in 0..2 {
            let (release, released) = channel::<()>();
            let started = started.clone();
            let mut query = Box::pin(pool.run(organization(1), move |_, _| {
                started.send(()).unwrap();
                released.recv().unwrap();
                Ok(Step::Answer(1))
            }));
            begin(&mut query).await;
            is_started.recv().unwrap();
            busy.push((query, release));
        }
        let mut waiting = Box::pin(pool.run(organization(2), answer_only(2)));
        begin(&mut waiting).await;
        let refused = pool.run(organization(3), answer_only(3)).await.unwrap_err();
        assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
        for (query, release) in busy {
            release.send(()).unwrap();
            assert_eq!(query.await.unwrap(), 1);
        }
        assert_eq!(waiting.await.unwrap(), 2);
    });
}

/// A thread that was woken up and has not taken its query yet does not count as idle: each query here waits for the other.
#[test]
fn queries_that_arrive_together_run_on_different_threads() {
    let pool = QueryPool::start(1, 100, Duration::from_secs(60), MEMORY).unwrap();
    let both = Arc::new(Barrier::new(2));
    let meet = || {
        let both = Arc::clone(&both);
        move |_: &Stop, _| {
            both.wait();
            Ok(Step::Answer(()))
        }
    };
    block_on(async {
        for _ in 0..200 {
            let (one, other) = tokio::join!(
                pool.run(organization(1), meet()),
                pool.run(organization(2), meet())
            );
            one.unwrap();
            other.unwrap();
        }
    });
}

/// Regression: with a single pool thread, a small query waited until the scans of another organization were done.
#[test]
fn a_small_query_does_not_wait_for_scans() {
    let pool = QueryPool::start(1, 100, Duration::from_secs(60), MEMORY).unwrap();
    let (started, is_started) = channel();
    block_on(async {
        let mut scans = Vec::new();
        for name in 0..20 {
            let (release, released) = channel::<()>();
            let mut scan = Box::pin(pool.run(organization(1), long_query(started.clone(), name, released)));
            begin(&mut scan).await;
            scans.push((scan, release));
        }
        is_started.recv().unwrap();
        // The only thread for scans is occupied, and no scan ends before this query is answered.
        assert_eq!(pool.run(organization(2), answer_only(7)).await.unwrap(), 7);
        assert_eq!(
            pool.run(organization(1), answer_only(8)).await.unwrap(),
            8,
            "its own do not either"
        );
        for (scan, release) in scans {
            release.send(()).unwrap();
            scan.await.unwrap();
        }
    });
}

#[test]
fn scans_of_organizations_take_turns() {
    let pool = QueryPool::start(1, 100, Duration::from_secs(60), MEMORY).unwrap();
    let (started, is_started) = channel();
    block_on(async {
        let mut scans = Vec::new();
        for name in [10, 11, 12, 13, 20, 30] {
            let (release, released) = channel::<()>();
            let by = organization(name / 10);
            let mut scan = Box::pin(pool.run(by, long_query(started.clone(), name, released)));
            begin(&mut scan).await;
            // Each query has had its short turn before the next starts, so that the order is known.
            if name == 10 {
                assert_eq!(is_started.recv().unwrap(), 10);
            }
            wait_for_long_queries(&pool, scans.len());
            scans.push((scan, release));
        }
        let mut order = vec![10];
        for (_, release) in &scans {
            release.send(()).unwrap();
        }
        order.extend((1..scans.len()).map(|_| is_started.recv().unwrap()));
        assert_eq!(order, [10, 11, 20, 30, 12, 13]);
        for (scan, _) in scans {
            scan.await.unwrap();
        }
    });
}

#[test]
fn one_organization_cannot_fill_the_queue() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let (started, is_started) = channel();
    block_on(async {
        let mut scans = Vec::new();
        // One runs and four wait: half of the queue.
        for name in 0..5 {
            let (release, released) = channel::<()>();
            let mut scan = Box::pin(pool.run(organization(1), long_query(started.clone(), name, released)));
            begin(&mut scan).await;
            if name == 0 {
                is_started.recv().unwrap();
            }
            scans.push((scan, release));
        }
        wait_for_long_queries(&pool, 4);
        let refused = pool.run(organization(1), answer_only(9)).await.unwrap_err();
        assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
        assert_eq!(pool.run(organization(2), answer_only(9)).await.unwrap(), 9);
        for (scan, release) in scans {
            release.send(()).unwrap();
            scan.await.unwrap();
        }
        assert_eq!(pool.stats().refused, 1);
    });
}

#[test]
fn a_dropped_request_stops_its_query() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let (saw_stop, stopped) = channel();
    let (started, is_started) = channel();
    block_on(async {
        let mut query = Box::pin(pool.run(organization(1), move |stop, _| {
            started.send(()).unwrap();
            while !stop.now() {
                std::thread::yield_now();
            }
            saw_stop.send(()).unwrap();
            Ok(Step::Answer(()))
        }));
        begin(&mut query).await;
        is_started.recv().unwrap();
        drop(query);
        stopped.recv().unwrap();
    });
}

#[test]
fn a_query_out_of_time_is_503() {
    let pool = QueryPool::start(1, 8, Duration::ZERO, MEMORY).unwrap();
    let refused = block_on(pool.run(organization(1), answer_only(1))).unwrap_err();
    assert_eq!(refused.kind, crate::error::ErrorKind::Unavailable);
}

/// How many threads work when each waits for all the others that a long turn may have.
#[test]
fn a_long_turn_has_the_free_places_as_helpers_and_a_short_one_none() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let places = std::thread::available_parallelism().map_or(1, usize::from).min(2);
    let all_of = |count: usize| {
        let all = Arc::new(Barrier::new(count));
        move |stop: &Stop| {
            let worked = stop.with_helpers(10, |_| all.wait());
            (worked.len(), worked.iter().filter(|it| it.is_leader()).count())
        }
    };
    let (alone, together) = (all_of(1), all_of(places));
    block_on(async {
        for _ in 0..3 {
            let (alone, together) = (alone.clone(), together.clone());
            let answer = pool.run(organization(1), move |stop, turn| match turn {
                Turn::Immediate | Turn::Short => {
                    assert_eq!(alone(stop), (1, 1));
                    Ok(Step::Long)
                }
                Turn::Long => Ok(Step::Answer(together(stop))),
            });
            assert_eq!(answer.await.unwrap(), (places, 1));
        }
    });
}

#[test]
fn turns_and_helpers_together_are_no_more_than_the_places() {
    let pool = QueryPool::start(3, 8, Duration::from_secs(60), MEMORY).unwrap();
    let places = std::thread::available_parallelism().map_or(1, usize::from).min(6);
    let turns = Arc::new(Barrier::new(3));
    let (working, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let query = || {
        let (turns, working, most) = (Arc::clone(&turns), Arc::clone(&working), Arc::clone(&most));
        move |stop: &Stop, turn: Turn| {
            if turn != Turn::Long {
                return Ok(Step::Long);
            }
            turns.wait();
            stop.with_helpers(10, |_| {
                most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                (0..100).for_each(|_| std::thread::yield_now());
                working.fetch_sub(1, Ordering::SeqCst);
            });
            turns.wait();
            Ok(Step::Answer(()))
        }
    };
    block_on(async {
        let three = [1, 2, 3].map(|number| pool.run(organization(number), query()));
        let [one, two, three] = three;
        let (one, two, three) = tokio::join!(one, two, three);
        one.and(two).and(three).unwrap();
    });
    let most = most.load(Ordering::SeqCst);
    assert!(most <= places.max(3) as u64, "{most} threads at {places} places");
}

#[test]
fn a_panic_of_a_helper_is_one_of_its_query_and_frees_its_place() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let free = || pool.0.shared.places.free();
    let before = free();
    block_on(async {
        let failing = pool.run(organization(1), |stop, turn| {
            if turn != Turn::Long {
                return Ok(Step::Long);
            }
            stop.with_helpers(10, |worker| assert_eq!(worker, Worker::Turn));
            Ok(Step::Answer(()))
        });
        let kind = failing.await.err().map(|error| error.kind);
        let has_helpers = std::thread::available_parallelism().map_or(1, usize::from) > 1;
        assert_eq!(kind, has_helpers.then_some(crate::error::ErrorKind::Internal));
        assert_eq!(pool.run(organization(1), answer_only(2)).await.unwrap(), 2);
    });
    assert_eq!(free(), before);
}

#[test]
fn a_helper_leaves_its_place_to_a_turn() {
    let pool = QueryPool::start(3, 8, Duration::from_secs(60), MEMORY).unwrap();
    let places = &pool.0.shared.places;
    let answer = block_on(pool.run(organization(1), {
        let shared = Arc::clone(&pool.0.shared);
        move |stop, turn| {
            if turn != Turn::Long {
                return Ok(Step::Long);
            }
            let goes_on = || [Worker::Turn, Worker::Helper].map(|worker| stop.goes_on(worker));
            let alone = goes_on();
            let others: Vec<_> = (0..=shared.places.free()).map(|_| shared.places.take()).collect();
            let crowded = goes_on();
            drop(others);
            Ok(Step::Answer([alone, crowded, goes_on()]))
        }
    }));
    assert_eq!(answer.unwrap(), [[true, true], [true, false], [true, true]]);
    assert!(places.free() > 0);
}

#[test]
fn a_small_query_is_answered_on_the_thread_of_its_request() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let here = std::thread::current().id();
    let answer = |_: &Stop, turn| Ok(Step::Answer((turn, std::thread::current().id())));
    let answers = block_on(async {
        let immediate = pool.run_here_first(organization(1), answer).await.unwrap();
        let queued = pool.run(organization(1), answer).await.unwrap();
        (immediate, queued)
    });
    assert_eq!(answers.0, (Turn::Immediate, here));
    assert_eq!(answers.1.0, Turn::Short);
    assert_ne!(answers.1.1, here);
    let stats = pool.stats();
    assert_eq!((stats.immediate, stats.durations.count()), (1, 2));
}

/// Runs a query whose immediate turn is this; the answer is the turn in which it is answered otherwise.
fn after_immediate_turn(
    mut immediate: impl FnMut(&Stop) -> Result<Step<Turn>, ServiceError> + Send + 'static,
) -> Result<Turn, ServiceError> {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let (began, has_begun) = channel();
    let answer = block_on(
        pool.run_here_first(organization(1), move |stop, turn| match turn {
            Turn::Immediate => {
                began.send(()).unwrap();
                immediate(stop)
            }
            Turn::Short | Turn::Long => Ok(Step::Answer(turn)),
        }),
    );
    has_begun.recv().unwrap();
    answer
}

#[test]
fn a_query_that_an_immediate_turn_does_not_suffice_for_is_queued() {
    let says = after_immediate_turn(|_| Ok(Step::Long));
    assert_eq!(says.unwrap(), Turn::Short);
    let late = after_immediate_turn(|stop| {
        while !stop.now() {
            std::hint::spin_loop();
        }
        Err(took_too_long())
    });
    assert_eq!(late.unwrap(), Turn::Short);
    let fault = after_immediate_turn(|_| Err(ServiceError::validation("a fault")));
    assert_eq!(
        fault.unwrap_err().kind,
        crate::error::ErrorKind::Validation,
        "it is the answer"
    );
}

#[test]
fn a_panic_affects_only_its_query() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    block_on(async {
        for failing_turn in [Turn::Immediate, Turn::Short, Turn::Long] {
            let failing = pool.run_here_first(
                organization(1),
                move |_, turn| -> Result<Step<()>, ServiceError> {
                    match turn == failing_turn {
                        true => panic!("as a bug would"),
                        false => Ok(Step::Long),
                    }
                },
            );
            let error = failing.await.unwrap_err();
            assert_eq!(error.kind, crate::error::ErrorKind::Internal, "{failing_turn:?}");
        }
        assert_eq!(
            pool.run_here_first(organization(1), answer_only(2))
                .await
                .unwrap(),
            2
        );
    });
}

/// A thread that had to wait, for a page of a file for instance, serves others before it tries again.
#[test]
fn after_a_turn_that_took_too_long_queries_are_queued() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let turn = |_: &Stop, turn| Ok(Step::Answer(turn));
    block_on(async {
        pool.0
            .shared
            .immediate
            .ran(Duration::from_secs(60), Instant::now());
        assert_eq!(
            pool.run_here_first(organization(1), turn).await.unwrap(),
            Turn::Short
        );
    });
}

/// What a query reads in a turn that is aborted, it reads again.
#[test]
fn only_what_was_read_for_an_answer_is_counted() {
    let pool = QueryPool::start(1, 8, Duration::from_secs(60), MEMORY).unwrap();
    let answer = block_on(pool.run(organization(1), |stop, turn| {
        stop.touched(Touched {
            rows: 3,
            cells: 1,
            blocks: 2,
        });
        Ok(match turn {
            Turn::Immediate | Turn::Short => Step::Long,
            Turn::Long => Step::Answer(()),
        })
    }));
    answer.unwrap();
    assert_eq!((pool.stats().touched, pool.stats().blocks_opened), (4, 2));
}
