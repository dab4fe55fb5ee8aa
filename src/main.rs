//! The command line of tidewatch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, value_parser};
use tidewatch::backup::{self, OnDamage};
use tidewatch::check::{self, Wish};
use tidewatch::clock::SystemClock;
use tidewatch::config::{self, Config, Flags};
use tidewatch::demo;
use tidewatch::evaluator::{self, Options, Pace, Stop};
use tidewatch::startup::{self, StopSignals};

/// Requests allocate on one thread and free on another, and merges allocate by the megabyte. With both, glibc's
/// allocator causes page faults, which stop all threads of the process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The environment variable with the key of `evaluate`, if the command line has none.
const KEY_VARIABLE: &str = "TIDEWATCH_KEY";

/// A time-series monitoring service.
#[derive(Parser)]
#[command(name = "tidewatch", version, after_help = config::describe_all(), args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArguments,
}

#[derive(Subcommand)]
enum Command {
    /// Serves until SIGTERM; also without a subcommand
    Serve(ServeArguments),
    /// Evaluates due rules for the service at an address, until SIGTERM
    Evaluate(EvaluateArguments),
    /// Reads a data directory and reports what it finds; changes nothing without --repair or --adopt
    Check(CheckArguments),
    /// Copies a data directory, whose server may be running; everything acknowledged before is in the copy
    Backup(BackupArguments),
    /// Restores a backup into an empty data directory, and verifies every checksum
    Restore(RestoreArguments),
    /// Runs the service with a simulated plant, live points, rules and webhooks, until SIGTERM
    #[command(after_long_help = format!("The recorded series in the demo are under this licence:\n\n{}", demo::LICENCE))]
    Demo(DemoArguments),
}

#[derive(Args)]
struct ServeArguments {
    #[command(flatten)]
    shared: SharedArguments,
    /// Address and port to listen on (server.listen)
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
}

#[derive(Args)]
struct CheckArguments {
    #[command(flatten)]
    shared: SharedArguments,
    /// Removes or sets aside what is damaged, and reports what is lost
    #[arg(long)]
    repair: bool,
    /// Creates a catalog for the existing points, for a user with this email address, if the catalog is lost and there
    /// is no backup
    #[arg(long, value_name = "EMAIL", conflicts_with = "repair")]
    adopt: Option<String>,
}

#[derive(Args)]
struct BackupArguments {
    #[command(flatten)]
    shared: SharedArguments,
    /// The target: an archive if it ends in .tar or .tar.zst, a directory otherwise; never overwritten
    #[arg(long, value_name = "TARGET")]
    to: PathBuf,
    /// Copies damaged files as they are, and records the damage in the backup; without this, no backup is made of them
    #[arg(long)]
    allow_damage: bool,
}

#[derive(Args)]
struct RestoreArguments {
    #[command(flatten)]
    shared: SharedArguments,
    /// The backup: a directory or an archive
    #[arg(long, value_name = "BACKUP")]
    from: PathBuf,
    /// Only reads the backup and verifies its checksums
    #[arg(long, conflicts_with_all = ["config", "data_dir"])]
    verify: bool,
}

#[derive(Args)]
struct EvaluateArguments {
    /// Address of the service
    #[arg(long, value_name = "URL")]
    url: String,
    /// Integration key; preferably set as TIDEWATCH_KEY in the environment, where the process list does not show it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Maximum number of rules requested in one poll
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Seconds that a listed rule is reserved for this evaluator
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = value_parser!(u64).range(5..=3600))]
    claim: u64,
    /// Seconds between polls while no more rules are due
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = value_parser!(u64).range(1..=3600))]
    poll: u64,
    /// Rules evaluated concurrently
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u64).range(1..=256))]
    concurrency: u64,
    /// Ends when no more rules are due
    #[arg(long)]
    once: bool,
}

#[derive(Args)]
struct DemoArguments {
    /// Address and port to listen on; default: 127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Directory that is empty or absent, and is kept; default: a temporary one, removed when the demo ends
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Args)]
struct SharedArguments {
    /// TOML file with config keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory that holds everything (storage.data_dir)
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
}

