//! Amounts of reserved bandwidth, counted in whole thousandths so that sums are exact.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bandwidth in thousandths of its unit: Gbps of a Corridor, GB/s of a MemoryBundle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Amount {
    milli: u64,
}

impl Amount {
    pub const ZERO: Self = Self { milli: 0 };
    pub const MAX: Self = Self { milli: u64::MAX };
    /// The most that one Pod can ask for. A million such amounts still add up exactly.
    pub const ASK_MAX: Self = Self { milli: 9_999_999_999 };

    pub const fn from_milli(milli: u64) -> Self {
        Self { milli }
    }

    pub const fn from_whole(whole: u32) -> Self {
        Self { milli: whole as u64 * 1000 }
    }

    /// A number of a status field, rounded to the nearest thousandth.
    /// NaN and negative numbers count as 0: a sensor's nonsense promises nothing.
    pub fn from_measured(measured: f64) -> Self {
        let milli = (measured * 1000.0).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float-to-integer cast saturates, and NaN becomes 0"
        )]
        Self { milli: milli.max(0.0) as u64 }
    }

    pub const fn milli(self) -> u64 {
        self.milli
    }

    pub const fn is_zero(self) -> bool {
        self.milli == 0
    }

    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self { milli: self.milli.saturating_add(other.milli) }
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { milli: self.milli.saturating_sub(other.milli) }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.milli / 1000, self.milli % 1000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let decimals = format!("{rest:03}");
        write!(f, "{whole}.{}", decimals.trim_end_matches('0'))
    }
}

/// Why the amount in a Pod's annotation cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    Malformed,
    Zero,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "expected a number like 40 or 2.5, with at most 7 digits before and 3 after the point"
            }
            Self::Zero => "must be greater than 0; leave it out to reserve nothing",
        })
    }
}

impl std::error::Error for AmountError {}

const WHOLE_DIGITS_MAX: usize = 7;
const DECIMALS_MAX: usize = 3;

/// The amount of an annotation: `^[0-9]{1,7}(\.[0-9]{1,3})?$`, greater than 0.
impl FromStr for Amount {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Self, AmountError> {
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (text, None),
        };
        let whole = digits(whole, WHOLE_DIGITS_MAX)?;
        let milli = match decimals {
            None => 0,
            Some(text) => {
                let missing = DECIMALS_MAX.saturating_sub(text.len());
                digits(text, DECIMALS_MAX)? * 10_u64.pow(u32::try_from(missing).unwrap_or(0))
            }
        };
        match whole * 1000 + milli {
            0 => Err(AmountError::Zero),
            milli => Ok(Self { milli }),
        }
    }
}

fn digits(text: &str, len_max: usize) -> Result<u64, AmountError> {
    let valid = (1..=len_max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !valid {
        return Err(AmountError::Malformed);
    }
    text.parse().map_err(|_| AmountError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_whole_and_broken_amounts() {
        assert_eq!("40".parse(), Ok(Amount::from_whole(40)));
        assert_eq!("2.5".parse(), Ok(Amount::from_milli(2500)));
        assert_eq!("0.001".parse(), Ok(Amount::from_milli(1)));
        assert_eq!("0.050".parse(), Ok(Amount::from_milli(50)));
        assert_eq!("9999999.999".parse(), Ok(Amount::from_milli(9_999_999_999)));
    }

    #[test]
    fn refuses_everything_else() {
        for zero in ["0", "0.0", "0000000.000"] {
            assert_eq!(zero.parse::<Amount>(), Err(AmountError::Zero), "{zero:?}");
        }
        for bad in
            ["", ".", "1.", ".5", "-1", "+1", "1e3", "10000000", "1.0000", " 1", "1 ", "NaN", "١"]
        {
            assert_eq!(bad.parse::<Amount>(), Err(AmountError::Malformed), "{bad:?}");
        }
    }

    #[test]
    fn measured_nonsense_promises_nothing() {
        assert_eq!(Amount::from_measured(f64::NAN), Amount::ZERO);
        assert_eq!(Amount::from_measured(-4.0), Amount::ZERO);
        assert_eq!(Amount::from_measured(99.9996), Amount::from_whole(100));
        assert_eq!(Amount::from_measured(f64::INFINITY).milli(), u64::MAX);
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(milli in 1_u64..10_000_000_000) {
            let amount = Amount::from_milli(milli);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<Amount>();
        }
    }
}
