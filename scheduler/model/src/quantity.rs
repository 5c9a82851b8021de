//! Kubernetes quantities (`100m`, `1.5Gi`, `2e3`), exactly as far as scheduling needs them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A parsed quantity, kept in thousandths and rounded up, as Kubernetes does
/// when a value is finer than its unit. Too large a value counts as [`VALUE_MAX`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Quantity {
    milli: i128,
}

impl Quantity {
    /// More than any Node has.
    pub const MAX: Self = Self { milli: i128::MAX >> 1 };
    /// What [`Self::value`] and [`Self::milli_value`] give at most.
    pub const VALUE_MAX: i64 = VALUE_MAX;

    pub const fn from_milli(milli: i64) -> Self {
        Self { milli: milli as i128 }
    }

    pub const fn from_whole(whole: i64) -> Self {
        Self { milli: whole as i128 * 1000 }
    }

    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self { milli: self.milli.saturating_add(other.milli).min(Self::MAX.milli) }
    }

    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self { milli: self.milli.saturating_sub(other.milli).max(-Self::MAX.milli) }
    }

    /// The smallest of `from`, `from + step`, `from + 2 × step`, … that is not less than this. All of them count as
    /// whole numbers, rounded up, without a limit.
    #[must_use]
    pub fn rounded_up_to_step(self, from: Self, step: Self) -> Self {
        let (whole, from, step) = (self.rounded_up(), from.rounded_up(), step.rounded_up());
        let beyond = whole.milli.saturating_sub(from.milli);
        if beyond <= 0 || step.milli <= 0 {
            return if beyond <= 0 { from } else { whole };
        }
        let steps = beyond / step.milli + i128::from(beyond % step.milli != 0);
        let milli = steps.saturating_mul(step.milli).saturating_add(from.milli);
        Self { milli: milli.min(Self::MAX.milli) }
    }

    /// The next whole number, without a limit: the form in which sizes of volumes are compared with capacities.
    #[must_use]
    pub fn rounded_up(self) -> Self {
        let whole = self.milli.div_euclid(1000) + i128::from(self.milli.rem_euclid(1000) != 0);
        Self { milli: whole.saturating_mul(1000) }
    }

    /// Thousandths of the unit: the form in which CPU is counted.
    pub fn milli_value(self) -> i64 {
        clamp(self.milli)
    }

    /// Whole units, rounded up: the form in which everything but CPU is counted.
    pub fn value(self) -> i64 {
        clamp(self.milli.div_euclid(1000) + i128::from(self.milli.rem_euclid(1000) != 0))
    }
}

/// Whole units that a suffix stands for, by its size.
const BINARY: [(i128, &str); 6] = [
    (1 << 60, "Ei"),
    (1 << 50, "Pi"),
    (1 << 40, "Ti"),
    (1 << 30, "Gi"),
    (1 << 20, "Mi"),
    (1 << 10, "Ki"),
];
const DECIMAL: [(i128, &str); 6] = [
    (1_000_000_000_000_000_000, "E"),
    (1_000_000_000_000_000, "P"),
    (1_000_000_000_000, "T"),
    (1_000_000_000, "G"),
    (1_000_000, "M"),
    (1000, "k"),
];

/// Exactly, with the suffix that makes it shortest: most often the one that it was written with.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.milli % 1000 != 0 {
            return write!(f, "{}m", self.milli);
        }
        let whole = self.milli / 1000;
        let with = |units: [(i128, &str); 6]| {
            let unit = units.into_iter().find(|(size, _)| whole != 0 && whole % size == 0);
            let (size, suffix) = unit.unwrap_or((1, ""));
            format!("{}{suffix}", whole / size)
        };
        let (binary, decimal) = (with(BINARY), with(DECIMAL));
        f.write_str(if decimal.len() < binary.len() { &decimal } else { &binary })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    text: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a quantity: expected a number like 500m, 2, 1.5Gi or 1e3", self.text)
    }
}

impl std::error::Error for QuantityError {}

/// Longer texts cannot be quantities that the API server accepts.
const TEXT_BYTES_MAX: usize = 64;
/// Keeps every intermediate product inside `i128`.
const DIGITS_MAX: usize = 24;

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        parse(text)
            .ok_or_else(|| QuantityError { text: text.chars().take(TEXT_BYTES_MAX).collect() })
    }
}

fn parse(text: &str) -> Option<Quantity> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let number_len = unsigned.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (number, suffix) = unsigned.split_at(number_len);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() + fraction.len() > DIGITS_MAX {
        // Beyond 10^24 there is no node to fit it: the clamp below decides.
        return (whole.len() > 20).then_some(Quantity::MAX);
    }
    let digits: i128 = match format!("{whole}{fraction}").as_str() {
        "" => 0,
        text => text.parse().ok()?,
    };
    let decimals = i32::try_from(fraction.len()).ok()?;
    let magnitude = match scale(suffix)? {
        Scale::Binary(shift) => scale_by_ten(digits.checked_mul(1 << shift)?, 3 - decimals),
        Scale::Decimal(exponent) => scale_by_ten(digits, exponent + 3 - decimals),
    };
    Some(Quantity { milli: if negative { -magnitude } else { magnitude } })
}

