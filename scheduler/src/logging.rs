//! Logs on standard error: text on a terminal, JSON otherwise. `RUST_LOG` overrides the level.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

pub fn start(default_level: &str) {
    // The client logs each failed call a second time, as an error without saying which one.
    let default = format!("{default_level},kube_client::client::builder=off");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second subscriber (in tests) is refused and harmless.
    let _ = if std::io::stderr().is_terminal() {
        logs.try_init()
    } else {
        logs.json().flatten_event(true).try_init()
    };
}
