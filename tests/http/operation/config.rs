//! Configuration: an invalid key or value prevents the start and is named; flags override the environment, the
//! environment overrides the file, and the file overrides defaults.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::process::{command, run_to_end, variable};

const WITHIN: Duration = Duration::from_secs(20);

fn directory() -> TempDir {
    TempDir::new().unwrap()
}

/// The binary with this config file and no overriding settings.
fn with_config(root: &Path, text: &str) -> Command {
    let file = root.join("config.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = command(root);
    command.arg("serve").arg("--config").arg(file);
    command
}

/// Asserts that the process fails and prints each of these words.
#[track_caller]
fn assert_refused(command: &mut Command, named: &[&str]) {
    let (status, output) = run_to_end(command, WITHIN);
    let sentence =
        "contract 9: a wrong key or value in the config stops the start with a message that names it";
    assert!(
        !status.success(),
        "{sentence}; it ended with 0 and said: {output}"
    );
    for word in named {
        assert!(output.contains(word), "{sentence}; `{word}` is not in: {output}");
    }
    assert!(
        !output.contains("panicked"),
        "a wrong config must not panic: {output}"
    );
}

#[test]
fn a_wrong_key_or_value_in_the_file_is_named() {
    let cases: &[(&str, &[&str])] = &[
        ("[server]\nlissten = \"127.0.0.1:0\"", &["lissten"]),
        ("[sever]\nlisten = \"127.0.0.1:0\"", &["sever"]),
        ("listen = \"127.0.0.1:0\"", &["listen"]),
        ("[wal]\nsync = \"sometimes\"", &["sync", "sometimes"]),
        ("[wal]\nsync = true", &["sync"]),
        ("[wal]\nsync = 5", &["sync"]),
        ("[server]\nlisten = 5", &["listen"]),
        ("[server]\nlisten = \"nowhere\"", &["listen", "nowhere"]),
        ("[server]\nlisten = \"127.0.0.1:99999\"", &["listen"]),
        ("[server]\ncors_origins = \"x\"", &["cors_origins"]),
        ("[accounts]\ndefault_plan = \"Gold\"", &["default_plan", "Gold"]),
        ("[accounts]\nsignup = \"yes\"", &["signup"]),
        ("[storage]\ndata_dir = 7", &["data_dir"]),
        ("[operator]\ntoken = 12", &["token"]),
        (
            "[webhooks]\nallow_private_networks = \"no\"",
            &["allow_private_networks"],
        ),
        ("[wal\nsync = ", &["config.toml"]),
    ];
    for (text, named) in cases {
        let root = directory();
        assert_refused(&mut with_config(root.path(), text), named);
    }
}

#[test]
fn a_wrong_value_in_the_environment_is_named() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("wal.sync", "sometimes", &["sync"]),
        ("accounts.signup", "perhaps", &["signup"]),
        ("accounts.default_plan", "Gold", &["default_plan"]),
        ("server.listen", "nowhere", &["listen"]),
        ("server.lissten", "127.0.0.1:0", &["lissten"]),
        ("sever.listen", "127.0.0.1:0", &["sever"]),
    ];
    for (key, value, named) in cases {
        let root = directory();
        let mut command = command(root.path());
        command
            .arg("--data-dir")
            .arg(root.path().join("data"))
            .env(variable(key), value);
        let named: Vec<String> = named.iter().map(|word| (*word).to_owned()).collect();
        let (status, output) = run_to_end(&mut command, WITHIN);
        let sentence = "contract 9: a wrong key or value stops the start with a message that names it";
        assert!(
            !status.success(),
            "{sentence} ({key}={value}); it ended with 0 and said: {output}"
        );
        for word in named {
            let found = output.to_lowercase().contains(&word);
            assert!(found, "{sentence} ({key}={value}); `{word}` is not in: {output}");
        }
    }
}