enum Scale {
    Binary(u32),
    Decimal(i32),
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "" => Scale::Decimal(0),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E'])?;
            let exponent: i32 = digits.parse().ok()?;
            Scale::Decimal(exponent.clamp(-64, 64))
        }
    })
}

/// `digits × 10^exponent`, rounded up, kept at the largest value when it would overflow.
fn scale_by_ten(digits: i128, exponent: i32) -> i128 {
    let step = 10_i128.checked_pow(exponent.unsigned_abs());
    match (exponent >= 0, step) {
        (true, Some(step)) => digits.checked_mul(step).unwrap_or(Quantity::MAX.milli),
        (true, None) if digits == 0 => 0,
        (true, None) => Quantity::MAX.milli,
        (false, Some(step)) => digits.div_euclid(step) + i128::from(digits.rem_euclid(step) != 0),
        (false, None) => i128::from(digits != 0),
    }
}

/// 256 TiB, or 281 billion cores: more than any Node has, and small enough that the sum over
/// 30,000 Pods is exact. A sum that saturated would come out too small after the largest Pod left.
const VALUE_MAX: i64 = 1 << 48;

fn clamp(value: i128) -> i64 {
    i64::try_from(value)
        .unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
        .clamp(-VALUE_MAX, VALUE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn milli(text: &str) -> i64 {
        text.parse::<Quantity>().unwrap().milli_value()
    }

    fn value(text: &str) -> i64 {
        text.parse::<Quantity>().unwrap().value()
    }

    #[test]
    fn reads_every_suffix_kubernetes_writes() {
        assert_eq!(milli("100m"), 100);
        assert_eq!(milli("2"), 2000);
        assert_eq!(milli("1.5"), 1500);
        assert_eq!(milli("0.0001"), 1, "finer than a thousandth rounds up");
        assert_eq!(milli(".5"), 500);
        assert_eq!(value("1Ki"), 1024);
        assert_eq!(value("1.5Gi"), 1_610_612_736);
        assert_eq!(value("2M"), 2_000_000);
        assert_eq!(value("1e3"), 1000);
        assert_eq!(value("12E-1"), 2, "1.2 rounds up");
        assert_eq!(value("1T"), 1_000_000_000_000);
        assert_eq!(value("500m"), 1);
        assert_eq!(value("-1500m"), -1, "rounding up goes towards zero below it");
        assert_eq!(value("100n"), 1);
    }

    #[test]
    fn is_written_as_people_write_it() {
        for text in ["0", "1", "500m", "50Gi", "50G", "1536Mi", "3Ti", "100M", "1001", "-2Ki"] {
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), text);
        }
        assert_eq!("0.5Gi".parse::<Quantity>().unwrap().to_string(), "512Mi");
    }

    #[test]
    fn too_large_is_kept_as_the_largest() {
        assert_eq!(value("1e60"), VALUE_MAX);
        assert_eq!(value("9223372036854775807"), VALUE_MAX);
        assert_eq!(milli("16Ei"), VALUE_MAX);
        assert_eq!(value("-1e30"), -VALUE_MAX);
        assert_eq!(value("0e60"), 0);
    }

    #[test]
    fn steps_are_counted_from_where_they_begin() {
        let step = |of: &str, from: &str, step: &str| {
            let [of, from, step] = [of, from, step].map(|text| text.parse::<Quantity>().unwrap());
            of.rounded_up_to_step(from, step).to_string()
        };
        assert_eq!(step("5", "2", "4"), "6");
        assert_eq!(step("6", "2", "4"), "6");
        assert_eq!(step("1", "2", "4"), "2");
        assert_eq!(step("2500m", "2", "1"), "3");
        assert_eq!(step("3Pi", "1Pi", "1Pi"), "3Pi", "no limit of 256 Ti");
        assert_eq!(step("7", "2", "0"), "7", "no step at all");
    }

    #[test]
    fn refuses_what_is_no_number() {
        for bad in ["", "m", "1.2.3", "1 Gi", "1gi", "Ki", "--1", "1e", "0x10", "NaN", "."] {
            assert!(bad.parse::<Quantity>().is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn never_panics_on_near_misses(text in "[-+]?[0-9.]{0,30}[eEnumkKMGTPi]{0,2}[-+0-9]{0,6}") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn what_is_written_reads_the_same(milli in i64::MIN..i64::MAX) {
            let quantity = Quantity::from_milli(milli);
            prop_assert_eq!(quantity.to_string().parse::<Quantity>().unwrap(), quantity);
        }

        #[test]
        fn whole_numbers_are_exact(n in 0_i64..200_000_000_000_000) {
            prop_assert_eq!(value(&n.to_string()), n);
        }
    }
}
