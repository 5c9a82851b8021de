//! Amounts of bytes as people write them.

const UNITS: [(u32, &str); 5] = [(50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];

/// In binary units with at most three digits after the point: `1.5Gi`.
#[must_use]
pub fn binary(bytes: u64) -> String {
    let Some((bits, unit)) = UNITS.into_iter().find(|(bits, _)| bytes >> bits > 0) else {
        return bytes.to_string();
    };
    let milli = (u128::from(bytes) * 1000) >> bits;
    let text = format!("{}.{:03}", milli / 1000, milli % 1000);
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::binary;

    #[test]
    fn bytes_are_told_in_binary_units() {
        let told = [0, 1023, 1 << 10, 3 << 29, (1 << 34) + 1, 1 << 50, u64::MAX].map(binary);
        assert_eq!(told, ["0", "1023", "1Ki", "1.5Gi", "16Gi", "1Pi", "16383.999Pi"]);
    }
}