fn main() -> ExitCode {
    let CommandLine { command, serve } = CommandLine::parse();
    let outcome = match command.unwrap_or(Command::Serve(serve)) {
        Command::Serve(arguments) => run_server(arguments),
        Command::Evaluate(arguments) => run_evaluator(&arguments),
        Command::Check(arguments) => run_check(arguments),
        Command::Backup(arguments) => run_backup(arguments),
        Command::Restore(arguments) => run_restore(arguments),
        Command::Demo(arguments) => run_demo(arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(message) => {
            eprintln!("tidewatch: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_server(arguments: ServeArguments) -> Result<ExitCode, String> {
    let config = load(arguments.shared, arguments.listen)?;
    startup::start_logging(&config.log);
    let serving = startup::serve(config, Arc::new(SystemClock));
    actix_web::rt::System::new()
        .block_on(serving)
        .map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn run_evaluator(arguments: &EvaluateArguments) -> Result<ExitCode, String> {
    let nothing = SharedArguments {
        config: None,
        data_dir: None,
    };
    startup::start_logging(&load(nothing, None)?.log);
    let key = arguments.key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok());
    let key =
        key.ok_or_else(|| format!("an integration key is needed: set {KEY_VARIABLE}, or give --key"))?;
    let options = Options {
        limit: arguments.limit as usize,
        claim: Duration::from_secs(arguments.claim),
        poll: Duration::from_secs(arguments.poll),
        concurrency: arguments.concurrency as usize,
        once: arguments.once,
        pace: Pace::default(),
    };
    let evaluating = async {
        let signals = StopSignals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
        let (stopper, stop) = Stop::new();
        actix_web::rt::spawn(async move {
            let signal = signals.received().await;
            tracing::info!(signal, "stopping: finishing the rules in progress");
            stopper.tell();
        });
        evaluator::run(&arguments.url, &key, options, stop)
            .await
            .map_err(|error| error.to_string())
    };
    actix_web::rt::System::new().block_on(evaluating)?;
    Ok(ExitCode::SUCCESS)
}

fn run_check(arguments: CheckArguments) -> Result<ExitCode, String> {
    let config = load(arguments.shared, None)?;
    let wish = match (arguments.adopt, arguments.repair) {
        (Some(email), _) => Wish::Adopt(email),
        (None, true) => Wish::Repair,
        (None, false) => Wish::Report,
    };
    check::run(&config, wish, &SystemClock)
}

fn run_backup(arguments: BackupArguments) -> Result<ExitCode, String> {
    let data_dir = load(arguments.shared, None)?.storage.data_dir;
    let on_damage = match arguments.allow_damage {
        true => OnDamage::Copy,
        false => OnDamage::Refuse,
    };
    let made = backup::back_up(&data_dir, &arguments.to, on_damage, &SystemClock);
    let made = made.map_err(|error| error.to_string())?;
    println!(
        "backed up {} to {}: {} files, {} bytes ({} written), up to record {}, in {:.2?} ({:.2?} until its contents were fixed)",
        data_dir.display(),
        arguments.to.display(),
        made.files,
        made.bytes,
        made.written_bytes,
        made.last_record,
        made.took,
        made.fixed_after
    );
    print_damages(&made.damages);
    Ok(ExitCode::SUCCESS)
}

fn run_restore(arguments: RestoreArguments) -> Result<ExitCode, String> {
    let done = if arguments.verify {
        backup::verify(&arguments.from).map(|read| (read, "whole".to_owned()))
    } else {
        let data_dir = load(arguments.shared, None)?.storage.data_dir;
        let restored = backup::restore(&arguments.from, &data_dir);
        restored.map(|read| (read, format!("restored to {}", data_dir.display())))
    };
    let (read, outcome) = done.map_err(|error| error.to_string())?;
    println!(
        "{}, taken at {}: {} files, {} bytes, up to record {}, in {:.2?}: {outcome}",
        arguments.from.display(),
        read.created_at,
        read.files,
        read.bytes,
        read.last_record,
        read.took
    );
    print_damages(&read.damages);
    Ok(ExitCode::SUCCESS)
}

/// Reports damage of the files before they were backed up.
fn print_damages(damages: &[String]) {
    if !damages.is_empty() {
        println!(
            "the backed-up files were already damaged in {} places:",
            damages.len()
        );
        damages.iter().for_each(|damage| println!("  {damage}"));
    }
}

fn run_demo(arguments: DemoArguments) -> Result<ExitCode, String> {
    let options = demo::Options {
        listen: arguments.listen,
        data_dir: arguments.data_dir,
    };
    actix_web::rt::System::new()
        .block_on(demo::run(options, &mut std::io::stdout()))
        .map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn load(shared: SharedArguments, listen: Option<String>) -> Result<Config, String> {
    let flags = Flags {
        config: shared.config,
        listen,
        data_dir: shared.data_dir,
    };
    // Names and values that are not Unicode cannot be config keys.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    config::load(&flags, environment).map_err(|error| error.to_string())
}
