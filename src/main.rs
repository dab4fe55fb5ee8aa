//! The command line of tidewatch.

mod allocator;
mod bridge_command;
mod cluster_command;
mod import_command;
mod mcp_command;
mod progress_bar;

use std::error::Error;
use std::io::{ErrorKind, Write, stdout};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocator::Allocator;
use bridge_command::BridgeCommand;
use clap::{Args, Parser, Subcommand, value_parser};
use cluster_command::ClusterCommand;
use demo::Demo;
use evaluator::{Backoff, Backtest};
use import_command::ImportArguments;
use mcp_command::McpArguments;
use objects::{Location, ObjectStore};
use progress_bar::Bar;
use tidewatch::backup::{self, OnDamage};
use tidewatch::check::{self, Mode};
use tidewatch::clock::SystemClock;
use tidewatch::config::{self, Config, ConfigError, Flags};
use tidewatch::remote::{self, Checkpoint, Choice, RemoteError, THE_SHARD};
use tidewatch::startup::{self, StartupError, StopSignals};
use tidewatch::timestamp::format_timestamp_ns;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The environment variable with the key of `evaluate`, `bridge`, `import` and `mcp`, if nothing else has it.
const KEY_VARIABLE: &str = "TIDEWATCH_KEY";

/// Settings of the demo's server. No file and no environment variable is read.
const DEMO_SETTINGS: [(&str, &str); 3] = [
    ("accounts.default_plan", "Enterprise"),
    // The receiver runs on this machine.
    ("webhooks.allow_private_networks", "true"),
    ("log.filter", "warn,demo=info,actix_http=off"),
];

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
    /// Restores a backup, or a checkpoint in an object store, into an empty data directory; verifies every checksum
    Restore(RestoreArguments),
    /// Makes and shows a cluster: several nodes on one log store
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Brings points of other protocols into the service at an address
    #[command(subcommand)]
    Bridge(BridgeCommand),
    /// Sends files of rows to the service at an address; goes on where it was interrupted
    Import(ImportArguments),
    /// Gives language models tools to read the service at an address and to evaluate its rules (Model Context Protocol)
    Mcp(McpArguments),
    /// Runs the service with a simulated plant, live points, rules and webhooks, until SIGTERM
    Demo(DemoArguments),
}

#[derive(Args)]
struct ServeArguments {
    #[command(flatten)]
    flags: Flags,
    /// Address and port to listen on (server.listen)
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
}

#[derive(Args)]
struct CheckArguments {
    #[command(flatten)]
    flags: Flags,
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
    flags: Flags,
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
    flags: Flags,
    /// The backup, a directory or an archive; or the URL of an object store, as in storage.remote
    #[arg(long, value_name = "BACKUP|URL")]
    from: String,
    /// Only reads and verifies the checksums
    #[arg(long, conflicts_with_all = ["config", "data_dir"])]
    verify: bool,
    /// Only prints the checkpoints in the object store, newest first
    #[arg(long, conflicts_with_all = ["config", "data_dir", "verify", "at", "checkpoint"])]
    list: bool,
    /// The newest checkpoint of the object store that was taken by this time, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "checkpoint")]
    at: Option<jiff::Timestamp>,
    /// The checkpoint of the object store with this name
    #[arg(long, value_name = "NAME")]
    checkpoint: Option<String>,
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
    /// Tests this rule on the time between --from and --to, and prints what would have happened; changes nothing
    #[arg(long, value_name = "RULE", requires_all = ["from", "to"], conflicts_with = "once")]
    backtest: Option<String>,
    /// The first instant of the backtest, ISO 8601
    #[arg(long, value_name = "TIME", requires = "backtest")]
    from: Option<String>,
    /// End of the backtest, ISO 8601
    #[arg(long, value_name = "TIME", requires = "backtest")]
    to: Option<String>,
}

impl EvaluateArguments {
    fn backtest(&self) -> Option<Backtest> {
        Some(Backtest {
            rule: self.backtest.clone()?,
            from: self.from.clone()?,
            to: self.to.clone()?,
        })
    }
}

#[derive(Args)]
struct DemoArguments {
    /// Address and port to listen on; default: 127.0.0.1:8080
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// Directory that is empty or absent, and is kept; default: a temporary one, removed when the demo ends
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Directory with the recorded series; default: where the repository or the package has them
    #[arg(long, value_name = "DIR")]
    series: Option<PathBuf>,
}

type Outcome = Result<ExitCode, Box<dyn Error>>;

