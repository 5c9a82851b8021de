//! What expressions and devices are made of. Most values are at the border of something.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Text,
    Version,
}

pub const DRIVER: &str = "gpu.example.com";
pub const DOMAINS: [&str; 4] = [DRIVER, "net.example.org", "none.example.org", ""];

pub const ATTRIBUTES: [(&str, Kind); 10] = [
    ("cores", Kind::Int),
    ("firmware", Kind::Version),
    ("healthy", Kind::Bool),
    ("index", Kind::Int),
    ("model", Kind::Text),
    ("serial", Kind::Text),
    ("net.example.org/shared", Kind::Bool),
    ("net.example.org/speed", Kind::Int),
    ("net.example.org/switch", Kind::Text),
    ("net.example.org/version", Kind::Version),
];
pub const CAPACITIES: [&str; 4] = ["bandwidth", "memory", "net.example.org/lanes", "slots"];
pub const MISSING: [&str; 3] = ["nope", "Cores", "driver"];

pub const INTS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "8",
    "16",
    "100",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "4294967296",
];
pub const UINTS: [&str; 7] =
    ["0u", "1u", "2u", "8u", "9007199254740993u", "9223372036854775808u", "18446744073709551615u"];
pub const DOUBLES: [&str; 13] = [
    "0.0",
    "-0.0",
    "1.0",
    "2.0",
    "8.0",
    "1.5",
    "-1.0",
    "1e-5",
    "9007199254740992.0",
    "9223372036854775807.0",
    "1e21",
    "1e308",
    "double('NaN')",
];
pub const STRINGS: [&str; 18] = [
    "",
    "a",
    "A100",
    "a100-sxm",
    "Ärger µ",
    "日本語",
    "x😀y😀",
    "e\u{301}a",
    "ſK",
    "1.2.3",
    "v1.2",
    "10Gi",
    "true",
    "7",
    "-7",
    "a,b,,c",
    " tab\t \u{a0}",
    "aaaa",
];
pub const QUANTITIES: [&str; 26] = [
    "0",
    "1",
    "-1",
    "1k",
    "1Ki",
    "1024",
    "1.5Gi",
    "1610612736",
    "40Gi",
    "40960Mi",
    "0.1",
    "100m",
    "1n",
    "0.5n",
    "1e3",
    "1E",
    "1000P",
    "7Ei",
    "9Ei",
    "9223372036854775807",
    "9223372036854775808",
    "12345678901234567890",
    "1e25",
    "-1.5Ki",
    "0.000000001",
    "1.50",
];
pub const ODD_QUANTITIES: [&str; 12] =
    ["", "-", ".", "+5", "1.2.3", "1 Gi", "1gi", "0x1", "1e", "1K", "１", "1ee3"];
pub const VERSIONS: [&str; 14] = [
    "0.0.0",
    "1.0.0",
    "1.2.3",
    "1.10.0",
    "1.9.0",
    "1.10.0-rc.1",
    "1.10.0-rc.2",
    "1.10.0-rc.10+build",
    "1.10.0+build.7",
    "2.0.0-alpha.beta",
    "2.0.0-alpha.1",
    "2.0.0--",
    "18446744073709551615.0.0",
    "1.0.0-0a",
];
pub const ODD_VERSIONS: [&str; 17] = [
    "",
    "v",
    "v1",
    "v1.2",
    "vv1.2.3",
    "01.2.3",
    "1.02.0003",
    "1.2-rc",
    "1.2.3-01",
    "1.2.3-",
    "1.2.3+",
    "1.2.3.4",
    "1..2",
    "00",
    "1.2.-3",
    " 1.2.3",
    "18446744073709551616.0.0",
];
pub const PATTERNS: [&str; 14] = [
    "",
    "^a",
    "[0-9]+",
    "a|b",
    ".*",
    "^.$",
    "(?i)a",
    "\\\\d+\\\\.\\\\d",
    "\\\\p{L}+",
    "a{2}",
    "\\\\bb",
    "(",
    "[[:alpha:]]+$",
    "\\\\S",
];

/// A string literal.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
