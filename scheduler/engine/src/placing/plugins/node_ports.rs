use model::HostPort;

use super::super::rows::Extras;

/// Whether one of the ports is taken on the Node.
pub(in crate::placing) fn has_conflict(wanted: &[HostPort], extras: &Extras) -> bool {
    wanted.iter().any(|wanted| extras.ports.iter().any(|it| it.conflicts_with(wanted)))
}
