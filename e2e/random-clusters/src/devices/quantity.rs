//! Amounts as these cases write them.

const UNITS: [(&str, i128); 5] =
    [("Gi", 1000 << 30), ("Mi", 1000 << 20), ("Ki", 1000 << 10), ("k", 1_000_000), ("m", 1)];

/// In thousandths. `None`: no case writes an amount like this.
pub fn milli(text: &str) -> Option<i128> {
    let with_unit = UNITS.iter().find_map(|(unit, worth)| Some((text.strip_suffix(unit)?, worth)));
    let (number, worth) = with_unit.unwrap_or((text, &1000));
    number.parse::<i128>().ok().map(|number| number * worth)
}
