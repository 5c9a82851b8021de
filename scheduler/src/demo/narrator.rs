//! What the user reads.

use std::io::{IsTerminal, stdout};
use std::net::SocketAddr;
use std::time::Duration;

/// Prints the story: colours and pauses on a terminal, plain text otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Narrator {
    terminal: bool,
}

const PLAIN: &str = "0";
const BOLD: &str = "1";
const DIM: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

const OVERRIDES: &str = r#"{"spec":{"schedulerName":"corridor-scheduler"}}"#;

/// Long enough to read a line.
const READING_PAUSE: Duration = Duration::from_millis(1200);
const BAR_WIDTH: u64 = 25;

impl Narrator {
    pub fn new() -> Self {
        Self { terminal: stdout().is_terminal() }
    }

    pub fn title(self, text: &str) {
        println!("\n{}", self.paint(BOLD, text));
    }

    pub fn chapter(self, number: usize, text: &str) {
        println!("\n{} {}", self.paint(CYAN, &format!("{number}.")), self.paint(BOLD, text));
    }

    pub fn tell(self, text: &str) {
        println!("   {}", self.paint(PLAIN, text));
    }

    pub fn bound(self, pod: &str, detail: &str) {
        println!("   {} {pod:<11} {detail}", self.paint(GREEN, "bound"));
    }

    pub fn held(self, pod: &str, message: &str) {
        println!("   {}  {pod:<11} {message}", self.paint(YELLOW, "held"));
    }

    /// The corridor in one line: what is reserved, what it carries, what it promises.
    pub fn gauge(self, reserved_gbps: u64, achievable_gbps: f64, floor_gbps: u64, phase: &str) {
        let filled = (reserved_gbps * BAR_WIDTH / floor_gbps.max(1)).min(BAR_WIDTH);
        let bar: String = (0..BAR_WIDTH).map(|at| if at < filled { '█' } else { '░' }).collect();
        let colour = if phase == "Ready" { GREEN } else { YELLOW };
        println!(
            "   {} {bar} {reserved_gbps:>3} of {floor_gbps} Gbps reserved, carries {achievable_gbps:.1}",
            self.paint(colour, &format!("spine {phase:<8}"))
        );
    }

    pub fn end(self, text: &str) {
        println!("\n{}\n", self.paint(GREEN, text));
    }

    pub fn invite(self, kubeconfig: &str, http: SocketAddr) {
        println!("The cluster stays up until you press Ctrl-C. Look around in another terminal:\n");
        println!("  export KUBECONFIG={kubeconfig}");
        println!("  kubectl get corridors,pods -n team-a -o wide");
        println!("  kubectl describe pod -n team-a");
        println!("  curl http://{http}/metrics");
        println!("  curl http://{http}/api/pods/team-a/urgent/explain\n");
        println!("Place a Pod of your own (no kubelet runs here, so a bound Pod stays Pending):\n");
        println!("  kubectl run mine -n team-a --image=app --overrides='{OVERRIDES}'");
        println!("\n{}", self.paint(DIM, "Ctrl-C ends the demo and removes its files."));
    }

    /// Gives the reader time, where there is one.
    pub async fn pause(self) {
        if self.terminal {
            tokio::time::sleep(READING_PAUSE).await;
        }
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.terminal { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
