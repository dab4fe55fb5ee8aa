//! Backups of a server under load, and restores from them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::audit;
use crate::ledger::{Ledger, Place, Sent};
use crate::load::{Load, WRITERS};
use crate::rounds::{from_environment, places};
use crate::support::given::{Account, PASSWORD, text};
use crate::support::process::{Server, Setup, command, run_to_end, wait_for_exit};
use crate::support::waiting::until;
use crate::support::watch::evaluation;

const WITHIN: Duration = Duration::from_secs(60);
const FORMS: [&str; 3] = ["", ".tar", ".tar.zst"];

/// A configuration with frequent sealing, merging and trimming.
fn busy_setup() -> Setup {
    Setup::unlimited()
        .set("storage.checkpoint_bytes", "65536")
        .set("webhooks.allow_private_networks", "true")
}

/// A path beside the data directory, removed with it.
fn path_beside(server: &Server, name: &str) -> PathBuf {
    server.data_dir().with_file_name("").join(name)
}

fn backup_command(server: &Server, target: &Path) -> Command {
    let mut command = command(&path_beside(server, ""));
    command.arg("backup").arg("--data-dir").arg(server.data_dir());
    command.arg("--to").arg(target);
    command
}

fn restore_command(server: &Server, backup: &Path) -> Command {
    let mut command = command(&path_beside(server, ""));
    command.arg("restore").arg("--from").arg(backup);
    command
}

#[track_caller]
fn expect_success(command: &mut Command) -> String {
    let (status, output) = run_to_end(command, WITHIN);
    assert!(status.success(), "{command:?}: {output}");
    output
}

#[track_caller]
fn expect_failure(command: &mut Command) -> String {
    let (status, output) = run_to_end(command, WITHIN);
    assert!(
        !status.success() && !output.contains("panicked"),
        "{command:?}: {output}"
    );
    output
}

#[track_caller]
fn assert_sound(server: &Server) {
    let mut check = command(&path_beside(server, ""));
    check.arg("check").arg("--data-dir").arg(server.data_dir());
    let output = expect_success(&mut check);
    assert!(output.contains("sound"), "{output}");
}

/// Replaces the server's data directory by a restored backup, as after the loss of its disk.
fn restore_instead(server: &mut Server, backup: &Path) {
    server.kill();
    fs::remove_dir_all(server.data_dir()).unwrap();
    let data_dir = server.data_dir();
    expect_success(restore_command(server, backup).arg("--data-dir").arg(data_dir));
    assert_sound(server);
    server.launch();
}

/// The acknowledged state when a backup began.
struct BackupStart {
    target: PathBuf,
    acknowledged: HashMap<u64, Sent>,
    /// Number of requests acknowledged by then.
    requests: usize,
    created: HashMap<String, Option<bool>>,
}

/// The state required of a backup between its beginning and its end: later data may or may not be included.
fn expected(begun: &BackupStart, ended: &Ledger) -> Ledger {
    let mut unknown = ended.history.as_deref().unwrap_or_default()[begun.requests..].to_vec();
    unknown.extend(ended.unknown.iter().cloned());
    let same = |id: &String, then: &Option<bool>| {
        let now = begun.created.get(id).copied().flatten();
        (id.clone(), now.filter(|now| Some(*now) == *then))
    };
    Ledger {
        acknowledged: begun.acknowledged.clone(),
        unknown,
        created: ended.created.iter().map(|(id, then)| same(id, then)).collect(),
        ..Ledger::default()
    }
}

/// The text of a webhook and of a rule.
fn webhook_and_rule(account: &Account, place: &Place) -> [String; 2] {
    let body = json!({"name": "bell", "url": "http://127.0.0.1:9/", "events": ["alert.triggered"]});
    let webhook = text(&account.webhook(&body), "/_id");
    let rule = place.bucket.rule(&json!({
        "dataSourceId": place.sources[0], "name": "high", "naturalLanguageQuery": "number is above 5",
        "evaluation": evaluation("number"),
    }));
    [format!("/api/webhooks/{webhook}"), format!("/api/alerts/{rule}")]
}

fn get_all(account: &Account, paths: &[String]) -> Vec<Value> {
    let show = |path: &String| {
        let answer = account.client.get(path).key(&account.admin).send();
        answer.expect(200, "spec: what exists is shown")
    };
    paths.iter().map(show).collect()
}

/// An action concurrent with the writers.
type Action<'a> = dyn FnMut(&Server, &Mutex<Ledger>, &AtomicU64) + 'a;

