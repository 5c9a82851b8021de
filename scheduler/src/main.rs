//! corridor-scheduler: the composition root. Parses the command line, starts what was asked for,
//! and turns the result into an exit code.

mod account;
mod args;
mod backends;
mod client;
mod configuration;
mod daemons;
mod demo;
mod http;
mod logging;
mod memory;
mod own_thread;
mod replay;
mod rotation;
mod run;
mod shadow;
mod simulate;
mod stop;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

/// Of a million small objects it loses less between them than the C library's does, and gives back what was freed.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit codes: 0 done or told to stop, 1 failure, 2 bad flags or configuration (clap uses 2 too).
const FAILURE: u8 = 1;
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    // Two TLS providers in one build would make the first connection panic: name ours.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(FAILURE, &format!("cannot start worker threads: {error}")),
    };
    let result = match args.command {
        Command::Run(args) => {
            logging::start("info");
            runtime
                .block_on(run::run(*args))
                .map_err(|error| (error.exit_code(), error.to_string()))
        }
        Command::Demo(args) => {
            logging::start("warn");
            runtime.block_on(demo::demo(args)).map_err(|error| (FAILURE, error.to_string()))
        }
        Command::Daemons(args) => {
            logging::start("info");
            runtime.block_on(daemons::serve(args)).map_err(|error| (FAILURE, error.to_string()))
        }
        Command::Replay(args) => {
            logging::start("warn");
            replay::replay(&args).map_err(|error| (error.exit_code(), error.to_string()))
        }
        Command::Simulate(args) => {
            simulate::simulate(&args);
            Ok(())
        }
        Command::Crds => print_crds().map_err(|error| (FAILURE, error)),
    };
    // A thread that is stuck would keep it for ever.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, message)) => fail(code, &message),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("corridor-scheduler: {message}");
    ExitCode::from(code)
}

/// All definitions as one YAML stream, ready for `kubectl apply -f -`.
fn print_crds() -> Result<(), String> {
    let manifests = crds::manifest::all().map_err(|error| error.to_string())?;
    for manifest in manifests {
        println!("---\n{}", manifest.yaml.trim_end());
    }
    Ok(())
}
