//! Reads the layers of configuration in order; each overrides the one before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Config;
use super::keys::{KEYS, Key, environment_name};
use super::value::Given;

/// Prefix of the environment variables of all keys.
const ENVIRONMENT_PREFIX: &str = "TIDEWATCH_";
/// Separates section and key. A variable without it, such as `TIDEWATCH_BIN`, is not a key and is ignored.
const ENVIRONMENT_SEPARATOR: &str = "__";

/// Options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--listen`
    pub listen: Option<String>,
    /// `--data-dir`
    pub data_dir: Option<String>,
}

/// An invalid configuration. The message names the key and its source.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// Loads the configuration from the flags, the environment and the file named by the flags.
///
/// # Errors
/// The file cannot be read, or a key or value is invalid.
pub fn load(
    flags: &Flags,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    if let Some(path) = &flags.config {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError(format!("cannot read config file {}: {cause}", path.display())))?;
        apply_file(&mut config, path, &text)?;
    }
    apply_environment(&mut config, environment)?;
    apply_flag(&mut config, "--listen", "server.listen", flags.listen.as_ref())?;
    apply_flag(
        &mut config,
        "--data-dir",
        "storage.data_dir",
        flags.data_dir.as_ref(),
    )?;
    config.check().map_err(ConfigError)?;
    Ok(config)
}

pub(super) fn apply_file(config: &mut Config, path: &Path, text: &str) -> Result<(), ConfigError> {
    let origin = format!("config file {}", path.display());
    let sections: BTreeMap<String, toml::Value> =
        toml::from_str(text).map_err(|cause| ConfigError(format!("{origin} is not valid TOML: {cause}")))?;
    for (section, content) in sections {
        let toml::Value::Table(entries) = content else {
            return Err(unknown(&section, &origin));
        };
        for (name, value) in entries {
            let name = format!("{section}.{name}");
            let key = find(&name).ok_or_else(|| unknown(&name, &origin))?;
            set(config, key, &Given::Toml(value), &origin)?;
        }
    }
    Ok(())
}

pub(super) fn apply_environment(
    config: &mut Config,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<(), ConfigError> {
    for (variable, value) in environment {
        if variable.starts_with(ENVIRONMENT_PREFIX) && variable.contains(ENVIRONMENT_SEPARATOR) {
            let origin = format!("environment variable {variable}");
            let key = KEYS
                .iter()
                .find(|key| environment_name(key.name) == variable)
                .ok_or_else(|| ConfigError(format!("{origin} names no config key; --help lists all")))?;
            set(config, key, &Given::Text(value), &origin)?;
        }
    }
    Ok(())
}

fn apply_flag(
    config: &mut Config,
    flag: &str,
    name: &str,
    value: Option<&String>,
) -> Result<(), ConfigError> {
    if let (Some(value), Some(key)) = (value, find(name)) {
        set(config, key, &Given::Text(value.clone()), &format!("flag {flag}"))?;
    }
    Ok(())
}

fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

fn set(config: &mut Config, key: &Key, value: &Given, origin: &str) -> Result<(), ConfigError> {
    (key.set)(config, value).map_err(|fault| {
        let fault = if key.secret {
            fault.replace(&value.shown(), "<secret>")
        } else {
            fault
        };
        ConfigError(format!("{} (from {origin}) {fault}", key.name))
    })
}

fn unknown(name: &str, origin: &str) -> ConfigError {
    let nearest: Vec<_> = KEYS
        .iter()
        .map(|key| key.name)
        .filter(|known| {
            known
                .split_once('.')
                .is_some_and(|(section, _)| name.split('.').next() == Some(section))
        })
        .collect();
    let hint = match nearest.as_slice() {
        [] => String::from("--help lists all"),
        known => format!("known keys there: {}", known.join(", ")),
    };
    ConfigError(format!("unknown config key {name} (from {origin}); {hint}"))
}
