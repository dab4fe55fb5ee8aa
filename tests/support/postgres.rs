//! A PostgreSQL server of the tests' own, in a temporary directory. It ends with the process that starts it.

#[path = "waiting.rs"]
pub mod waiting;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use waiting::until;

/// Runs the server until its standard input ends, which it does when this process ends, however it ends.
const UNTIL_STDIN_ENDS: &str = r#""$@" & server=$!; cat >/dev/null; kill -QUIT $server; wait $server"#;

/// A running server. Databases are made for each test.
pub struct Postgres {
    pub port: u16,
    bin: PathBuf,
    databases: AtomicU32,
    _server: Child,
    _dir: Arc<TempDir>,
}

impl Postgres {
    /// Starts a primary with these settings, and its standbys. If there are any, a commit returns when one of them has it,
    /// too; any of them can be promoted, and the others then follow it. It needs its package: `tests/needs postgresql`.
    pub fn start(standbys: usize, settings: &[&str]) -> Vec<Postgres> {
        let ports: Vec<u16> = (0..=standbys).map(|_| free_port()).collect();
        let settings: Vec<&str> = settings.to_vec();
        let (bin, account) = (binaries(), account());
        let dir = directory(account);
        let data = dir.path().join("data0");
        let mut initdb = as_account(Command::new(bin.join("initdb")), account);
        initdb.args(["--auth=trust", "--username=tidewatch", "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C", "--pgdata"]);
        succeed(initdb.arg(&data));
        if standbys > 0 {
            // In the file, so that a test can change it while the server runs.
            let file = data.join("postgresql.conf");
            let settings = fs::read_to_string(&file).unwrap() + "synchronous_standby_names = 'ANY 1 (*)'\n";
            fs::write(&file, settings).unwrap();
        }
        let start = |index: usize, settings: &[&str]| {
            let data = dir.path().join(format!("data{index}"));
            Self::serve(
                bin.clone(),
                Arc::clone(&dir),
                data,
                account,
                ports[index],
                settings,
            )
        };
        let mut servers = vec![start(0, &settings)];
        for index in 1..=standbys {
            let mut copy = as_account(Command::new(bin.join("pg_basebackup")), account);
            copy.args([
                "--checkpoint=fast",
                "--no-sync",
                "--username=tidewatch",
                "--host=127.0.0.1",
            ]);
            copy.args(["--port", &ports[0].to_string(), "--pgdata"]);
            succeed(copy.arg(dir.path().join(format!("data{index}"))));
            fs::write(dir.path().join(format!("data{index}/standby.signal")), "").unwrap();
            let others: Vec<String> = ports
                .iter()
                .filter(|port| **port != ports[index])
                .map(u16::to_string)
                .collect();
            let hosts = vec!["127.0.0.1"; others.len()].join(",");
            let follow = format!(
                "primary_conninfo=user=tidewatch host={hosts} port={} target_session_attrs=read-write application_name=s{index}",
                others.join(",")
            );
            let settings: Vec<&str> = settings.iter().copied().chain([follow.as_str()]).collect();
            servers.push(start(index, &settings));
        }
        servers
    }

    fn serve(
        bin: PathBuf,
        dir: Arc<TempDir>,
        data: PathBuf,
        account: Option<(u32, u32)>,
        port: u16,
        settings: &[&str],
    ) -> Self {
        let log = fs::File::create(data.with_extension("log")).unwrap();
        let server = as_account(Command::new("sh"), account)
            .args(["-c", UNTIL_STDIN_ENDS, "sh"])
            .arg(bin.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={port}")])
            .args(["-c", "unix_socket_directories=", "-c", "max_connections=200"])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
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

    /// The address of a database that any of these servers may have.
    pub fn url_of_all(servers: &[Postgres], database: &str) -> String {
        let hosts: Vec<String> = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        format!("postgres://tidewatch@{}/{database}", hosts.join(","))
    }

    /// Runs statements; returns the rows, one a line, columns separated by `|`.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        self.try_sql(database, statements)
            .unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// A client that is connected to a database.
    pub fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1"])
            .arg(self.url(database, self.port));
        psql
    }

    fn try_sql(&self, database: &str, statements: &str) -> Result<String, String> {
        let output = self.psql(database).args(["-c", statements]).output();
        let output = output.map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// Freed at once; nothing else on the machine takes it in between.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn directory(account: Option<(u32, u32)>) -> Arc<TempDir> {
    let dir = TempDir::new().unwrap();
    if let Some((uid, gid)) = account {
        chown(dir.path(), Some(uid), Some(gid)).unwrap();
    }
    Arc::new(dir)
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
pub fn account() -> Option<(u32, u32)> {
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
