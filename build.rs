//! Builds the dashboard (`dashboard/`, with npm) into the build's own directory, from where the binary embeds it. Part of
//! the build, so that a binary and its page are always of one source.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, fs, io};

const SOURCES: [&str; 6] = [
    "src",
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
];

/// Stands in for the page in a binary that was built where it could not be.
const WITHOUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>tidewatch</title>\
    <h1>tidewatch</h1><p>This binary was built without its dashboard: install Node 20.19 or newer, with access to the npm \
    registry, and build it again. The API is complete: see <a href=\"/api/docs\">/api/docs</a>.</p></html>";

fn main() -> ExitCode {
    for source in SOURCES {
        println!("cargo::rerun-if-changed=dashboard/{source}");
    }
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("cargo::error={fault}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let out = env::var("OUT_DIR").map_err(|error| error.to_string())?;
    let out = Path::new(&out).join("dashboard");
    if let Err(fault) = install() {
        println!("cargo::warning=built without the dashboard: {fault}");
        let written = fs::create_dir_all(&out).and_then(|()| fs::write(out.join("index.html"), WITHOUT));
        return written.map_err(|error| error.to_string());
    }
    let out = out.to_string_lossy();
    npm(&["run", "build", "--", "--outDir", &out, "--emptyOutDir"])
}

/// The tools and libraries of the lock file, unless they are there already.
fn install() -> Result<(), String> {
    let installed = Path::new("dashboard/node_modules/.package-lock.json");
    let modified = |path: &Path| fs::metadata(path).and_then(|of| of.modified());
    if modified(installed).ok() >= modified(Path::new("dashboard/package-lock.json")).ok()
        && installed.exists()
    {
        return Ok(());
    }
    npm(&["ci", "--no-audit", "--no-fund"])
}

fn npm(words: &[&str]) -> Result<(), String> {
    let ran = Command::new("npm")
        .args(words)
        .current_dir("dashboard")
        // Tests bring their own browser.
        .env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1")
        .output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            Err(format!(
                "npm {} failed: {}",
                words.join(" "),
                String::from_utf8_lossy(&said).trim().replace('\n', " | ")
            ))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("npm is not installed".to_owned()),
        Err(error) => Err(format!("npm cannot be started: {error}")),
    }
}
