//! Quantities in the form in which the real server shows them: `1000m` is `1`, and `1024Ki` is `1Mi`.

/// The least amount that counts; smaller ones are rounded up to it.
const NANO_EXPONENT: i32 = -9;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The canonical form; `None` for what is not a quantity, or too large or fine to be told here.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !"+-.".contains(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if let Some(step) = BINARY.iter().position(|it| *it == suffix).filter(|step| *step > 0) {
        let factor = 1024_i128.checked_pow(u32::try_from(step).ok()?)?;
        return binary(nanos(number, 0)?.checked_mul(factor)?);
    }
    let exponent = match DECIMAL.iter().find(|(known, _)| *known == suffix) {
        Some((_, exponent)) => *exponent,
        // Such a quantity keeps its form, in another canon.
        None => return None,
    };
    decimal(nanos(number, exponent)?)
}

/// A decimal number times a power of ten, in units of a billionth.
fn nanos(number: &str, exponent: i32) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent - NANO_EXPONENT - i32::try_from(fraction.len()).ok()?;
    digits.checked_mul(10_i128.checked_pow(u32::try_from(shift).ok()?)?)
}

/// With the largest suffix that leaves no fraction.
fn decimal(nanos: i128) -> Option<String> {
    if nanos == 0 {
        return Some("0".to_owned());
    }
    DECIMAL.iter().rev().find_map(|(suffix, exponent)| {
        let unit = 10_i128.pow(u32::try_from(exponent - NANO_EXPONENT).ok()?);
        (nanos % unit == 0).then(|| format!("{}{suffix}", nanos / unit))
    })
}

/// The same in powers of 1024. What is small or has a fraction is shown as a decimal number.
fn binary(nanos: i128) -> Option<String> {
    let one = 10_i128.pow(9);
    if nanos % one != 0 || nanos.abs() < 1024 * one {
        return decimal(nanos);
    }
    let (mut amount, mut step) = (nanos / one, 0);
    while amount % 1024 == 0 && step + 1 < BINARY.len() {
        amount /= 1024;
        step += 1;
    }
    Some(format!("{amount}{}", BINARY[step]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (given, shown) in [
            ("1000m", "1"),
            ("4", "4"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("2000", "2k"),
            ("0", "0"),
            ("0Gi", "0"),
            ("1024Ki", "1Mi"),
            ("1.5Gi", "1536Mi"),
            ("512Ki", "512Ki"),
            ("0.5Ki", "512"),
            ("-1000m", "-1"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(shown), "{given}");
        }
        for odd in ["", "x", "1e3", "1KiB", "--1", "0.1n"] {
            assert_eq!(canonical(odd), None, "{odd}");
        }
    }
}
