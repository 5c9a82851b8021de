//! What is wrong with whose certificate, in words that say what to do. rustls knows it, and hides it
//! behind several layers.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

/// The words for an error's cause, if it is TLS.
pub(super) fn complaint(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // What an I/O error carries is not its source: ask for it.
        let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let of_tls = carried.and_then(|it| it.downcast_ref::<rustls::Error>());
        if let Some(found) = of_tls.or_else(|| error.downcast_ref()) {
            return Some(words(found));
        }
        cause = carried.map_or_else(|| error.source(), |it| Some(it as _));
    }
    None
}

fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(wrong) => of_theirs(wrong),
        rustls::Error::NoCertificatesPresented => {
            "the daemon shows no certificate at all".to_owned()
        }
        rustls::Error::AlertReceived(alert) => of_ours(*alert),
        rustls::Error::PeerIncompatible(why) => {
            format!("the daemon does not speak TLS 1.3 as we do: {why:?}")
        }
        other => format!("TLS failed: {other}"),
    }
}

/// We refuse the daemon's.
fn of_theirs(wrong: &CertificateError) -> String {
    let (what, advice) = match wrong {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("has expired", "give the daemon a new one")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("is not valid yet", "compare the clocks of both machines")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ("is for another host", "use a URL with a name that it has")
        }
        // The second: by one of the same name with another key, as when an authority was made anew.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            ("is not signed by an authority that we trust", "compare it with backends.tls.caFile")
        }
        _ => ("cannot be accepted", "look at how it was made"),
    };
    format!("the daemon's certificate {what} ({wrong}); {advice}")
}

/// The daemon refuses ours.
fn of_ours(alert: AlertDescription) -> String {
    let (what, advice) = match alert {
        AlertDescription::CertificateRequired => {
            ("wants to see our certificate, and we showed none", "set backends.tls")
        }
        // One word for both in TLS.
        AlertDescription::CertificateExpired => (
            "refuses our certificate: it has expired or is not valid yet",
            "renew backends.tls.certFile, or compare the clocks of both machines",
        ),
        AlertDescription::UnknownCA | AlertDescription::DecryptError => (
            "refuses our certificate: it does not trust who signed it",
            "compare backends.tls.certFile with the daemon's authorities",
        ),
        AlertDescription::CertificateRevoked => {
            ("refuses our certificate: it is revoked", "renew backends.tls.certFile")
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied => (
            "refuses our certificate",
            "its log may say why; look at how backends.tls.certFile was made",
        ),
        AlertDescription::ProtocolVersion => {
            ("does not speak TLS 1.3", "nothing older is spoken here")
        }
        _ => ("ended the TLS connection", "its log may say why"),
    };
    format!("the daemon {what} (alert {alert:?}); {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_found_inside_other_errors() {
        let required = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        let inner = io::Error::new(io::ErrorKind::InvalidData, required);
        let outer = io::Error::other(inner);
        let words = complaint(&outer).unwrap();
        assert!(words.contains("we showed none") && words.contains("backends.tls"), "{words}");
        assert_eq!(complaint(&io::Error::other("a broken wire")), None);
    }
}
