//! Quantities as expressions see them: exact, and read as Kubernetes reads them.
//!
//! `model::Quantity` counts in thousandths and stops at what a Node can have, which is enough for sums but not for
//! equality.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

/// unscaled × 10^exponent.
#[derive(Debug)]
pub(crate) struct Quantity {
    unscaled: i128,
    exponent: i32,
    /// Kubernetes holds it in its slow form, which is never an integer. Fractions of binary units have it, `1.5Gi` too.
    slow: AtomicBool,
    /// It was added up. cel-go has another Go type for those, which no quantity is equal to.
    pub is_sum: bool,
}

/// Digits that always fit the fast form.
const FAST_DIGITS_MAX: i64 = 18;
const NANO: i64 = -9;
/// Exponents beyond are no quantities of anything, and would make comparisons slow.
const EXPONENT_MAX: i64 = 1_000_000;

const TOO_LARGE: &str = "quantity has more digits than can be held";
const MALFORMED: &str = "quantities must match the regular expression \
                         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NO_SUFFIX: &str = "unable to parse quantity's suffix";

struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, rest) = digits(unsigned.trim_start_matches('0'));
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let letters = suffix.bytes().take_while(|it| b"eEinumkKMGTP".contains(it)).count();
    let (_, exponent) = suffix.split_at(letters);
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !digits(exponent).1.is_empty() {
        return Err(MALFORMED);
    }
    Ok(Parts { negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix })
}

enum Unit {
    Decimal(i64),
    /// The exponent of 2.
    Binary(u32),
}

