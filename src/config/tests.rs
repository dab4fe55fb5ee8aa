use std::path::Path;

use super::*;

fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn from_file(text: &str) -> Result<Config, String> {
    let mut layers = Layers::new().unwrap();
    layers
        .add_file(Path::new("test.toml"), text)
        .map_err(|error| error.to_string())?;
    Ok(layers.config)
}

#[test]
fn the_shipped_file_is_valid_as_a_config_file() {
    let text = include_str!("../../config.toml");
    assert_eq!(from_file(text).unwrap(), Config::defaults().unwrap());
}

#[test]
fn the_defaults_shown_by_help_are_the_defaults() {
    let described = describe_all();
    for name in Layers::new().unwrap().names() {
        let (section, key) = name.split_once('.').unwrap();
        let end = format!("  # {}", environment_name(&name));
        let line = described
            .lines()
            .find_map(|line| line.strip_suffix(&end))
            .unwrap();
        assert!(line.starts_with(&format!("{key} = ")), "{line}");
        let config = from_file(&format!("[{section}]\n{line}")).unwrap();
        assert_eq!(config, Config::defaults().unwrap(), "{name}");
    }
}

#[test]
fn variables_set_by_the_packages_are_config_keys() {
    for text in [
        include_str!("../../packaging/tidewatch.service"),
        include_str!("../../packaging/Dockerfile"),
        include_str!("../../packaging/compose/compose.yaml"),
    ] {
        let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
        let names: Vec<_> = words.filter(|word| word.starts_with("TIDEWATCH_")).collect();
        assert!(!names.is_empty());
        for name in names {
            let is_key = Layers::new()
                .unwrap()
                .names()
                .any(|key| environment_name(&key) == name);
            assert!(is_key, "{name} is no key");
        }
    }
}

#[test]
fn flags_win_over_environment_over_file() {
    let directory = std::env::temp_dir().join(format!("tidewatch-config-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("layers.toml");
    std::fs::write(
        &file,
        "[server]\nlisten = \"127.0.0.1:1\"\nworkers = 3\n[storage]\ndata_dir = \"/from/file\"\n[wal]\nsync = \"never\"",
    )
    .unwrap();
    let flags = Flags {
        config: Some(file),
        listen: Some(String::from("127.0.0.1:3")),
        data_dir: None,
    };
    let variables = environment(&[
        ("TIDEWATCH_SERVER__LISTEN", "127.0.0.1:2"),
        ("TIDEWATCH_STORAGE__DATA_DIR", "/from/environment"),
        (
            "TIDEWATCH_SERVER__CORS_ORIGINS",
            "https://a.example, http://localhost:3000",
        ),
        ("TIDEWATCH_SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("TIDEWATCH_BIN", "somebody else's"),
    ]);
    let config = load(&flags, variables).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(config.storage.data_dir, Path::new("/from/environment"));
    assert_eq!(config.wal.sync, SyncMode::Never);
    assert_eq!(config.server.workers, 3);
    assert_eq!(
        config.server.cors_origins,
        ["https://a.example", "http://localhost:3000"]
    );
    let proxies = config.server.trusted_proxies.iter().map(ToString::to_string);
    assert_eq!(proxies.collect::<Vec<_>>(), ["10.0.0.0/8", "::1/128"]);
}

#[test]
fn wrong_keys_and_values_are_named_with_their_source() {
    for (text, named) in [
        ("[server]\nlistn = \"x\"", "unknown config key server.listn"),
        ("[sever]\nlisten = \"x\"", "unknown config key sever.listen"),
        ("listen = \"x\"", "unknown config key listen"),
        (
            "[server]\nlisten = 8080",
            "server.listen (from config file test.toml) must be a string",
        ),
        ("[server]\nlisten = \"localhost\"", "server.listen"),
        ("[log]\nfilter = 2026-01-01", "must be a string, not datetime"),
        (
            "[wal]\nsync = \"sometimes\"",
            "must be one of always, interval, never",
        ),
        (
            "[wal]\nsync_interval_ms = -5",
            "must be an integer from 1 to 60000, not -5",
        ),
        ("[accounts]\nsignup = \"yes\"", "accounts.signup"),
        (
            "[accounts]\ndefault_plan = \"free\"",
            "must be one of Free, Pro, Enterprise",
        ),
        ("[server]\ncors_origins = [\"*\"]", "server.cors_origins"),
        (
            "[server]\ntrusted_proxies = [\"10.0.0.0/33\"]",
            "server.trusted_proxies (from config file test.toml) must list addresses and networks like 10.0.0.7",
        ),
        ("[server", "not valid TOML"),
    ] {
        let error = from_file(text).unwrap_err();
        assert!(
            error.contains(named) && error.contains("test.toml"),
            "{text:?}: {error}"
        );
    }
    let secret = from_file("[operator]\ntoken = hunter2").unwrap_err();
    assert!(
        secret.contains("line 2") && !secret.contains("hunter2"),
        "an error does not quote the line, which may hold a secret: {secret}"
    );
    for (name, value) in [
        ("TIDEWATCH_SERVER__LISTN", "x"),
        ("TIDEWATCH_ACCOUNTS__SIGNUP", "maybe"),
        ("TIDEWATCH_QUERY__THREADS", "many"),
    ] {
        let variables = environment(&[(name, value)]);
        let error = Layers::new().unwrap().add_environment(variables).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_log_that_fills_before_it_is_trimmed_is_refused() {
    let variables = environment(&[("TIDEWATCH_STORAGE__CHECKPOINT_BYTES", "536870912")]);
    let error = load(&Flags::default(), variables).unwrap_err().to_string();
    assert!(
        error.contains("wal.tail_bytes_max") && error.contains("storage.checkpoint_bytes"),
        "{error}"
    );
}

#[test]
fn a_node_whose_configuration_lacks_something_is_refused() {
    let node = [
        ("TIDEWATCH_CLUSTER__LOG", "postgres://db/tidewatch"),
        ("TIDEWATCH_CLUSTER__OBJECTS", "file:///objects"),
        ("TIDEWATCH_CLUSTER__SECRET", "sixteen letters!"),
        ("TIDEWATCH_CLUSTER__TLS_CERTIFICATE", "node.pem"),
        ("TIDEWATCH_CLUSTER__TLS_KEY", "node.key"),
        ("TIDEWATCH_CLUSTER__TLS_CA", "ca.pem"),
    ];
    let refusal = |variables: &[(&str, &str)]| {
        let loaded = load(&Flags::default(), environment(variables));
        loaded.err().map(|error| error.to_string())
    };
    assert_eq!(refusal(&node), None);
    assert_eq!(refusal(&node[..3]), None, "TLS is optional");
    for without in 1..node.len() {
        let mut rest = node.to_vec();
        let (name, _) = rest.remove(without);
        let key = name
            .trim_start_matches("TIDEWATCH_")
            .replace("__", ".")
            .to_lowercase();
        let refused = refusal(&rest).unwrap_or_default();
        assert!(refused.contains(&key), "{key}: {refused}");
    }
}

#[test]
fn the_operator_token_is_never_shown() {
    let variables = environment(&[("TIDEWATCH_OPERATOR__TOKEN", "hunter2hunter2")]);
    let config = load(&Flags::default(), variables).unwrap();
    assert_eq!(config.operator.token.as_deref(), Some("hunter2hunter2"));
    assert!(!format!("{config:?}").contains("hunter2"));
    let error = from_file("[operator]\ntoken = [\"hunter2hunter2\"]").unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
}
