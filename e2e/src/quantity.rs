//! Kubernetes quantities, read independently of the scheduler's own reading.

/// The amount in thousandths, rounded up, or `None` when it is no quantity.
///
/// ```
/// assert_eq!(e2e::quantity::milli("1500m"), Some(1_500));
/// assert_eq!(e2e::quantity::milli("64Mi"), Some(64 * 1024 * 1024 * 1000));
/// ```
pub fn milli(text: &str) -> Option<i128> {
    let number_end =
        text.find(|c: char| !(c.is_ascii_digit() || ".+-".contains(c))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(number_end);
    let (numerator, denominator) = scale(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = denominator.checked_mul(10_i128.checked_pow(fraction.len().try_into().ok()?)?)?;
    let thousandths = digits.checked_mul(numerator)?.checked_mul(1000)?;
    let rounded_down = thousandths.div_euclid(divisor);
    Some(rounded_down + i128::from(thousandths.rem_euclid(divisor) != 0))
}

/// A suffix as a fraction.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((1 << (10 * power), 1));
    let decimal = |power: u32| Some((10_i128.checked_pow(power)?, 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_i128.checked_pow(power.unsigned_abs())?;
            Some(if power < 0 { (1, factor) } else { (factor, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let cases = [
            ("0", 0),
            ("2", 2_000),
            ("0.5", 500),
            ("100m", 100),
            ("1.5Gi", 1_610_612_736_000),
            ("1e3", 1_000_000),
            ("1E3", 1_000_000),
            ("12e-1", 1_200),
            ("1k", 1_000_000),
            ("1E", 1_000_000_000_000_000_000_000),
        ];
        for (text, expected) in cases {
            assert_eq!(milli(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn amounts_are_rounded_up() {
        assert_eq!(milli("1u"), Some(1));
        assert_eq!(milli("1500u"), Some(2));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "m", "1x", "lots", "1.2.3"] {
            assert_eq!(milli(text), None, "{text}");
        }
    }
}