fn unit(suffix: &str) -> Option<Unit> {
    Some(match suffix {
        "n" => Unit::Decimal(-9),
        "u" => Unit::Decimal(-6),
        "m" => Unit::Decimal(-3),
        "" => Unit::Decimal(0),
        "k" => Unit::Decimal(3),
        "M" => Unit::Decimal(6),
        "G" => Unit::Decimal(9),
        "T" => Unit::Decimal(12),
        "P" => Unit::Decimal(15),
        "E" => Unit::Decimal(18),
        "Ki" => Unit::Binary(10),
        "Mi" => Unit::Binary(20),
        "Gi" => Unit::Binary(30),
        "Ti" => Unit::Binary(40),
        "Pi" => Unit::Binary(50),
        "Ei" => Unit::Binary(60),
        _ => Unit::Decimal(suffix.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

impl Quantity {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(MALFORMED);
        }
        let parts = split(text)?;
        let unit = unit(parts.suffix).ok_or(NO_SUFFIX)?;
        let number = format!("{}{}", parts.whole, parts.fraction);
        let magnitude: i128 = number.parse().map_err(|_| TOO_LARGE)?;
        let fraction_digits = count(parts.fraction);
        let parsed = match unit {
            Unit::Decimal(exponent) if exponent.abs() > EXPONENT_MAX => return Err(TOO_LARGE),
            Unit::Decimal(exponent) => {
                let fast = count(&number) <= FAST_DIGITS_MAX && exponent - fraction_digits >= NANO;
                decimal(magnitude, exponent - fraction_digits, fast)
            }
            Unit::Binary(shift) => binary(magnitude, fraction_digits, shift, count(parts.whole)),
        };
        let mut parsed = parsed.ok_or(TOO_LARGE)?;
        if parts.negative {
            parsed.unscaled = -parsed.unscaled;
        }
        Ok(parsed)
    }

    fn new(unscaled: i128, exponent: i32, slow: bool) -> Self {
        Self { unscaled, exponent, slow: slow.into(), is_sum: false }
    }

    pub fn from_int(int: i64) -> Self {
        Self::new(int.into(), 0, false)
    }

    fn is_slow(&self) -> bool {
        self.slow.load(Memory::Relaxed)
    }

    /// The order of two, of which kube-scheduler turns the first into the form of the second.
    pub fn compare_to(&self, other: &Self) -> Ordering {
        if other.is_slow() {
            self.slow.store(true, Memory::Relaxed);
        }
        self.cmp(other)
    }

    pub fn sign(&self) -> i64 {
        i64::try_from(self.unscaled.signum()).unwrap_or_default()
    }

    /// Only if Kubernetes holds it as an integer.
    pub fn as_integer(&self) -> Option<i64> {
        if self.is_slow() || self.exponent < 0 {
            return None;
        }
        i64::try_from(self.scaled_to(0)?).ok()
    }

    #[expect(clippy::cast_precision_loss, reason = "it is asked for approximately")]
    pub fn as_approximate_double(&self) -> f64 {
        let base = self.unscaled as f64;
        if self.exponent == 0 { base } else { base * pow_10(self.exponent) }
    }

    /// `None` if the sum has more digits than can be held.
    pub fn add(&self, other: &Self) -> Option<Self> {
        self.add_fast(other.unscaled, other).or_else(|| self.add_slow(other.unscaled, other))
    }

    pub fn sub(&self, other: &Self) -> Option<Self> {
        // The lowest integer is its own negative, in Kubernetes too.
        let negated = i64::try_from(other.unscaled).ok().map(|it| i128::from(it.wrapping_neg()));
        let fast = negated.and_then(|it| self.add_fast(it, other));
        fast.or_else(|| self.add_slow(-other.unscaled, other))
    }

    /// If nothing on the way is more than an integer can hold.
    fn add_fast(&self, unscaled: i128, other: &Self) -> Option<Self> {
        if self.is_slow() || other.is_slow() {
            return None;
        }
        let sum =
            |unscaled, exponent| Self { is_sum: true, ..Self::new(unscaled, exponent, false) };
        if unscaled == 0 {
            return Some(sum(self.unscaled, self.exponent));
        }
        if self.unscaled == 0 {
            return Some(sum(unscaled, other.exponent));
        }
        let exponent = self.exponent.min(other.exponent);
        let small = |it: i128| i64::try_from(it).is_ok();
        let one = self.scaled_to(exponent).filter(|it| small(*it))?;
        let two = Self::new(unscaled, other.exponent, false);
        let two = two.scaled_to(exponent).filter(|it| small(*it))?;
        one.checked_add(two).filter(|it| small(*it)).map(|it| sum(it, exponent))
    }

    fn add_slow(&self, unscaled: i128, other: &Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let two = Self::new(unscaled, other.exponent, true).scaled_to(exponent)?;
        let sum = self.scaled_to(exponent)?.checked_add(two)?;
        Some(Self { is_sum: true, ..Self::new(sum, exponent, true) })
    }

    fn scaled_to(&self, exponent: i32) -> Option<i128> {
        if self.unscaled == 0 {
            return Some(0);
        }
        let step = u32::try_from(self.exponent.checked_sub(exponent)?).ok()?;
        self.unscaled.checked_mul(10_i128.checked_pow(step)?)
    }
}

fn count(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

fn decimal(magnitude: i128, exponent: i64, fast: bool) -> Option<Quantity> {
    let exponent = i32::try_from(exponent).ok()?;
    if fast {
        return Some(Quantity::new(magnitude, exponent, false));
    }
    nano_decimal(magnitude, exponent)
}

/// The slow form has nine decimals, the last one rounded away from zero.
fn nano_decimal(magnitude: i128, exponent: i32) -> Option<Quantity> {
    if magnitude == 0 {
        return Some(Quantity::new(0, exponent, true));
    }
    let shift = exponent.checked_add(9)?;
    let step = 10_i128.checked_pow(shift.unsigned_abs());
    let unscaled = match step {
        Some(step) if shift >= 0 => magnitude.checked_mul(step)?,
        Some(step) => magnitude / step + i128::from(magnitude % step != 0),
        None if shift < 0 => 1,
        None => return None,
    };
    Some(Quantity::new(unscaled, -9, true))
}

/// Only few digits without a fraction have the fast form, and the slow one stops at the largest integer.
fn binary(magnitude: i128, fraction: i64, shift: u32, whole_digits: i64) -> Option<Quantity> {
    let multiplied = magnitude.checked_mul(1 << shift)?;
    let room = 15 - whole_digits - i64::from(shift) * 3 / 10 - 1;
    if fraction == 0 && room >= 0 && i64::try_from(multiplied).is_ok() {
        return Some(Quantity::new(multiplied, 0, false));
    }
    let slow = nano_decimal(multiplied, i32::try_from(-fraction).ok()?)?;
    let max = Quantity::new(i64::MAX.into(), 0, true);
    Some(if slow > max { max } else { slow })
}

fn pow_10(exponent: i32) -> f64 {
    // The nearest double, which repeated multiplication would miss.
    format!("1e{exponent}").parse().unwrap_or(f64::INFINITY)
}

impl Clone for Quantity {
    fn clone(&self) -> Self {
        Self {
            unscaled: self.unscaled,
            exponent: self.exponent,
            slow: self.is_slow().into(),
            is_sum: self.is_sum,
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.unscaled.signum().cmp(&other.unscaled.signum());
        if signs.is_ne() || self.unscaled == 0 {
            return signs;
        }
        let exponent = self.exponent.min(other.exponent);
        match (self.scaled_to(exponent), other.scaled_to(exponent)) {
            (Some(one), Some(two)) => one.cmp(&two),
            // One of them has more digits than can be held, so it is further from zero.
            (None, _) => self.unscaled.cmp(&0),
            (_, None) => 0.cmp(&other.unscaled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn the_same_amount_is_equal_whatever_its_unit() {
        for (one, two) in [
            ("1Ki", "1024"),
            ("1.5Gi", "1610612736"),
            ("100m", "0.1"),
            ("1e3", "1k"),
            ("0.0000000001", "1n"),
            ("1e30", "1000e27"),
            ("9Ei", "9223372036854775807"),
            ("-", "0"),
            (".", "0"),
        ] {
            assert_eq!(quantity(one), quantity(two), "{one} {two}");
        }
    }

    #[test]
    fn order_is_exact() {
        for (less, more) in [
            ("1Gi", "1073741825"),
            ("9223372036854775806", "9223372036854775807"),
            ("-1", "-1m"),
            ("1e-9", "1e300000"),
            ("-1e300000", "1"),
            ("1e20", "1e21"),
        ] {
            assert!(quantity(less) < quantity(more), "{less} {more}");
            assert!(quantity(more) > quantity(less), "{less} {more}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "1gi", "1 Gi", " 1", "1.2.3", "0x10", "1e", "1ee3", "１"] {
            assert!(Quantity::parse(text).is_err() || text == "Gi", "{text}");
        }
    }

    #[test]
    fn a_fraction_of_a_binary_unit_is_no_integer() {
        assert_eq!(quantity("1.5Gi").as_integer(), None);
        assert_eq!(quantity("2Gi").as_integer(), Some(2 << 30));
        assert_eq!(quantity("1k").as_integer(), Some(1000));
        assert_eq!(quantity("1m").as_integer(), None);
        assert_eq!(quantity("1e19").as_integer(), None);
    }

    #[test]
    fn sums_are_exact_or_refused() {
        assert_eq!(quantity("1Gi").add(&quantity("1m")).unwrap(), quantity("1073741824.001"));
        assert_eq!(quantity("1").sub(&quantity("2")).unwrap(), quantity("-1"));
        assert!(quantity("1e100").add(&quantity("1")).is_none());
    }
}
