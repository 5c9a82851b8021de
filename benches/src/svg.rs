//! Pictures without a library: a few lines, bars and words.

use std::fmt::Write as _;

pub const FONT: &str = "font-family=\"system-ui, sans-serif\"";

pub fn text(svg: &mut String, at: (f64, f64), size: f64, colour: &str, anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let (x, y) = at;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" \
         text-anchor=\"{anchor}\">{words}</text>"
    );
}

pub fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}
