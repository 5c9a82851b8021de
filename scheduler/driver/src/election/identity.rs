//! Under which name a replica leads.

/// `<hostname>_<uuid>`, the form of Kubernetes' own components. New for every term: a late Binding of
/// an earlier term must not look like one of the present.
pub(super) fn fresh() -> String {
    format!("{}_{}", host(), uuid::Uuid::new_v4())
}

/// For people; the rest of the identity makes it unique.
fn host() -> String {
    let name = hostname::get().map(|name| name.to_string_lossy().into_owned());
    name.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_all_name_the_host() {
        let (first, second) = (fresh(), fresh());
        assert_ne!(first, second);
        let (host, unique) = first.rsplit_once('_').unwrap();
        assert!(second.starts_with(host));
        assert_eq!(unique.len(), 36);
    }
}
