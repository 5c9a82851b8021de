//! Numbers that a daemon measured. A broken sensor must not break the reader, so what is not a
//! usable number reads as the safe side: no bandwidth, or no reading.

use serde::{Deserialize, Deserializer};

/// The highest rate of errors that means anything: half of the bits wrong is pure chance.
const BER_MAX: f64 = 0.5;

#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Number(f64),
    // Some encoders write NaN and Infinity as text.
    Text(String),
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    match Option::<Raw>::deserialize(from)? {
        None => Ok(None),
        Some(Raw::Number(number)) => Ok(Some(number).filter(|it| it.is_finite())),
        Some(Raw::Text(text)) => match text.parse::<f64>() {
            Ok(number) if !number.is_finite() => Ok(None),
            _ => Err(serde::de::Error::custom(format!("{text:?} is not a number"))),
        },
    }
}

/// An amount of bandwidth: rounded to a thousandth; NaN, infinite, negative and absent count as 0.
pub(crate) fn amount<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(number(from)?.map_or(0.0, |it| (it.max(0.0) * 1000.0).round() / 1000.0))
}

/// A reading that may be missing.
pub(crate) fn signal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    number(from)
}

/// A rate of bit errors. An impossible one is no reading: 0 would call a broken path perfect.
pub(crate) fn ber<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(number(from)?.filter(|it| (0.0..=BER_MAX).contains(it)))
}

/// A count: negative, fractional and absent ones are cut to what a counter can show.
pub(crate) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    // The cast saturates, which is what is wanted.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Ok(number(from)?.map_or(0, |it| it.max(0.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Sample {
        #[serde(default, deserialize_with = "amount")]
        gbps: f64,
        #[serde(default, deserialize_with = "ber")]
        ber: Option<f64>,
        #[serde(default, deserialize_with = "count")]
        pages: u64,
    }

    fn read(text: &str) -> Result<Sample, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn good_readings_are_kept() {
        let sample = read(r#"{"gbps": 412.34567, "ber": 1e-13, "pages": 7}"#).unwrap();
        assert_eq!(sample, Sample { gbps: 412.346, ber: Some(1e-13), pages: 7 });
    }

    #[test]
    fn unusable_readings_fall_to_the_safe_side() {
        for text in [
            "{}",
            r#"{"gbps": null, "ber": null, "pages": null}"#,
            r#"{"gbps": "NaN", "ber": "NaN", "pages": "-inf"}"#,
            r#"{"gbps": "Infinity", "ber": 0.7, "pages": -1}"#,
            r#"{"gbps": -5, "ber": -1, "pages": -5.5}"#,
        ] {
            assert_eq!(read(text).unwrap(), Sample { gbps: 0.0, ber: None, pages: 0 }, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        for text in
            [r#"{"gbps": "fast"}"#, r#"{"gbps": {}}"#, r#"{"gbps": NaN}"#, r#"{"gbps": 1e999}"#]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