fn main() -> ExitCode {
    let CommandLine { command, serve } = CommandLine::parse();
    let outcome = match command.unwrap_or(Command::Serve(serve)) {
        Command::Serve(arguments) => run_server(arguments),
        Command::Evaluate(arguments) => run_evaluator(&arguments),
        Command::Check(arguments) => run_check(arguments),
        Command::Backup(arguments) => run_backup(arguments),
        Command::Restore(arguments) => run_restore(arguments),
        Command::Cluster(command) => command.run(),
        Command::Bridge(command) => command.run(),
        Command::Import(arguments) => arguments.run(),
        Command::Mcp(arguments) => arguments.run(),
        Command::Demo(arguments) => run_demo(arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("tidewatch: {error}");
        ExitCode::FAILURE
    })
}

fn run_server(arguments: ServeArguments) -> Outcome {
    let flags = Flags {
        listen: arguments.listen,
        ..arguments.flags
    };
    let config = load(&flags)?;
    startup::start_logging(&config.log);
    actix_web::rt::System::new().block_on(startup::serve(config, Arc::new(SystemClock)))?;
    Ok(ExitCode::SUCCESS)
}

fn run_evaluator(arguments: &EvaluateArguments) -> Outcome {
    startup::start_logging(&load(&Flags::default())?.log);
    let key = arguments.key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok());
    let key =
        key.ok_or_else(|| format!("an integration key is needed: set {KEY_VARIABLE}, or give --key"))?;
    let options = evaluator::Options {
        limit: arguments.limit as usize,
        claim: Duration::from_secs(arguments.claim),
        poll: Duration::from_secs(arguments.poll),
        concurrency: arguments.concurrency as usize,
        once: arguments.once,
        backoff: Backoff::default(),
    };
    let evaluating = async {
        let stop = stop_on_signal("finishing the rules in progress")?;
        let url = &arguments.url;
        let printed = match arguments.backtest() {
            Some(test) => evaluator::backtest(url, &key, test, options, stop).await,
            None => evaluator::run(url, &key, options, stop)
                .await
                .map(|()| String::new()),
        };
        printed.map_err(|error| error.to_string())
    };
    let printed = actix_web::rt::System::new().block_on(evaluating)?;
    stdout().write_all(printed.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn run_check(arguments: CheckArguments) -> Outcome {
    let config = load(&arguments.flags)?;
    let mode = match (arguments.adopt, arguments.repair) {
        (Some(email), _) => Mode::Adopt(email),
        (None, true) => Mode::Repair,
        (None, false) => Mode::Report,
    };
    let bar = Bar::new("check");
    Ok(check::run(&config, mode, &SystemClock, &bar, &mut bar.output())?)
}

fn run_backup(arguments: BackupArguments) -> Outcome {
    let data_dir = load(&arguments.flags)?.storage.data_dir;
    let on_damage = match arguments.allow_damage {
        true => OnDamage::Copy,
        false => OnDamage::Refuse,
    };
    let bar = Bar::new("backup");
    let made = backup::back_up(&data_dir, &arguments.to, on_damage, &SystemClock, &bar)?;
    drop(bar);
    println!(
        "backed up {} to {}: {} files, {} bytes ({} written), up to record {}, in {:.2?} ({:.2?} until its contents were fixed)",
        data_dir.display(),
        arguments.to.display(),
        made.manifest.files.len(),
        made.manifest.bytes(),
        made.written_bytes,
        made.manifest.last_record,
        made.took,
        made.fixed_after
    );
    print_damages(&made.manifest.damages);
    Ok(ExitCode::SUCCESS)
}

fn run_restore(arguments: RestoreArguments) -> Outcome {
    if Location::is_url(&arguments.from) {
        return run_remote_restore(&arguments);
    }
    if arguments.list || arguments.at.is_some() || arguments.checkpoint.is_some() {
        let message = "--list, --at and --checkpoint are for an object store: give its URL with --from";
        return Err(message.into());
    }
    let (started, from) = (Instant::now(), Path::new(&arguments.from));
    let bar = Bar::new("restore");
    let (read, outcome) = if arguments.verify {
        (backup::verify(from, &bar)?, "whole".to_owned())
    } else {
        let data_dir = load(&arguments.flags)?.storage.data_dir;
        let restored = backup::restore(from, &data_dir, &bar)?;
        (restored, format!("restored to {}", data_dir.display()))
    };
    drop(bar);
    println!(
        "{}, taken at {}: {} files, {} bytes, up to record {}, in {:.2?}: {outcome}",
        from.display(),
        read.created_at,
        read.files.len(),
        read.bytes(),
        read.last_record,
        started.elapsed()
    );
    print_damages(&read.damages);
    Ok(ExitCode::SUCCESS)
}

fn run_remote_restore(arguments: &RestoreArguments) -> Outcome {
    let (started, url) = (Instant::now(), &arguments.from);
    let store = objects::open(url, environment())?;
    if arguments.list {
        return list_checkpoints(&*store, url);
    }
    let choice = match (&arguments.checkpoint, arguments.at) {
        (Some(name), _) => Choice::Named(name.parse().map_err(|()| {
            format!("{name:?} is not a name of a checkpoint; --list prints those that there are")
        })?),
        (None, Some(at)) => Choice::At(i64::try_from(at.as_nanosecond())?),
        (None, None) => Choice::Newest,
    };
    let bar = Bar::new("restore");
    let (read, outcome) = if arguments.verify {
        let read = remote::verify(&*store, url, THE_SHARD, choice, &bar)?;
        (read, "whole".to_owned())
    } else {
        let data_dir = load(&arguments.flags)?.storage.data_dir;
        let restored = remote::restore(&*store, url, THE_SHARD, choice, &data_dir, &bar)?;
        (restored, format!("restored to {}", data_dir.display()))
    };
    drop(bar);
    println!(
        "{url}: {}, in {:.2?}: {outcome}",
        describe(&read),
        started.elapsed()
    );
    Ok(ExitCode::SUCCESS)
}

/// Prints the checkpoints, those that do not read included. Fails if there is none.
fn list_checkpoints(store: &dyn ObjectStore, url: &str) -> Outcome {
    let mut found = false;
    for checkpoint in remote::checkpoints(store, THE_SHARD)? {
        found = true;
        match checkpoint {
            Ok(checkpoint) => println!("{}", describe(&checkpoint)),
            Err(error @ (RemoteError::DamagedRoot(..) | RemoteError::Version(..))) => println!("{error}"),
            Err(error) => return Err(error.into()),
        }
    }
    match found {
        true => Ok(ExitCode::SUCCESS),
        false => Err(RemoteError::Empty(url.to_owned()).into()),
    }
}

fn describe(checkpoint: &Checkpoint) -> String {
    let root = &checkpoint.root;
    format!(
        "checkpoint {}, taken at {}: {} files, {} bytes, up to record {}",
        checkpoint.name,
        format_timestamp_ns(root.at_ns).as_str(),
        root.files.len(),
        root.bytes(),
        root.manifest.newest_covered()
    )
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

fn run_demo(arguments: DemoArguments) -> Outcome {
    let running = async {
        let signals = listen_for_signals()?;
        let demo = Demo::prepare(arguments.data_dir.as_deref(), arguments.series.as_deref())?;
        let config = demo_config(&demo, arguments.listen)?;
        startup::start_logging(&config.log);
        let server = startup::start(config, Arc::new(SystemClock))
            .await
            .map_err(demo_server_fault)?;
        let signal = signals.received();
        let outcome = demo.run(server.address(), signal, &mut std::io::stdout()).await;
        let stopped = server.stop().await;
        demo.end().await;
        outcome?;
        stopped?;
        Ok(ExitCode::SUCCESS)
    };
    actix_web::rt::System::new().block_on(running)
}

fn demo_config(demo: &Demo, listen: Option<String>) -> Result<Config, Box<dyn Error>> {
    let data_dir = demo.data_dir();
    let unicode = data_dir.to_str();
    let unicode = unicode.ok_or_else(|| format!("{} is not a Unicode path", data_dir.display()))?;
    let flags = Flags {
        config: None,
        listen,
        data_dir: Some(unicode.to_owned()),
    };
    let settings = DEMO_SETTINGS.map(|(key, value)| (config::environment_name(key), value.to_owned()));
    Ok(config::load(&flags, settings)?)
}

/// The message for a demo whose server does not start. An address in use is the most common cause.
fn demo_server_fault(error: StartupError) -> String {
    match error {
        StartupError::Bind { address, source } if source.kind() == ErrorKind::AddrInUse => format!(
            "something listens on {address} already; give another with --listen, or a free one with --listen {}",
            SocketAddr::new(address.ip(), 0)
        ),
        error => error.to_string(),
    }
}

/// A token that the first signal to stop cancels. `remaining` says in the log what is done then.
fn stop_on_signal(remaining: &'static str) -> Result<CancellationToken, String> {
    let signals = listen_for_signals()?;
    let stop = CancellationToken::new();
    let cancel = stop.clone();
    actix_web::rt::spawn(async move {
        let signal = signals.received().await;
        tracing::info!(signal, "stopping: {remaining}");
        cancel.cancel();
    });
    Ok(stop)
}

fn listen_for_signals() -> Result<StopSignals, String> {
    StopSignals::listen().map_err(|error| format!("cannot listen for signals: {error}"))
}

fn load(flags: &Flags) -> Result<Config, ConfigError> {
    config::load(flags, environment())
}

/// The environment, except for names and values that are not Unicode, which cannot be config keys.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
