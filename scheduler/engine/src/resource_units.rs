//! Amounts of a Node's resources, as people write them.

/// What a resource is counted in.
pub(crate) enum Unit<'a> {
    Cores,
    Bytes,
    Pieces(&'a str),
}

impl<'a> Unit<'a> {
    pub fn of(resource: &'a str) -> Self {
        match resource {
            "cpu" => Self::Cores,
            "memory" | "ephemeral-storage" => Self::Bytes,
            pages if pages.starts_with("hugepages-") => Self::Bytes,
            name => Self::Pieces(name),
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Cores => "cores",
            Self::Bytes => "bytes",
            Self::Pieces(name) => name,
        }
    }

    pub fn milli(&self, amount: i64) -> u64 {
        let amount = u64::try_from(amount).unwrap_or(0);
        match self {
            Self::Cores => amount,
            Self::Bytes | Self::Pieces(_) => amount.saturating_mul(1000),
        }
    }

    pub fn tell(&self, amount: i64) -> String {
        match self {
            Self::Cores => format!("{} cores", decimal(amount, 1000)),
            Self::Bytes => {
                let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
                let fitting = units.iter().find(|(bits, _)| amount >= 1 << bits);
                fitting.map_or_else(
                    || format!("{amount} bytes"),
                    |(bits, unit)| format!("{}{unit}", decimal(amount, 1 << bits)),
                )
            }
            Self::Pieces(_) => amount.to_string(),
        }
    }
}

/// At most three digits after the point, and none that say nothing.
fn decimal(amount: i64, one: i64) -> String {
    let milli = i128::from(amount) * 1000 / i128::from(one.max(1));
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_as_people_write_them() {
        assert_eq!(Unit::of("cpu").tell(3950), "3.95 cores");
        assert_eq!(Unit::of("memory").tell(3 << 29), "1.5Gi");
        assert_eq!(Unit::of("memory").tell(12), "12 bytes");
        assert_eq!(Unit::of("example.com/gpu").tell(8), "8");
        assert_eq!(Unit::of("memory").milli(i64::MAX), u64::MAX, "no figure wraps");
    }
}