/// Runs writers while `act` runs, then kills the server.
fn under_load(
    server: &mut Server,
    places: &[Place],
    ledger: &Mutex<Ledger>,
    seed: u64,
    act: &mut Action<'_>,
) {
    let numbers = AtomicU64::new(1 + ledger.lock().unwrap().acknowledged.len() as u64 * 100);
    let client = server.client.clone();
    let load = Load {
        client: &client,
        places,
        ledger,
        numbers: &numbers,
        ballast: 400,
        answered: AtomicU64::new(0),
    };
    let mut random = fastrand::Rng::with_seed(seed);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            let (load, random) = (&load, random.fork());
            scope.spawn(move || load.write(random));
        }
        let (churn, random) = (&load, random.fork());
        scope.spawn(move || churn.churn(random));
        act(server, ledger, &load.answered);
        server.kill();
    });
}

fn wait_for(answered: &AtomicU64, more: u64) {
    let from = answered.load(Ordering::SeqCst);
    until("the server answers", || {
        (answered.load(Ordering::SeqCst) >= from + more).then_some(())
    });
}

#[test]
fn a_backup_under_load_holds_data_acknowledged_before_it_began() {
    let seed = from_environment("CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("CRASH_SEED={seed}");
    let mut server = Server::start_with(busy_setup());
    let account = Account::sign_up(&server.client);
    let places = places(&account);
    let paths = webhook_and_rule(&account, &places[0]);
    let as_shown = get_all(&account, &paths);
    let ledger = Mutex::new(Ledger {
        history: Some(Vec::new()),
        ..Ledger::default()
    });
    let mut backups = Vec::new();
    under_load(
        &mut server,
        &places,
        &ledger,
        seed,
        &mut |server, ledger, answered| {
            for (nth, form) in FORMS.iter().cycle().take(6).enumerate() {
                wait_for(answered, 100);
                let target = path_beside(server, &format!("backup-{nth}{form}"));
                let begun = {
                    let ledger = ledger.lock().unwrap();
                    BackupStart {
                        target: target.clone(),
                        acknowledged: ledger.acknowledged.clone(),
                        requests: ledger.history.as_ref().map_or(0, Vec::len),
                        created: ledger.created.clone(),
                    }
                };
                expect_success(&mut backup_command(server, &target));
                backups.push(begun);
            }
            wait_for(answered, 50);
        },
    );
    let ledger = ledger.into_inner().unwrap();
    for begun in &backups {
        let context = format!("{}, CRASH_SEED={seed}", begun.target.display());
        restore_instead(&mut server, &begun.target);
        let mut expected = expected(begun, &ledger);
        audit::points(&places, &mut expected, &context);
        audit::groups(&places, &mut fastrand::Rng::with_seed(seed), &context);
        audit::account(&account, &context);
        audit::sources(&server.client, &places[0], &mut expected, &context);
        assert_eq!(get_all(&account, &paths), as_shown, "{context}");
    }
}

#[test]
fn killing_the_backup_or_the_server_leaves_the_other_sound() {
    let seed = from_environment("CRASH_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("CRASH_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut server = Server::start_with(busy_setup());
    let account = Account::sign_up(&server.client);
    let places = places(&account);
    let ledger = Mutex::new(Ledger::default());
    for round in 0..6u64 {
        let kill_backup = round.is_multiple_of(2);
        let target = path_beside(&server, &format!("backup-{round}{}", FORMS[round as usize % 3]));
        let after = Duration::from_micros(random.u64(0..40_000));
        let mut running = None;
        under_load(
            &mut server,
            &places,
            &ledger,
            seed ^ round,
            &mut |server, _, answered| {
                wait_for(answered, 60);
                let mut command = backup_command(server, &target);
                let mut backup = command
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap();
                if wait_for_exit(&mut backup, after).is_none() && kill_backup {
                    let _ = backup.kill();
                }
                if kill_backup {
                    let _ = backup.wait();
                    wait_for(answered, 20);
                } else {
                    running = Some(backup);
                }
            },
        );
        let context = format!("round {round}, CRASH_SEED={seed}");
        if let Some(mut backup) = running {
            let status = wait_for_exit(&mut backup, WITHIN);
            assert!(
                status.is_some_and(|status| status.success()),
                "{context}: {status:?}"
            );
            expect_success(restore_command(&server, &target).arg("--verify"));
        } else if target.exists() {
            let (status, output) = run_to_end(restore_command(&server, &target).arg("--verify"), WITHIN);
            assert!(
                status.success() || output.contains("manifest"),
                "an incomplete backup is refused ({context}): {output}"
            );
        }
        assert_sound(&server);
        server.launch();
        audit::points(&places, &mut ledger.lock().unwrap(), &context);
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

/// A stopped server whose directory has files of all kinds.
fn stopped() -> (Server, Account) {
    let mut server = Server::start_with(busy_setup());
    let account = Account::sign_up(&server.client);
    let places = places(&account);
    let ledger = Mutex::new(Ledger::default());
    under_load(&mut server, &places, &ledger, 1, &mut |_, _, answered| {
        wait_for(answered, 150)
    });
    (server, account)
}

#[test]
fn a_flipped_byte_in_a_backup_is_reported_with_its_file() {
    let (server, _) = stopped();
    let target = path_beside(&server, "backup");
    expect_success(&mut backup_command(&server, &target));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), 0o700);
    for file in files(&target) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let bytes = fs::read(&file).unwrap();
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        fs::write(&file, flipped).unwrap();
        let name = file.strip_prefix(&target).unwrap().to_string_lossy().into_owned();
        let name = name.trim_start_matches("data/");
        for arguments in [vec!["--verify"], vec!["--data-dir", "elsewhere"]] {
            let output = expect_failure(restore_command(&server, &target).args(&arguments));
            assert!(output.contains(name), "{name} is not in: {output}");
        }
        fs::write(&file, bytes).unwrap();
    }
    let left = files(&path_beside(&server, "elsewhere"));
    assert!(left.iter().all(|file| file.ends_with("LOCK")), "{left:?}");
    fs::remove_file(target.join("MANIFEST")).unwrap();
    let output = expect_failure(restore_command(&server, &target).arg("--verify"));
    assert!(output.contains("manifest"), "{output}");
}

#[test]
fn backups_and_restores_never_overwrite_existing_files() {
    let (mut server, _) = stopped();
    for form in FORMS {
        let target = path_beside(&server, &format!("backup{form}"));
        expect_success(&mut backup_command(&server, &target));
        let before = if form.is_empty() {
            Vec::new()
        } else {
            fs::read(&target).unwrap()
        };
        let output = expect_failure(&mut backup_command(&server, &target));
        assert!(output.contains("not overwritten"), "{output}");
        if !form.is_empty() {
            assert_eq!(fs::read(&target).unwrap(), before);
            let mode = fs::metadata(&target).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600);
        }
        expect_success(restore_command(&server, &target).arg("--verify"));
    }
    let inside = server.data_dir().join("backup");
    assert!(expect_failure(&mut backup_command(&server, &inside)).contains("within the data directory"));
    assert!(!inside.exists());
    let backup = path_beside(&server, "backup");
    let data_dir = server.data_dir();
    let restore = |server: &Server, to: &Path| {
        expect_failure(restore_command(server, &backup).arg("--data-dir").arg(to))
    };
    assert!(restore(&server, &data_dir).contains("holds"));
    server.launch();
    assert!(restore(&server, &data_dir).contains(&server.pid().to_string()));
    let other = path_beside(&server, "other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("mine"), "mine").unwrap();
    assert!(restore(&server, &other).contains("mine"));
    assert_eq!(files(&other).len(), 1);
    let nothing = path_beside(&server, "nothing");
    fs::create_dir(&nothing).unwrap();
    let mut command = command(&nothing);
    command.args(["backup", "--data-dir", ".", "--to", "../of-nothing"]);
    assert!(expect_failure(&mut command).contains("nothing of a server"));
}

/// Backups of earlier format versions stay restorable: a server of that time, killed after checkpoints, with one account.
#[test]
fn a_backup_of_version_1_restores() {
    assert_restores("backup-1.tar");
}

#[test]
fn a_backup_of_version_2_restores() {
    assert_restores("backup-2.tar");
}

fn assert_restores(name: &str) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let mut server = Server::stopped(Setup::unlimited());
    let data_dir = server.data_dir();
    expect_success(
        restore_command(&server, &fixture)
            .arg("--data-dir")
            .arg(&data_dir),
    );
    assert_sound(&server);
    let mut check = command(&data_dir);
    let output = expect_success(check.arg("check").arg("--data-dir").arg(&data_dir));
    assert!(output.contains("in all 120 points"), "{output}");
    server.launch();
    let login = json!({"email": "fixture@example.com", "password": PASSWORD});
    let answer = server.client.post("/api/auth/login").json(&login).send();
    answer.expect(200, "contract 2: the account of the backup is there");
}
