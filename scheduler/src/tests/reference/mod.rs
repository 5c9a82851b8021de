//! Tables of the documentation that are made from the program itself: metrics, settings, flags. A table that is
//! old fails here; `just reference` writes all of them anew.

mod fields;
mod flags;
mod metrics;

use std::env;
use std::fs;
use std::path::Path;

/// Set to anything: the pages are written instead of compared.
const WRITE: &str = "CORRIDOR_WRITE_REFERENCE";
const END: &str = "<!-- end of what is made from the program -->";

/// A table, and the words in the page after which it stands.
struct Table {
    name: &'static str,
    text: String,
}

impl Table {
    fn begin(&self) -> String {
        format!("<!-- {}: made from the program by `just reference` -->", self.name)
    }

    /// The page with this table in it.
    fn put_into(&self, page: &str) -> Result<String, String> {
        let begin = self.begin();
        let missing = |what: &str| format!("the line `{what}` is missing");
        let (before, rest) = page.split_once(&begin).ok_or_else(|| missing(&begin))?;
        let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
        Ok(format!("{before}{begin}\n\n{}\n{END}{after}", self.text))
    }
}

fn ensure_page(name: &str, tables: &[Table]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let page = fs::read_to_string(&path).unwrap();
    let put = |page: String, table: &Table| table.put_into(&page);
    let made =
        tables.iter().try_fold(page.clone(), put).unwrap_or_else(|why| panic!("{name}: {why}"));
    if env::var_os(WRITE).is_some() {
        fs::write(&path, made).unwrap();
        return;
    }
    let differs = made.lines().zip(page.lines()).find(|(made, page)| made != page);
    assert!(made == page, "docs/{name} is old, write it anew by `just reference`: {differs:?}");
}

/// One row of a table; a bar in a cell would begin another cell.
fn row<const N: usize>(cells: [&str; N]) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.join(" | ").replace("|  |", "| |"))
}

#[test]
fn metrics_are_those_of_the_registries() {
    ensure_page("metrics.md", &metrics::tables());
}

#[test]
fn settings_and_flags_are_those_of_the_types() {
    let tables: Vec<Table> = fields::tables().into_iter().chain([flags::table()]).collect();
    ensure_page("configuration.md", &tables);
}

#[test]
fn a_table_is_put_between_its_lines() {
    let table = Table { name: "numbers", text: "1\n".to_owned() };
    let page = format!("a\n{}\nold\n{END}\nb\n", table.begin());
    let made = table.put_into(&page).unwrap();
    assert_eq!(made, format!("a\n{}\n\n1\n\n{END}\nb\n", table.begin()));
    assert_eq!(table.put_into(&made).unwrap(), made);
    assert!(table.put_into("a\n").unwrap_err().contains("is missing"));
}
