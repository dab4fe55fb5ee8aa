//! Applies the layers of configuration in order; each overrides the one before.

use std::path::{Path, PathBuf};

use clap::Args;
use toml::{Table, Value};

use super::Config;

/// The shipped file: every key with its default and its description.
const DEFAULTS: &str = include_str!("../../config.toml");

/// Prefix of the environment variables of all keys.
const ENVIRONMENT_PREFIX: &str = "TIDEWATCH_";
/// Separates section and key. A variable without it, such as `TIDEWATCH_BIN`, is not a key and is ignored.
const ENVIRONMENT_SEPARATOR: &str = "__";

/// Options of the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// TOML file with config keys
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory that holds everything (storage.data_dir)
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address and port to listen on. Only commands that serve have this flag.
    #[arg(skip)]
    pub listen: Option<String>,
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
    let mut layers = Layers::new()?;
    if let Some(path) = &flags.config {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| ConfigError(format!("cannot read config file {}: {cause}", path.display())))?;
        layers.add_file(path, &text)?;
    }
    layers.add_environment(environment)?;
    if let Some(listen) = &flags.listen {
        layers.set_text("server.listen", listen, "flag --listen")?;
    }
    if let Some(data_dir) = &flags.data_dir {
        layers.set_text("storage.data_dir", data_dir, "flag --data-dir")?;
    }
    layers.config.check().map_err(ConfigError)?;
    Ok(layers.config)
}

/// The result of the layers applied so far.
pub(super) struct Layers {
    /// The value of every key.
    table: Table,
    /// The same values, validated.
    pub config: Config,
}

impl Layers {
    /// Starts with the defaults.
    pub fn new() -> Result<Self, ConfigError> {
        let invalid = |cause| ConfigError(format!("the shipped config.toml is invalid: {cause}"));
        let table: Table = toml::from_str(DEFAULTS).map_err(invalid)?;
        let config = table.clone().try_into().map_err(invalid)?;
        Ok(Self { table, config })
    }

    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let origin = format!("config file {}", path.display());
        let sections: Table = toml::from_str(text).map_err(|cause| {
            // Not the error's own text, which quotes the line: it may hold a secret.
            let before = text
                .get(..cause.span().map_or(0, |span| span.start))
                .unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            ConfigError(format!(
                "{origin} is not valid TOML: line {line}: {}",
                cause.message()
            ))
        })?;
        for (section, content) in sections {
            let Value::Table(entries) = content else {
                return Err(self.unknown(&section, &origin));
            };
            for (key, value) in entries {
                self.set(&format!("{section}.{key}"), value, &origin)?;
            }
        }
        Ok(())
    }

    pub fn add_environment(
        &mut self,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (variable, text) in environment {
            if variable.starts_with(ENVIRONMENT_PREFIX) && variable.contains(ENVIRONMENT_SEPARATOR) {
                let origin = format!("environment variable {variable}");
                let name = self.names().find(|name| environment_name(name) == variable);
                let name = name
                    .ok_or_else(|| ConfigError(format!("{origin} names no config key; --help lists all")))?;
                self.set_text(&name, &text, &origin)?;
            }
        }
        Ok(())
    }

    /// The names of all keys, such as `server.listen`.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.table.iter().flat_map(|(section, content)| {
            let keys = content.as_table().into_iter().flat_map(Table::keys);
            keys.map(move |key| format!("{section}.{key}"))
        })
    }

    fn value(&mut self, name: &str) -> Option<&mut Value> {
        let (section, key) = name.split_once('.')?;
        self.table.get_mut(section)?.get_mut(key)
    }

    /// Sets a key from text, which is converted to the type of the key's value.
    fn set_text(&mut self, name: &str, text: &str, origin: &str) -> Result<(), ConfigError> {
        let text = text.trim();
        let typed = match self.value(name) {
            Some(Value::Integer(_)) => text.parse().ok().map(Value::Integer),
            Some(Value::Boolean(_)) => text.parse().ok().map(Value::Boolean),
            Some(Value::Array(_)) => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                Some(Value::Array(entries.map(Value::from).collect()))
            }
            _ => None,
        };
        self.set(name, typed.unwrap_or_else(|| text.into()), origin)
    }

    /// Sets a key and validates the result. All other values are valid already, so an error is about this key.
    fn set(&mut self, name: &str, value: Value, origin: &str) -> Result<(), ConfigError> {
        let Some(current) = self.value(name) else {
            return Err(self.unknown(name, origin));
        };
        let invalid = |fault: &str| ConfigError(format!("{name} (from {origin}) {fault}"));
        if current.is_str() && !value.is_str() {
            // Only the type is named, because the value may be a secret.
            return Err(invalid(&format!("must be a string, not {}", value.type_str())));
        }
        *current = value;
        let config: Result<Config, toml::de::Error> = self.table.clone().try_into();
        self.config = config.map_err(|error| invalid(error.message()))?;
        Ok(())
    }

    fn unknown(&self, name: &str, origin: &str) -> ConfigError {
        let section = name.split_once('.').map_or(name, |(section, _)| section);
        let start = format!("{section}.");
        let known: Vec<_> = self.names().filter(|known| known.starts_with(&start)).collect();
        let hint = match known.as_slice() {
            [] => String::from("--help lists all"),
            known => format!("known keys there: {}", known.join(", ")),
        };
        ConfigError(format!("unknown config key {name} (from {origin}); {hint}"))
    }
}

/// The environment variable of a key: `server.listen` is `TIDEWATCH_SERVER__LISTEN`.
pub fn environment_name(key: &str) -> String {
    let name = key.replace('.', ENVIRONMENT_SEPARATOR).to_ascii_uppercase();
    format!("{ENVIRONMENT_PREFIX}{name}")
}

/// Describes all keys, for `--help`: the shipped file with the environment variable of each key.
pub fn describe_all() -> String {
    let mut text = String::from("The config file, with all keys and their defaults:\n\n");
    let mut section = "";
    for line in DEFAULTS.lines() {
        text.push_str(line);
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, _)) = line.split_once(" = ")
            && !key.starts_with('#')
        {
            let variable = environment_name(&format!("{section}.{key}"));
            text.push_str(&format!("  # {variable}"));
        }
        text.push('\n');
    }
    text
}