#[test]
fn wrong_flags_and_files_are_named() {
    let root = directory();
    let with = |arguments: &[&str]| {
        let mut command = command(root.path());
        command.args(arguments);
        command
    };
    assert_refused(
        &mut with(&["serve", "--config", "missing.toml"]),
        &["missing.toml"],
    );
    assert_refused(&mut with(&["serve", "--lissten", "127.0.0.1:0"]), &["--lissten"]);
    assert_refused(
        &mut with(&["serve", "--listen", "nowhere"]),
        &["listen", "nowhere"],
    );
    assert_refused(&mut with(&["swim"]), &["swim"]);
    std::fs::write(root.path().join("file"), "not a directory").unwrap();
    assert_refused(
        &mut with(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "file"]),
        &["file"],
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    assert_refused(
        &mut with(&["serve", "--listen", &address, "--data-dir", "data"]),
        &[&address],
    );
}

#[test]
fn help_lists_every_flag_and_key() {
    let root = directory();
    let (status, output) = run_to_end(command(root.path()).arg("--help"), WITHIN);
    assert!(status.success(), "--help ends with 0: {output}");
    for word in ["serve", "--config", "--listen", "--data-dir"] {
        assert!(
            output.contains(word),
            "contract 9: `tidewatch --help` lists all; `{word}` is not in: {output}"
        );
    }
    for key in [
        "server.listen",
        "storage.data_dir",
        "wal.sync",
        "accounts.default_plan",
        "accounts.signup",
        "operator.token",
        "webhooks.allow_private_networks",
        "server.cors_origins",
    ] {
        let listed = output.contains(key) || output.contains(&variable(key));
        assert!(
            listed,
            "contract 9: `tidewatch --help` lists all; neither `{key}` nor its variable is in: {output}"
        );
    }
}

/// The created data directory shows which setting was used.
#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    struct Case {
        file: bool,
        environment: bool,
        flag: bool,
        created: &'static str,
    }
    let cases = [
        Case {
            file: false,
            environment: false,
            flag: false,
            created: "data",
        },
        Case {
            file: true,
            environment: false,
            flag: false,
            created: "of-file",
        },
        Case {
            file: true,
            environment: true,
            flag: false,
            created: "of-environment",
        },
        Case {
            file: true,
            environment: true,
            flag: true,
            created: "of-flag",
        },
        Case {
            file: false,
            environment: true,
            flag: true,
            created: "of-flag",
        },
    ];
    for case in cases {
        let root = directory();
        let mut command = command(root.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if case.file {
            let text = "[storage]\ndata_dir = \"of-file\"\n[server]\nlisten = \"127.0.0.1:1\"\n";
            std::fs::write(root.path().join("settings.toml"), text).unwrap();
            command.args(["--config", "settings.toml"]);
        }
        if case.environment {
            command
                .env(variable("storage.data_dir"), "of-environment")
                .env(variable("server.listen"), "127.0.0.1:1");
        }
        if case.flag {
            command.args(["--data-dir", "of-flag"]);
        }
        let mut started = super::lifecycle::StartedServer::of(&mut command);
        let created: Vec<&str> = ["data", "of-file", "of-environment", "of-flag"]
            .into_iter()
            .filter(|name| root.path().join(name).exists())
            .collect();
        started.end();
        assert_eq!(
            created,
            [case.created],
            "contract 9: flags win over environment, environment over file, file over defaults"
        );
    }
}

#[test]
fn the_shipped_config_file_is_accepted() {
    let root = directory();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.toml");
    let mut command = command(root.path());
    command
        .arg("--config")
        .arg(&shipped)
        .args(["--listen", "127.0.0.1:0", "--data-dir", "data"]);
    super::lifecycle::StartedServer::of(&mut command).end();
}

#[test]
fn every_sync_mode_keeps_its_data_over_a_stop() {
    for sync in ["always", "interval", "never"] {
        let mut server = crate::scene::server_with("wal.sync", sync);
        let account = crate::support::given::Account::sign_up(&server.client);
        let bucket = account.bucket("tides");
        let source = bucket.source("gauge", &["level"]);
        bucket
            .single(&serde_json::json!({"dataSourceId": source, "values": {"level": 1}}))
            .expect(201, "a point");
        server.stop();
        server.launch();
        assert_eq!(
            bucket.rows(&serde_json::json!({})).len(),
            1,
            "contract 9: SIGTERM loses nothing (wal.sync = {sync})"
        );
    }
}
