//! The subcommands of `tidewatch bridge`.

use std::path::PathBuf;
use std::process::ExitCode;

use bridge::Config;
use clap::{Args, Subcommand};
use tidewatch::config::Flags;
use tidewatch::startup;

use crate::{KEY_VARIABLE, Outcome, load, stop_on_signal};

#[derive(Subcommand)]
pub enum BridgeCommand {
    /// Writes the messages of an MQTT broker as points, until SIGTERM
    Mqtt(MqttArguments),
}

#[derive(Args)]
pub struct MqttArguments {
    /// The bridge's own configuration file, in TOML: [api], [broker], [[topics]]
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl BridgeCommand {
    /// Runs it until it is stopped.
    pub fn run(self) -> Outcome {
        match self {
            BridgeCommand::Mqtt(arguments) => run_mqtt(&arguments),
        }
    }
}

fn run_mqtt(arguments: &MqttArguments) -> Outcome {
    startup::start_logging(&load(&Flags::default())?.log);
    let config = Config::read(&arguments.config, std::env::var(KEY_VARIABLE).ok())?;
    let bridging = async {
        let stop = stop_on_signal("storing what has arrived")?;
        bridge::run(config, stop).await.map_err(|error| error.to_string())
    };
    actix_web::rt::System::new().block_on(bridging)?;
    Ok(ExitCode::SUCCESS)
}
