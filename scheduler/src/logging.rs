//! Logs on standard error: text on a terminal, JSON otherwise. `RUST_LOG` overrides the level.

use std::env;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::Directive;

/// What the client says and we say better. It logs each failed call a second time, as an error without saying which
/// one; and for each connection that a certificate is not verified, of which `client` warns once.
const REPEATED: [&str; 2] = ["kube_client::client::builder=off", "kube_client::client::tls=error"];

pub fn start(default_level: &str) {
    let asked = env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = filter(&asked, default_level);
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second subscriber (in tests) is refused and harmless.
    let _ = if std::io::stderr().is_terminal() {
        logs.try_init()
    } else {
        logs.json().flatten_event(true).try_init()
    };
}

/// What `RUST_LOG` asks for, else the default; without what is repeated, unless the client is asked for by name.
fn filter(asked: &str, default_level: &str) -> EnvFilter {
    let chosen = match EnvFilter::try_new(asked) {
        Ok(filter) if !asked.trim().is_empty() => filter,
        _ => EnvFilter::new(default_level),
    };
    if asked.contains("kube_client") {
        return chosen;
    }
    let directives = REPEATED.iter().filter_map(|directive| directive.parse::<Directive>().ok());
    directives.fold(chosen, EnvFilter::add_directive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_repeats_is_left_out_unless_it_is_asked_for() {
        for (asked, level, left_out) in [
            ("", "info", true),
            ("debug", "debug", true),
            ("driver=debug", "driver=debug", true),
            ("not=a=filter", "info", true),
            ("info,kube_client=debug", "info", false),
        ] {
            let filter = filter(asked, "info").to_string();
            assert!(filter.contains(level), "{asked:?}: {filter}");
            assert_eq!(filter.contains("client::tls=error"), left_out, "{asked:?}: {filter}");
            assert_eq!(filter.contains("client::builder=off"), left_out, "{asked:?}: {filter}");
        }
    }
}
