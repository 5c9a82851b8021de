//! The dashboards of `config/grafana/`: what they ask, with variables filled in as Grafana fills them in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::control_plane::CONFIG_DIR;
use crate::error::{Doing as _, Error, Result};

/// What Grafana puts in for a dashboard of an hour on a data source that is scraped every 15 s.
const GRAFANAS_OWN: [(&str, &str); 3] =
    [("__rate_interval", "1m"), ("__interval", "15s"), ("__range", "1h")];

/// What makes a query answer 0 where there is nothing. Without it shows whether there is something.
pub const ELSE_ZERO: &str = " or vector(0)";

/// What leaves out series at 0, so that a legend names only what is of interest. The same holds of it.
pub const ABOVE_ZERO: &str = " > 0";

#[derive(Debug, Clone)]
pub struct Dashboard {
    pub file: PathBuf,
    pub text: String,
    pub title: String,
    pub variables: Vec<Variable>,
    pub queries: Vec<PanelQuery>,
}

/// A variable whose values are those of a label.
#[derive(Debug, Clone)]
pub struct Variable {
    pub name: String,
    pub selector: String,
    pub label: String,
    /// What stands for all of them.
    pub all: String,
}

#[derive(Debug, Clone)]
pub struct PanelQuery {
    /// Dashboard, panel and letter of the query.
    pub place: String,
    pub expression: String,
    /// The name of each series, with labels in `{{}}`.
    pub legend: String,
    /// Of one moment, and not of a span.
    pub is_instant: bool,
}

/// Values of variables by name.
pub type Values = BTreeMap<String, String>;

/// All of them, by their titles.
pub fn dashboards() -> Result<Vec<Dashboard>> {
    let folder = Path::new(CONFIG_DIR).join("grafana/dashboards");
    let doing = || format!("reading {}", folder.display());
    let mut dashboards = Vec::new();
    for entry in fs::read_dir(&folder).doing(doing())? {
        dashboards.push(read(entry.doing(doing())?.path())?);
    }
    dashboards.sort_by(|one, other| one.title.cmp(&other.title));
    Ok(dashboards)
}

impl Dashboard {
    /// Every variable at "All".
    pub fn everything(&self) -> Values {
        self.variables.iter().map(|it| (it.name.clone(), it.all.clone())).collect()
    }
}

impl PanelQuery {
    /// As Prometheus gets it, without what would hide that there is nothing.
    pub fn filled_in(&self, values: &Values) -> String {
        let shown = self.as_shown(values).replace(ELSE_ZERO, "");
        shown.strip_suffix(ABOVE_ZERO).unwrap_or(&shown).to_owned()
    }

    /// As Prometheus gets it.
    pub fn as_shown(&self, values: &Values) -> String {
        fill_in(&self.expression, values)
    }

    /// The labels that the name of a series is made of.
    pub fn legend_labels(&self) -> impl Iterator<Item = &str> {
        self.legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next())
    }
}

/// `$name` and `${name}` become values.
pub fn fill_in(expression: &str, values: &Values) -> String {
    let own = GRAFANAS_OWN.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut all: Vec<_> = own.into_iter().chain(values.clone()).collect();
    // The longest first: one name may begin with another.
    all.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    all.iter().fold(expression.to_owned(), |text, (name, value)| {
        text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
    })
}

fn read(file: PathBuf) -> Result<Dashboard> {
    let doing = || format!("reading {}", file.display());
    let text = fs::read_to_string(&file).doing(doing())?;
    let value: Value = serde_json::from_str(&text).doing(doing())?;
    let title = value["title"].as_str().unwrap_or_default().to_owned();
    let listed = value["templating"]["list"].as_array().into_iter().flatten();
    let variables = listed.filter(|it| it["type"] == "query").map(|it| {
        variable(it).ok_or_else(|| Error::malformed(doing(), format!("a variable that {it}")))
    });
    let variables = variables.collect::<Result<_>>()?;
    let mut queries = Vec::new();
    for panel in value["panels"].as_array().into_iter().flatten() {
        let named = panel["title"].as_str().unwrap_or_default();
        for target in panel["targets"].as_array().into_iter().flatten() {
            let letter = target["refId"].as_str().unwrap_or_default();
            queries.push(PanelQuery {
                place: format!("{title}: {named} ({letter})"),
                expression: target["expr"].as_str().unwrap_or_default().to_owned(),
                legend: target["legendFormat"].as_str().unwrap_or_default().to_owned(),
                is_instant: target["instant"] == true,
            });
        }
    }
    Ok(Dashboard { file, text, title, variables, queries })
}

/// `label_values(selector, label)` is the only form that ours have.
fn variable(it: &Value) -> Option<Variable> {
    let query = it["query"]["query"].as_str()?;
    let inside = query.strip_prefix("label_values(")?.strip_suffix(')')?;
    let (selector, label) = inside.rsplit_once(',')?;
    Some(Variable {
        name: it["name"].as_str()?.to_owned(),
        selector: selector.trim().to_owned(),
        label: label.trim().to_owned(),
        all: it["allValue"].as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_a_zero_of_nothing_is_taken_away() {
        let query = PanelQuery {
            place: String::new(),
            expression:
                "sum(rate(a{x=~\"$name\", y=~\"${namespace}\"}[$__rate_interval])) or vector(0)"
                    .into(),
            legend: "{{x}} of {{y}}".into(),
            is_instant: true,
        };
        let values =
            [("name", ".*"), ("namespace", "(a|b)")].map(|(it, as_)| (it.into(), as_.into()));
        let expected = "sum(rate(a{x=~\".*\", y=~\"(a|b)\"}[1m]))";
        let values = values.into();
        assert_eq!(query.filled_in(&values), expected);
        assert_eq!(query.as_shown(&values), format!("{expected} or vector(0)"));
        assert_eq!(query.legend_labels().collect::<Vec<_>>(), ["x", "y"]);
        let above_zero = PanelQuery { expression: "sum by (x) (a) > 0".into(), ..query };
        assert_eq!(above_zero.filled_in(&values), "sum by (x) (a)");
    }

    #[test]
    fn each_dashboard_has_queries_and_variables() {
        let all = dashboards().unwrap();
        assert_eq!(all.len(), 5);
        for dashboard in all {
            assert!(dashboard.queries.len() >= 9, "{}", dashboard.title);
            assert!(dashboard.variables.len() >= 2, "{}", dashboard.title);
            assert!(dashboard.queries.iter().all(|it| !it.expression.is_empty()));
        }
    }
}
