//! Dashboards as Grafana reads them. Grafana itself is not run.

use e2e::binaries::GrafanaTypes;
use e2e::observability::dashboards::dashboards;

#[test]
fn dashboards_are_what_grafanas_types_say() {
    let types = GrafanaTypes::locate().unwrap();
    let dashboards = dashboards().unwrap();
    for dashboard in &dashboards {
        types.check(&dashboard.title, &dashboard.text).unwrap();
    }
    // The compiler does look: a slip that Grafana would pass over in silence is an error.
    let text = &dashboards[0].text;
    for (right, wrong) in [("\"legend\":", "\"legends\":"), ("\"refId\":", "\"refID\":")] {
        let slip = text.replace(right, wrong);
        assert_ne!(&slip, text);
        let refusal = types.check("a slip", &slip).unwrap_err().to_string();
        assert!(refusal.contains(wrong.trim_matches([':', '"'])), "{refusal}");
    }
}

#[test]
fn links_between_dashboards_lead_somewhere() {
    let dashboards = dashboards().unwrap();
    let text: String = dashboards.iter().map(|it| it.text.as_str()).collect();
    let linked: Vec<&str> = text
        .split("/d/")
        .skip(1)
        .map(|rest| rest.split(['?', '"', '/']).next().unwrap_or_default())
        .collect();
    for uid in linked {
        let is_it = |it: &str| it.contains(&format!("\"uid\": \"{uid}\""));
        assert!(dashboards.iter().any(|it| is_it(&it.text)), "there is no dashboard {uid}");
    }
}
