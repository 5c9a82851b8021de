//! The same figure of several rounds.

use std::fmt;

use serde::Serialize;

/// How far rounds lie apart: a median alone says nothing about that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub fn over(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().filter(|it| it.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { min, median, max })
    }
}

/// With as many digits after the point as the formatter says.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(1);
        let Self { min, median, max } = self;
        write!(f, "{min:.digits$} – {median:.digits$} – {max:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        let spread = Spread::over([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(format!("{spread:.0}"), "1 – 2 – 3");
        let spread = Spread::over([4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(format!("{spread}"), "1.0 – 2.5 – 4.0");
        assert_eq!(Spread::over([f64::NAN]), None);
    }
}
