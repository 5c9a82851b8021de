//! Holds a control plane open, for a person at a keyboard and for the test that nothing is left over.
//!
//! Prints one line of JSON when it is ready: `kubeconfig`, `schedulerKubeconfig`, `folders` and
//! `processIds`. Then it waits for a line on standard input and ends as that line says: `drop` (also
//! at the end of the input), `exit` without dropping anything, or `panic`. Ctrl-C works as well.

use std::error::Error;
use std::io::{self, Write as _};
use std::process;
use std::sync::OnceLock;

use e2e::ControlPlane;
use serde_json::json;

/// As a shared fixture is kept by a test file. Nothing ever drops a static.
static SHARED: OnceLock<ControlPlane> = OnceLock::new();

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = ControlPlane::start().await?;
    plane.install_crds().await?;
    let description = json!({
        "kubeconfig": plane.admin_kubeconfig(),
        "schedulerKubeconfig": plane.scheduler_kubeconfig(),
        "folders": plane.folders(),
        "processIds": plane.process_ids(),
    });
    writeln!(io::stdout(), "{description}")?;

    let mut order = String::new();
    io::stdin().read_line(&mut order)?;
    let order = order.trim();
    assert_ne!(order, "panic", "as told, with the control plane still up");
    if order == "exit" {
        SHARED.get_or_init(|| plane);
        process::exit(0);
    }
    drop(plane);
    Ok(())
}
