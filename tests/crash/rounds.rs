//! SIGKILL under concurrent load, in many rounds on one data directory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::audit;
use crate::ledger::{Ledger, Place};
use crate::load::{Load, WRITERS};
use crate::support::given::Account;
use crate::support::process::{Server, Setup, command, run_to_end};

const ROUNDS: u64 = 12;

/// Time limit of a round; exceeding it is a failure.
const LOAD_WITHIN: Duration = Duration::from_secs(60);

pub fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|error| panic!("{name}={value}: {error}")),
    )
}

pub fn places(account: &Account) -> Vec<Place> {
    (0..3)
        .map(|nth| {
            let bucket = account.bucket(&format!("bucket {nth}"));
            let sources = (0..3)
                .map(|nth| bucket.source(&format!("source {nth}"), &["number", "half"]))
                .collect();
            Place { bucket, sources }
        })
        .collect()
}

/// Runs under load, so that changes made by a second process are detected by the audit.
fn assert_second_process_refused(server: &Server) {
    let mut second = command(&server.data_dir());
    second
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(server.data_dir());
    let (status, output) = run_to_end(&mut second, Duration::from_secs(20));
    let pid = server.pid().to_string();
    assert!(
        !status.success() && output.contains(&pid),
        "contract 9: a second process refuses and names {pid}: {output}"
    );
}

/// Kills during logging and replay.
#[test]
fn acknowledged_points_survive_sigkill_under_load() {
    check_kills(Setup::unlimited(), 0);
}

/// Kills also during sealing, merging and trimming, which are frequent here.
#[test]
fn acknowledged_points_survive_sigkill_while_they_are_sealed() {
    check_kills(Setup::unlimited().set("storage.checkpoint_bytes", "65536"), 400);
}

fn check_kills(setup: Setup, ballast: usize) {
    let seed = from_environment("CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    let rounds = from_environment("CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("CRASH_SEED={seed} CRASH_ROUNDS={rounds}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut server = Server::start_with(setup);
    let account = Account::sign_up(&server.client);
    let places = places(&account);
    let ledger = Mutex::new(Ledger::default());
    let numbers = AtomicU64::new(1);

    for round in 0..rounds {
        let client = server.client.clone();
        let load = Load {
            client: &client,
            places: &places,
            ledger: &ledger,
            numbers: &numbers,
            ballast,
            answered: AtomicU64::new(0),
        };
        let until = random.u64(1..300);
        thread::scope(|scope| {
            for _ in 0..WRITERS {
                let random = random.fork();
                let load = &load;
                scope.spawn(move || load.write(random));
            }
            let (churn, random) = (&load, random.fork());
            scope.spawn(move || churn.churn(random));
            let deadline = Instant::now() + LOAD_WITHIN;
            while load.answered.load(Ordering::SeqCst) < until && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(200));
            }
            if round == 0 {
                assert_second_process_refused(&server);
            }
            server.kill();
        });
        let answered = load.answered.load(Ordering::SeqCst);
        assert!(
            answered >= until,
            "round {round}: {answered} answers within {LOAD_WITHIN:?}, waited for {until}"
        );

        // Recovery is sometimes killed, too, at any moment.
        for _ in 0..[0, 0, 1, 2][random.usize(..4)] {
            server.launch_and_kill(Duration::from_micros(random.u64(0..60_000)));
        }
        server.launch();
        if random.u8(..4) == 0 {
            // An orderly stop: at the next kill, all but the newest points are sealed.
            assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
            server.launch();
        }

        let context = format!("round {round}, CRASH_SEED={seed}");
        let mut ledger = ledger.lock().unwrap();
        audit::points(&places, &mut ledger, &context);
        audit::groups(&places, &mut random, &context);
        audit::retries(&client, &places, &mut ledger, &mut random, &context);
        audit::points(&places, &mut ledger, &format!("{context}, after retries"));
        audit::account(&account, &context);
        audit::sources(&client, &places[0], &mut ledger, &context);
    }

    // After all kills, an orderly stop and another configuration change nothing either.
    assert!(server.stop().success(), "contract 9: SIGTERM: exit 0");
    server.configure(Setup::unlimited());
    server.launch();
    let mut ledger = ledger.lock().unwrap();
    audit::points(&places, &mut ledger, &format!("after a stop, CRASH_SEED={seed}"));
    let points = ledger.acknowledged.len();
    println!(
        "{points} points in {} hours, {} replayable requests",
        audit::hours(&places),
        ledger.replayable.len()
    );
    assert!(points as u64 > rounds, "the test wrote something");
}
