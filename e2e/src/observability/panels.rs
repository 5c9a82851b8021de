//! The panels of a dashboard, as far as tests look at how they are drawn.

use serde_json::Value;

use super::dashboards::Dashboard;

/// One panel that is no heading.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Dashboard and panel.
    pub place: String,
    pub title: String,
    pub kind: String,
    pub json: Value,
}

/// A query of a panel.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub expression: &'a str,
    pub legend: &'a str,
    pub is_instant: bool,
}

/// All panels of these dashboards, without headings.
pub fn panels(dashboards: &[Dashboard]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for dashboard in dashboards {
        let value: Value = serde_json::from_str(&dashboard.text).unwrap_or_default();
        let listed = value["panels"].as_array().into_iter().flatten();
        for json in listed.filter(|it| it["type"] != "row") {
            let title = json["title"].as_str().unwrap_or_default().to_owned();
            panels.push(Panel {
                place: format!("{}: {title}", dashboard.title),
                title,
                kind: json["type"].as_str().unwrap_or_default().to_owned(),
                json: json.clone(),
            });
        }
    }
    panels
}

impl Panel {
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let listed = self.json["targets"].as_array().into_iter().flatten();
        listed.map(|it| Target {
            expression: it["expr"].as_str().unwrap_or_default(),
            legend: it["legendFormat"].as_str().unwrap_or_default(),
            is_instant: it["instant"] == true,
        })
    }

    pub fn is_over_time(&self) -> bool {
        self.kind == "timeseries"
    }

    pub fn defaults(&self) -> &Value {
        &self.json["fieldConfig"]["defaults"]
    }

    pub fn unit(&self) -> &str {
        self.defaults()["unit"].as_str().unwrap_or_default()
    }

    /// The soft end of its axis.
    pub fn soft_max(&self) -> Option<f64> {
        self.defaults()["custom"]["axisSoftMax"].as_f64()
    }

    pub fn width(&self) -> u64 {
        self.json["gridPos"]["w"].as_u64().unwrap_or_default()
    }

    pub fn height(&self) -> u64 {
        self.json["gridPos"]["h"].as_u64().unwrap_or_default()
    }

    /// The greatest value at which its colour changes.
    pub fn last_threshold(&self) -> Option<f64> {
        let steps = self.defaults()["thresholds"]["steps"].as_array()?;
        steps.iter().filter_map(|step| step["value"].as_f64()).reduce(f64::max)
    }
}
