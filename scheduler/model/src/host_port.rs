//! Ports of the Node that containers take.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

const ALL_ADDRESSES: &str = "0.0.0.0";

/// A port of the Node that a container or a sidecar takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPort {
    ip: Arc<str>,
    protocol: Arc<str>,
    port: i32,
}

impl HostPort {
    /// `None` when there is no host port. An empty address means all, an empty protocol TCP.
    pub fn new(ip: &str, protocol: &str, port: i32) -> Option<Self> {
        let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.into();
        (port > 0).then(|| Self { ip: or(ip, ALL_ADDRESSES), protocol: or(protocol, "TCP"), port })
    }

    /// The address for all conflicts with every address, a specific one with itself and with all.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let for_all = |port: &Self| port.ip.as_ref() == ALL_ADDRESSES;
        let same_address = self.ip == other.ip || for_all(self) || for_all(other);
        same_address && self.port == other.port && self.protocol == other.protocol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_conflict_as_sockets_do() {
        let port = |ip, protocol| HostPort::new(ip, protocol, 80).unwrap();
        assert!(port("", "").conflicts_with(&port("127.0.0.1", "TCP")));
        assert!(port("127.0.0.1", "").conflicts_with(&port("0.0.0.0", "")));
        assert!(!port("127.0.0.1", "").conflicts_with(&port("10.0.0.1", "")));
        assert!(!port("", "TCP").conflicts_with(&port("", "UDP")));
        assert_eq!(HostPort::new("", "", 0), None);
        assert_eq!(HostPort::new("", "", -1), None);
    }
}
