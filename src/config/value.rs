//! A value from one of the sources: typed in the file, text in the environment and on the command line.

use std::time::Duration;

/// A value that is not validated yet. The methods return what was expected if the value has another type.
pub(super) enum Given {
    Toml(toml::Value),
    Text(String),
}

impl Given {
    pub fn text(&self) -> Result<&str, String> {
        match self {
            Self::Toml(toml::Value::String(text)) | Self::Text(text) => Ok(text.trim()),
            Self::Toml(other) => Err(format!("must be a string, not {}", other.type_str())),
        }
    }

    pub fn boolean(&self) -> Result<bool, String> {
        match self {
            Self::Toml(toml::Value::Boolean(value)) => Ok(*value),
            Self::Text(text) if text.trim() == "true" => Ok(true),
            Self::Text(text) if text.trim() == "false" => Ok(false),
            Self::Toml(_) | Self::Text(_) => Err(format!("must be true or false, not {}", self.shown())),
        }
    }

    pub fn integer(&self, min: u64, max: u64) -> Result<u64, String> {
        let value = match self {
            Self::Toml(toml::Value::Integer(value)) => u64::try_from(*value).ok(),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Toml(_) => None,
        };
        value
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| format!("must be an integer from {min} to {max}, not {}", self.shown()))
    }

    pub fn seconds(&self, min: u64, max: u64) -> Result<Duration, String> {
        self.integer(min, max).map(Duration::from_secs)
    }

    /// A list. In the environment its entries are separated by commas.
    pub fn list(&self) -> Result<Vec<String>, String> {
        let wrong = || format!("must be an array of strings, not {}", self.shown());
        match self {
            Self::Toml(toml::Value::Array(entries)) => entries
                .iter()
                .map(|entry| {
                    entry
                        .as_str()
                        .map(|text| text.trim().to_owned())
                        .ok_or_else(wrong)
                })
                .collect(),
            Self::Toml(_) => Err(wrong()),
            Self::Text(text) => Ok(text
                .split(',')
                .map(str::trim)
                .filter(|entry| !entry.is_empty())
                .map(str::to_owned)
                .collect()),
        }
    }

    pub fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let text = self.text()?;
        choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| *choice)
            .ok_or_else(|| {
                let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
                format!("must be one of {}, not {}", names.join(", "), self.shown())
            })
    }

    pub fn shown(&self) -> String {
        match self {
            Self::Toml(value) => value.to_string(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}
