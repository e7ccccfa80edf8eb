//! The plot: each figure as a share of its limit, on a logarithmic scale, so that a tenth and ten times are as far from the limit.

use std::fmt::Write as _;

use super::{Figure, amount};

const WIDTH: f64 = 860.0;
/// Where the scale begins and ends.
const LEFT: f64 = 130.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 58.0;
const ROW: f64 = 26.0;
/// Powers of ten at both ends of the scale.
const ENDS: (f64, f64) = (-2.0, 1.0);

/// Colours for a light page and for a dark one; a picture in a page follows the reader's choice by itself.
const STYLE: &str = "\
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}.name{font-family:ui-monospace,monospace;font-size:12px}\
.back{fill:#fff}.grid{stroke:#d0d7de}.limit{stroke:#57606a;stroke-width:1.5;stroke-dasharray:4 3}.stem{stroke-width:3}\
.good{fill:#1a7f37;stroke:#1a7f37}.over{fill:#cf222e;stroke:#cf222e}.tenth{fill:#fff;stroke-width:1.5}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.back{fill:#0d1117}.grid{stroke:#30363d}.limit{stroke:#9198a1}\
.good{fill:#3fb950;stroke:#3fb950}.over{fill:#f85149;stroke:#f85149}.tenth{fill:#0d1117}}";

pub(super) fn draw(figures: &[Figure]) -> String {
    let bottom = TOP + ROW * figures.len() as f64;
    let height = bottom + 16.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"t\">\n<title id=\"t\">What the \
         runtime costs, as a share of the limits</title>\n<style>{STYLE}</style>\n<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    legend(&mut out);
    for (share, label) in [(0.01, "1 %"), (0.1, "10 %"), (1.0, "limit"), (10.0, "10 ×")] {
        let x = place(share);
        let class = if share == 1.0 { "limit" } else { "grid" };
        writeln!(out, "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>").ok();
        writeln!(out, "<text class=\"small\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>", TOP - 8.0).ok();
    }
    for (n, figure) in figures.iter().enumerate() {
        row(&mut out, figure, TOP + ROW * (n as f64 + 0.5));
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String) {
    writeln!(
        out,
        "<circle class=\"good\" cx=\"{}\" cy=\"16\" r=\"5\"/><text class=\"small\" x=\"{}\" y=\"20\">at its size</text>",
        LEFT,
        LEFT + 10.0
    )
    .ok();
    let x = LEFT + 90.0;
    writeln!(
        out,
        "<circle class=\"good tenth\" cx=\"{x}\" cy=\"16\" r=\"4\"/><text class=\"small\" x=\"{}\" y=\"20\">at a tenth of it</text>",
        x + 10.0
    )
    .ok();
    let x = x + 120.0;
    writeln!(
        out,
        "<circle class=\"over\" cx=\"{x}\" cy=\"16\" r=\"5\"/><text class=\"small\" x=\"{}\" y=\"20\">over its limit</text>",
        x + 10.0
    )
    .ok();
}

fn row(out: &mut String, figure: &Figure, y: f64) {
    let class = |value: f64| if value > figure.limit { "over" } else { "good" };
    let x = place(figure.value / figure.limit);
    let (limit, end) = (place(1.0), y + 4.0);
    writeln!(out, "<text class=\"name\" x=\"{}\" y=\"{end}\" text-anchor=\"end\">{}</text>", LEFT - 12.0, figure.name).ok();
    writeln!(out, "<line class=\"stem {}\" x1=\"{limit:.1}\" y1=\"{y}\" x2=\"{x:.1}\" y2=\"{y}\" opacity=\"0.35\"/>", class(figure.value))
        .ok();
    writeln!(out, "<circle class=\"{}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"5\"/>", class(figure.value)).ok();
    if let Some(tenth) = figure.tenth {
        writeln!(out, "<circle class=\"{} tenth\" cx=\"{:.1}\" cy=\"{y}\" r=\"4\"/>", class(tenth), place(tenth / figure.limit)).ok();
    }
    let said = format!("{} of {}", amount(figure.value, figure.unit), amount(figure.limit, figure.unit));
    writeln!(out, "<text x=\"{}\" y=\"{end}\">{said}</text>", RIGHT + 24.0).ok();
}

/// Where a share of the limit stands. What is beyond the scale stands at its end; the words beside it say how much it is.
fn place(share: f64) -> f64 {
    let (least, most) = ENDS;
    let at = share.max(f64::MIN_POSITIVE).log10().clamp(least, most);
    LEFT + (RIGHT - LEFT) * (at - least) / (most - least)
}

#[cfg(test)]
mod tests {
    use super::{LEFT, RIGHT, place};

    #[test]
    fn ten_times_and_a_tenth_are_as_far_from_the_limit() {
        assert!((place(10.0) - place(1.0) - (place(1.0) - place(0.1))).abs() < 1e-9);
        assert!((place(0.0) - LEFT).abs() < 1e-9 && (place(1e9) - RIGHT).abs() < 1e-9);
    }
}
