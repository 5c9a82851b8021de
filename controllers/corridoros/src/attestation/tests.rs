use super::*;
use crds::{AttestationPolicySpec, DeviceSelectors};
use daemons::ticket::{Algorithm, SigningKey, TicketClaims};

fn policy(change: impl Fn(&mut AttestationPolicySpec)) -> Arc<AttestationPolicy> {
    let mut spec = AttestationPolicySpec { pqc_required: false, ..Default::default() };
    change(&mut spec);
    Arc::new(AttestationPolicy::new("p", spec))
}

fn map(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

fn device(id: &str, rack: &str, firmware: &str, pqc: bool) -> Device {
    Device {
        device_id: id.into(),
        kind: DeviceKind::Photonic,
        labels: map("rack", rack),
        firmware: firmware.into(),
        claims: map("debug", "off"),
        pqc,
    }
}

fn holder<'a>(preferred: &'a [&'a str], ticket: Option<&'a str>) -> Holder<'a> {
    Holder {
        uid: "u",
        namespace: "team",
        kind: DeviceKind::Photonic,
        pinned_device: None,
        preferred_devices: preferred,
        ticket,
    }
}

#[test]
fn constraints_add_up_and_tenants_alone_constrain_nothing() {
    let tenants = policy(|it| it.allowed_tenants = vec!["other".into()]);
    assert_eq!(Requirement::of(false, std::slice::from_ref(&tenants)), None);
    let racks = policy(|it| {
        it.device_selectors = Some(DeviceSelectors { match_labels: map("rack", "a") });
        it.min_firmware_version = Some("1.2".into());
    });
    let newer = policy(|it| it.min_firmware_version = Some("1.10".into()));
    let both = Requirement::of(false, &[tenants, racks, newer]).unwrap();
    let label = |device: &Device| both.admits(device).err().map(|unfit| unfit.label);
    assert_eq!(label(&device("d", "a", "1.10", false)), None);
    assert_eq!(label(&device("d", "b", "1.10", false)), Some("label"));
    assert_eq!(label(&device("d", "a", "1.9", false)), Some("firmware"));
}

#[test]
fn a_default_asks_nothing_of_devices_in_a_policy_that_is_about_tenants() {
    let stored = |change: fn(&mut AttestationPolicySpec)| {
        // As the API server stores it.
        policy(|it| {
            it.pqc_required = true;
            change(it);
        })
    };
    let tenants = stored(|it| it.allowed_tenants = vec!["other".into()]);
    assert_eq!(Requirement::of(false, std::slice::from_ref(&tenants)), None);
    let attested = Requirement::of(true, std::slice::from_ref(&tenants)).unwrap();
    assert!(!attested.pqc, "what was attested before stays as it is");
    let both = stored(|it| {
        it.allowed_tenants = vec!["other".into()];
        it.min_firmware_version = Some("1".into());
    });
    assert!(Requirement::of(false, &[tenants, both]).unwrap().pqc, "this one is about devices");
    assert!(Requirement::of(false, &[stored(|_| {})]).unwrap().pqc, "and so is this one");
}

#[test]
fn a_denial_names_what_each_device_of_the_kind_lacks() {
    let requirement =
        Requirement::of(false, &[policy(|it| it.required_claims = map("seal", "intact"))]);
    let memory = Device { kind: DeviceKind::Memory, ..device("mem", "a", "1", true) };
    let devices = Ok(vec![memory, device("phot", "a", "1", true)]);
    let keys = TrustedKeys::default();
    let trust = judge(
        requirement.as_ref(),
        &devices,
        &keys,
        holder(&[], None),
        &mut None,
        Timestamp::UNIX_EPOCH,
    );
    let message = "no device meets the policies of the namespace: phot: claim \"seal\" is \
                   absent, must be \"intact\"";
    let failures = vec![DeviceFailure { device: "phot".to_owned(), reason: "claim" }];
    assert_eq!(trust, Trust::Denied { failures, by_policy: true, message: message.to_owned() });
}

#[test]
fn every_device_that_will_not_do_fails_for_its_own_reason() {
    let wanted = policy(|it| {
        it.device_selectors = Some(DeviceSelectors { match_labels: map("rack", "a") });
        it.min_firmware_version = Some("2".into());
        it.pqc_required = true;
    });
    let requirement = Requirement::of(false, &[wanted]);
    let devices = vec![
        device("elsewhere", "b", "2", true),
        device("old", "a", "1", true),
        device("classic", "a", "2", false),
    ];
    let (keys, now) = (TrustedKeys::default(), Timestamp::UNIX_EPOCH);
    let inventory = Ok(devices);
    let trust = judge(requirement.as_ref(), &inventory, &keys, holder(&[], None), &mut None, now);
    let failed = |device: &str, reason| DeviceFailure { device: device.to_owned(), reason };
    assert_eq!(
        trust.failures(),
        [failed("elsewhere", "label"), failed("old", "firmware"), failed("classic", "pqc")]
    );
}

#[test]
fn contradicting_policies_are_denied() {
    let on = policy(|it| it.required_claims = map("debug", "on"));
    let off = policy(|it| it.required_claims = map("debug", "off"));
    let requirement = Requirement::of(false, &[on, off]);
    let keys = TrustedKeys::default();
    let devices = Ok(vec![device("d", "a", "1", true)]);
    let trust = judge(
        requirement.as_ref(),
        &devices,
        &keys,
        holder(&[], None),
        &mut None,
        Timestamp::UNIX_EPOCH,
    );
    assert!(matches!(trust, Trust::Denied { .. }), "{trust:?}");
}

#[test]
fn a_ticket_is_good_until_it_expires_even_without_attestd() {
    let key = SigningKey::derive(Algorithm::Es256, 1).unwrap();
    let keys = TrustedKeys::read(&[key.trusted().unwrap()]).unwrap();
    let at = |second| Timestamp::from_second(second).unwrap();
    let claims = TicketClaims {
        subject: "u".into(),
        device_id: "d".into(),
        tenant: "team".into(),
        nonce: "n".into(),
        issued_at: at(0),
        expires_at: at(900),
        firmware: "1".into(),
        claims: BTreeMap::new(),
    };
    let ticket = ticket::sign(&claims, &key);
    let requirement = Requirement::of(true, &[]);
    let away = Err("away".to_owned());
    let look = |now| {
        judge(requirement.as_ref(), &away, &keys, holder(&["d"], Some(&ticket)), &mut None, at(now))
    };
    let good = Trust::Good { device: "d".into(), expires_at: at(900), renew_at: at(600) };
    assert_eq!(look(0), good);
    assert_eq!(look(899), good);
    assert!(matches!(look(900), Trust::Ask { fault: Some(TicketFault::Expired { .. }), .. }));
}

#[test]
fn a_pinned_device_is_never_exchanged() {
    let requirement = Requirement::of(false, &[policy(|it| it.pqc_required = true)]);
    let devices = Ok(vec![device("old", "a", "1", false), device("new", "a", "1", true)]);
    let keys = TrustedKeys::default();
    let look =
        |holder| judge(requirement.as_ref(), &devices, &keys, holder, &mut None, Timestamp::MIN);
    let free = look(holder(&["old"], None));
    assert_eq!(free, Trust::Ask { device: "new".into(), fault: None });
    let pinned = look(Holder { pinned_device: Some("old"), ..holder(&["old"], None) });
    assert!(matches!(pinned, Trust::Denied { .. }), "{pinned:?}");
}
