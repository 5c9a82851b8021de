use super::*;

fn judged(target: &str, headers: &[(HeaderName, &str)]) -> Result<(), ForbiddenRequest> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(name.clone(), HeaderValue::from_str(value).unwrap());
    }
    judge(&target.parse().unwrap(), &map)
}

fn of_host(host: &str) -> Result<(), ForbiddenRequest> {
    judged("/metrics", &[(header::HOST, host)])
}

#[test]
fn names_of_this_machine_are_answered_on_any_port() {
    for host in [
        "localhost",
        "LocalHost:10260",
        "localhost.:8080",
        "127.0.0.1",
        "127.0.0.1:10260",
        "127.8.8.8:1",
        "[::1]",
        "[::1]:10260",
        "[::ffff:127.0.0.1]:80",
    ] {
        assert_eq!(of_host(host), Ok(()), "{host}");
    }
}

#[test]
fn other_names_are_refused_whatever_they_resolve_to() {
    for host in [
        "attacker.example",
        "attacker.example:10260",
        "localhost.attacker.example",
        "127.0.0.1.attacker.example",
        "10.0.0.7:10260",
        "0.0.0.0:10260",
        "[fe80::1]",
        "[::]",
        "localhost@attacker.example",
        "attacker.example@localhost",
        "2130706433",
        "",
        "not a host",
    ] {
        assert!(matches!(of_host(host), Err(ForbiddenRequest::ForeignHost(_))), "{host}");
    }
    let bytes = HeaderValue::from_bytes(b"\xff").unwrap();
    let headers = HeaderMap::from_iter([(header::HOST, bytes)]);
    let refused = judge(&Uri::from_static("/metrics"), &headers);
    assert!(matches!(refused, Err(ForbiddenRequest::ForeignHost(_))));
}

#[test]
fn one_host_is_named_and_the_request_line_agrees() {
    assert_eq!(judged("/metrics", &[]), Err(ForbiddenRequest::NoHost));
    let two = [(header::HOST, "localhost"), (header::HOST, "localhost")];
    assert_eq!(judged("/metrics", &two), Err(ForbiddenRequest::NoHost));
    let host = [(header::HOST, "localhost")];
    assert_eq!(judged("http://localhost/metrics", &host), Ok(()));
    let refused = judged("http://attacker.example/metrics", &host);
    assert_eq!(refused, Err(ForbiddenRequest::ForeignHost("attacker.example".to_owned())));
}

#[test]
fn pages_of_other_origins_are_refused_and_people_are_not() {
    let host = (header::HOST, "localhost:10260");
    for site in ["none", "same-origin"] {
        assert_eq!(judged("/", &[host.clone(), (SEC_FETCH_SITE, site)]), Ok(()), "{site}");
    }
    for site in ["cross-site", "same-site", "anything", ""] {
        let refused = judged("/", &[host.clone(), (SEC_FETCH_SITE, site)]);
        assert_eq!(refused, Err(ForbiddenRequest::CrossSite(site.to_owned())), "{site}");
    }
    let own = (header::ORIGIN, "http://localhost:10260");
    assert_eq!(judged("/", &[host.clone(), own]), Ok(()));
    for origin in [
        "null",
        "http://attacker.example",
        "http://localhost:3000",
        "http://localhost",
        "https://localhost:10260",
        "http://127.0.0.1:10260",
    ] {
        let refused = judged("/", &[host.clone(), (header::ORIGIN, origin)]);
        assert_eq!(refused, Err(ForbiddenRequest::CrossSite(origin.to_owned())), "{origin}");
    }
}
