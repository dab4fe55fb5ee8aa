//! The subcommands of `tidewatch cluster`.

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, value_parser};
use log_store::Replication;
use tidewatch::config::Flags;
use tidewatch::startup;

use crate::{Outcome, load};

#[derive(Subcommand)]
pub enum ClusterCommand {
    /// Makes the tables of a cluster in a log store, or finds them made
    Init(InitArguments),
    /// Prints nodes, shards, their owners and their sizes
    Status(StoreArguments),
    /// Makes the data directory of a stopped server a shard of the configured cluster; keys and tokens go on working
    Import(ImportArguments),
    /// Makes a shard of the configured cluster the data directory of a server; all nodes are stopped before
    Export(ExportArguments),
}

#[derive(Args)]
pub struct ImportArguments {
    #[command(flatten)]
    flags: Flags,
    /// Number of the shard, which must have no account; default: the first such one
    #[arg(long, value_name = "N")]
    shard: Option<u16>,
}

#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    flags: Flags,
    /// Number of the shard
    #[arg(long, value_name = "N")]
    shard: u16,
}

#[derive(Args)]
pub struct StoreArguments {
    #[command(flatten)]
    flags: Flags,
    /// PostgreSQL URL of the log store (cluster.log)
    #[arg(long, value_name = "URL")]
    log: Option<String>,
}

#[derive(Args)]
pub struct InitArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Number of shards; fixed from then on, and the most nodes that can share the work
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = value_parser!(u16).range(1..=4096))]
    shards: u16,
    /// Commits reach a second disk below the database, as in managed and distributed ones; without this, the database
    /// must have synchronous_standby_names
    #[arg(long)]
    replicated_storage: bool,
}

impl ClusterCommand {
    /// Runs it, and prints what it has done.
    pub fn run(self) -> Outcome {
        match self {
            ClusterCommand::Init(arguments) => init(&arguments),
            ClusterCommand::Status(arguments) => status(&arguments),
            ClusterCommand::Import(arguments) => import(&arguments),
            ClusterCommand::Export(arguments) => export(&arguments),
        }
    }
}

fn init(arguments: &InitArguments) -> Outcome {
    let replication = match arguments.replicated_storage {
        true => Replication::Storage,
        false => Replication::Standbys,
    };
    startup::cluster::init(&log_url(&arguments.store)?, arguments.shards, replication)?;
    println!(
        "the log store has the tables of a cluster of {} shards",
        arguments.shards
    );
    Ok(ExitCode::SUCCESS)
}

fn status(arguments: &StoreArguments) -> Outcome {
    print!("{}", startup::cluster::status(&log_url(arguments)?)?);
    Ok(ExitCode::SUCCESS)
}

fn import(arguments: &ImportArguments) -> Outcome {
    let config = Arc::new(load(&arguments.flags)?);
    config.cluster.check_set()?;
    let importing = startup::cluster::import(Arc::clone(&config), arguments.shard);
    let imported = actix_web::rt::System::new()
        .block_on(importing)
        .map_err(|error| error.to_string())?;
    println!(
        "{} is shard {} of the cluster: {} accounts, {} keys, {} files, up to record {}",
        config.storage.data_dir.display(),
        imported.shard,
        imported.accounts,
        imported.keys,
        imported.files,
        imported.covered
    );
    Ok(ExitCode::SUCCESS)
}

fn export(arguments: &ExportArguments) -> Outcome {
    let config = load(&arguments.flags)?;
    config.cluster.check_set()?;
    let data_dir = &config.storage.data_dir;
    let exported = startup::cluster::export(&config.cluster, arguments.shard, data_dir);
    let exported = exported.map_err(|error| error.to_string())?;
    println!(
        "shard {} is in {}: up to record {}, {} of them from the log store",
        arguments.shard,
        data_dir.display(),
        exported.last,
        exported.records
    );
    Ok(ExitCode::SUCCESS)
}

/// The URL of the log store, from the command line or the configuration.
fn log_url(arguments: &StoreArguments) -> Result<String, Box<dyn Error>> {
    let configured = match &arguments.log {
        Some(url) => Some(url.clone()),
        None => load(&arguments.flags)?.cluster.log,
    };
    Ok(configured.ok_or("no log store is given: use --log, or set cluster.log")?)
}
