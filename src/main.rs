//! The command line of tidewatch.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use tidewatch::clock::SystemClock;
use tidewatch::config::{self, Config, Flags};
use tidewatch::startup;

/// Requests allocate on one thread and free on another, and merges allocate by the megabyte: glibc's allocator answers
/// both with page faults, which stop all threads of the process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// Reads a data directory and reports what it finds; changes nothing without --repair
    Check(CheckArguments),
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
    /// Cuts off or sets aside what is damaged, and says what is lost
    #[arg(long)]
    repair: bool,
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
        Command::Check(arguments) => run_check(arguments),
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

fn run_check(arguments: CheckArguments) -> Result<ExitCode, String> {
    let config = load(arguments.shared, None)?;
    tidewatch::check::run(&config, arguments.repair)
}

fn load(shared: SharedArguments, listen: Option<String>) -> Result<Config, String> {
    let flags = Flags {
        config: shared.config,
        listen,
        data_dir: shared.data_dir,
    };
    // Names and values that are not Unicode are nobody's config keys.
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    config::load(&flags, environment).map_err(|error| error.to_string())
}
