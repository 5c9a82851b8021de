//! Checks a daemon: `cargo run -p daemons --example conformance -- --url http://127.0.0.1:7080`.

use std::process::ExitCode;

use clap::Parser;
use daemons::conformance::{self, Target};

/// Tries every rule of the contract. Never against a daemon in use if it has /admin: it is
/// restarted without its state.
#[derive(Parser)]
struct Flags {
    /// All daemons at one address.
    #[arg(long)]
    url: String,
    /// memqosd, if it is elsewhere.
    #[arg(long)]
    memqosd_url: Option<String>,
    /// attestd, if it is elsewhere.
    #[arg(long)]
    attestd_url: Option<String>,
    /// A JSON list of {kid, alg, publicKeyPem}; without it signatures are not checked.
    #[arg(long)]
    trusted_keys: Option<std::path::PathBuf>,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let flags = Flags::parse();
    let mut target = Target::at(flags.url);
    target.memqosd_url = flags.memqosd_url.unwrap_or(target.memqosd_url);
    target.attestd_url = flags.attestd_url.unwrap_or(target.attestd_url);
    if let Some(file) = flags.trusted_keys {
        target.trusted_keys = serde_json::from_slice(&std::fs::read(file)?)?;
    }
    let report = conformance::run(&target).await?;
    println!("{report}");
    Ok(if report.broken().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
