use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::derive(algorithm, 7).unwrap()
}

fn trusted() -> TrustedKeys {
    let both = [Algorithm::Es256, Algorithm::MlDsa65].map(|it| key(it).trusted().unwrap());
    TrustedKeys::read(&both).unwrap()
}

fn claims() -> TicketClaims {
    TicketClaims {
        subject: "uid-1".into(),
        device_id: "phot-0".into(),
        tenant: "team-a".into(),
        nonce: "0123456789abcdef".into(),
        issued_at: at(0),
        expires_at: at(600),
        firmware: "1.4.2".into(),
        claims: BTreeMap::from([("secureBoot".into(), "true".into())]),
    }
}

const NONE: &BTreeMap<String, String> = &BTreeMap::new();

fn expected() -> TicketExpectation<'static> {
    TicketExpectation {
        now: at(60),
        subject: "uid-1",
        device_id: "phot-0",
        tenant: "team-a",
        nonce: Some("0123456789abcdef"),
        pqc_required: false,
        min_firmware: Some("1.4"),
        required_claims: NONE,
    }
}

#[test]
fn both_algorithms_verify_with_their_own_key() {
    for algorithm in [Algorithm::Es256, Algorithm::MlDsa65] {
        let ticket = sign(&claims(), &key(algorithm));
        assert_eq!(verify(&ticket, &trusted(), &expected()), Ok(claims()), "{algorithm}");
    }
}

#[test]
fn every_difference_has_its_reason() {
    let ticket = sign(&claims(), &key(Algorithm::Es256));
    let wanted = BTreeMap::from([("secureBoot".to_owned(), "false".to_owned())]);
    let absent = BTreeMap::from([("fips".to_owned(), "true".to_owned())]);
    for (expected, reason) in [
        (TicketExpectation { now: at(600), ..expected() }, "expired"),
        (TicketExpectation { now: at(-61), ..expected() }, "expired"),
        (TicketExpectation { subject: "uid-2", ..expected() }, "tenant"),
        (TicketExpectation { tenant: "team-b", ..expected() }, "tenant"),
        (TicketExpectation { device_id: "phot-1", ..expected() }, "claim"),
        (TicketExpectation { nonce: Some("fedcba9876543210"), ..expected() }, "nonce"),
        (TicketExpectation { pqc_required: true, ..expected() }, "pqc"),
        (TicketExpectation { min_firmware: Some("1.5"), ..expected() }, "firmware"),
        (TicketExpectation { required_claims: &wanted, ..expected() }, "claim"),
        (TicketExpectation { required_claims: &absent, ..expected() }, "claim"),
    ] {
        let fault = verify(&ticket, &trusted(), &expected).unwrap_err();
        assert_eq!(fault.reason(), reason, "{fault}");
    }
}

#[test]
fn a_changed_ticket_is_refused() {
    for algorithm in [Algorithm::Es256, Algorithm::MlDsa65] {
        let ticket = sign(&claims(), &key(algorithm));
        let (header, rest) = ticket.split_once('.').unwrap();
        let (_, signature) = rest.split_once('.').unwrap();
        let richer = TicketClaims { tenant: "team-b".into(), ..claims() };
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&richer).unwrap());
        let forged = format!("{header}.{body}.{signature}");
        assert_eq!(authenticate(&forged, &trusted()), Err(TicketFault::Signature));
    }
}

#[test]
fn the_header_cannot_choose_another_algorithm_or_key() {
    let (es256, ml_dsa) = (key(Algorithm::Es256), key(Algorithm::MlDsa65));
    let ticket = sign(&claims(), &es256);
    let (_, rest) = ticket.split_once('.').unwrap();
    for (alg, kid) in [(Algorithm::MlDsa65, es256.kid()), (Algorithm::MlDsa65, ml_dsa.kid())] {
        let header = Header { alg, kid: kid.into(), typ: TICKET_TYPE.into() };
        let header = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header).unwrap());
        let forged = format!("{header}.{rest}");
        assert_eq!(authenticate(&forged, &trusted()), Err(TicketFault::Signature));
    }
    let stranger = SigningKey::derive(Algorithm::Es256, 8).unwrap();
    let forged = sign(&claims(), &stranger);
    assert!(matches!(authenticate(&forged, &trusted()), Err(TicketFault::UnknownKey(_))));
}

#[test]
fn nonsense_is_refused_without_a_panic() {
    let huge = "a".repeat(TICKET_LENGTH_MAX + 1);
    for text in ["", ".", "..", "a.b.c", "e30.e30.e30", "\u{0}.\u{202e}.é", huge.as_str()] {
        assert_eq!(authenticate(text, &trusted()).unwrap_err().reason(), "signature", "{text:.20}");
    }
}

#[test]
fn keys_in_a_configuration_are_checked() {
    let good = key(Algorithm::Es256).trusted().unwrap();
    assert!(good.public_key_pem.starts_with("-----BEGIN PUBLIC KEY-----"), "{good:?}");
    let twice = TrustedKeys::read(&[good.clone(), good.clone()]);
    assert!(matches!(twice, Err(KeyError::Twice(_))));
    let wrong = TrustedKeys::read(&[TrustedKey { alg: Algorithm::MlDsa65, ..good.clone() }]);
    assert!(matches!(wrong, Err(KeyError::Unreadable { .. })));
    let text = serde_json::to_value(&good).unwrap();
    assert_eq!(text["alg"], "ES256");
    assert!(text["publicKeyPem"].is_string());
}
