//! A PostgreSQL server of the tests' own, in a temporary directory. It ends with the test process.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::waiting::until;

/// Runs the server until its standard input ends, which it does when the test process ends, however it ends.
const UNTIL_STDIN_ENDS: &str = r#""$@" & server=$!; cat >/dev/null; kill -QUIT $server; wait $server"#;

/// A running server. Databases are made for each test.
pub struct Postgres {
    pub port: u16,
    bin: PathBuf,
    databases: AtomicU32,
    _server: Child,
    _dir: TempDir,
}

impl Postgres {
    /// The server that the tests of this process share. They need its package: `tests/needs postgresql`.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    fn start() -> Self {
        let bin = binaries();
        let dir = TempDir::new().unwrap();
        let data = dir.path().join("data");
        let account = account();
        if let Some((uid, gid)) = account {
            chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        let initdb = as_account(Command::new(bin.join("initdb")), account)
            .args([
                "--auth=trust",
                "--username=tidewatch",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
            ])
            .arg("--pgdata")
            .arg(&data)
            .output()
            .unwrap();
        assert!(
            initdb.status.success(),
            "{}",
            String::from_utf8_lossy(&initdb.stderr)
        );
        // Freed at once; nothing else on the machine takes it in between.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let log = fs::File::create(dir.path().join("log")).unwrap();
        let server = as_account(Command::new("sh"), account)
            .args(["-c", UNTIL_STDIN_ENDS, "sh"])
            .arg(bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={port}")])
            .args([
                "-c",
                "unix_socket_directories=",
                "-c",
                "fsync=off",
                "-c",
                "max_connections=200",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let postgres = Postgres {
            port,
            bin,
            databases: AtomicU32::new(0),
            _server: server,
            _dir: dir,
        };
        until("PostgreSQL takes connections", || {
            postgres.try_sql("postgres", "SELECT 1").ok()
        });
        postgres
    }

    /// Makes an empty database and returns its name.
    pub fn database(&self) -> String {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// The address of a database, through this port.
    pub fn url(&self, database: &str, port: u16) -> String {
        format!("postgres://tidewatch@127.0.0.1:{port}/{database}")
    }

    /// Runs statements; returns the rows, one a line, columns separated by `|`.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        self.try_sql(database, statements)
            .unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// A session that runs statements as they are written to it; it ends with its input.
    pub fn session(&self, database: &str) -> Child {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1"])
            .arg(self.url(database, self.port));
        psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn try_sql(&self, database: &str, statements: &str) -> Result<String, String> {
        let output = Command::new(self.bin.join("psql"))
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statements])
            .arg(self.url(database, self.port))
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// The newest PostgreSQL's directory of programs, which Debian does not put on the path.
fn binaries() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let found = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists());
    let version = |bin: &PathBuf| -> u32 {
        let name = bin
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str());
        name.and_then(|name| name.parse().ok()).unwrap_or(0)
    };
    found
        .max_by_key(version)
        .expect("PostgreSQL is installed: tests/needs postgresql")
}

/// The account that runs the server: PostgreSQL refuses to run as root.
fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let line = accounts.lines().find(|line| line.starts_with("postgres:"));
    let mut ids = line.expect("the package made an account").split(':').skip(2);
    let mut id = || ids.next().unwrap().parse().unwrap();
    Some((id(), id()))
}

fn as_account(mut command: Command, account: Option<(u32, u32)>) -> Command {
    if let Some((uid, gid)) = account {
        command.uid(uid).gid(gid);
    }
    command
}
