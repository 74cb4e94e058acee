//! What a line of a chart shows, and its colour: one for each meaning in all charts, readable on light and on dark.

use plotters::style::RGBColor;

/// What a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Mapped,
    Owned,
    Ideal,
    Running,
    Slowest,
    Tail,
    Median,
}

impl Mark {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mapped => "mapped",
            Self::Owned => "owned",
            Self::Ideal => "ideal",
            Self::Running => "running",
            Self::Slowest => "max",
            Self::Tail => "p99",
            Self::Median => "p50",
        }
    }

    pub(super) fn color(self) -> RGBColor {
        match self {
            Self::Mapped => RGBColor(0xe6, 0x9f, 0x00),
            Self::Owned => RGBColor(0x2f, 0x80, 0xc9),
            Self::Ideal => RGBColor(0x12, 0xa1, 0x7a),
            Self::Running => RGBColor(0xc0, 0x68, 0x98),
            Self::Slowest => RGBColor(0xd8, 0x5b, 0x2a),
            Self::Tail => RGBColor(0x9a, 0x7b, 0x2d),
            Self::Median => RGBColor(0x7a, 0x72, 0xd0),
        }
    }
}
