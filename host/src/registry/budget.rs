//! Turns the text of a budget into a [`BudgetSpec`], and a spec into bytes once the machine is known.
//!
//! Pure: what the machine has comes from `machine` or from a backing's description.

use bytesize::ByteSize;
use std::fmt;
use std::str::FromStr;

/// The whole, in the unit that a [`Percent`] counts.
const WHOLE: u32 = 1_000_000;
/// How many digits a percentage may have after its point.
const FRACTION_DIGITS: usize = 4;
/// `Auto` leaves the `1 / AUTO_MARGIN`th part of the total to the program itself and to others.
const AUTO_MARGIN: u64 = 16;

/// What may be spent in one domain, as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum BudgetSpec {
    /// What is free, less a margin.
    #[default]
    Auto,
    /// So many bytes; 0 closes the domain.
    Bytes(u64),
    /// A part of the total.
    Percent(Percent),
}

/// A part of the whole: above 0%, at most 100%, in steps of 0.0001%.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent {
    /// 1. Between 1 and [`WHOLE`].
    millionths: u32,
}

/// A text or number that is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BudgetError {
    #[error("seen {seen:?}, wanted \"auto\", a size such as \"8 GiB\" or a percentage such as \"75%\"")]
    Unreadable { seen: String },
    #[error("seen {seen:?}, wanted a percentage above 0% and at most 100%, with up to 4 digits after the point")]
    Percentage { seen: String },
    #[error("seen {seen:?}, wanted less than 16 EiB")]
    TooLarge { seen: String },
    #[error("seen {seen}, wanted a number of bytes that is not negative")]
    Negative { seen: i64 },
}

impl BudgetSpec {
    /// A budget that was written as a number of bytes.
    pub(crate) fn from_integer(bytes: i64) -> Result<Self, BudgetError> {
        u64::try_from(bytes).map(Self::Bytes).map_err(|_| BudgetError::Negative { seen: bytes })
    }

    /// The budget in bytes of a domain that has `total_bytes`, of which `free_bytes` are free.
    ///
    /// `Auto` is what is free less a sixteenth of the total, but never less than half of what is free, so that a
    /// machine in use still gets a budget. A percentage is of the total, rounded down. Bytes are taken as they are,
    /// also above the total: the user may know of memory that is about to become free.
    pub(crate) fn resolve(&self, total_bytes: u64, free_bytes: u64) -> u64 {
        match self {
            Self::Auto => {
                let free_bytes = free_bytes.min(total_bytes);
                let margin = total_bytes.div_euclid(AUTO_MARGIN);
                free_bytes.saturating_sub(margin).max(free_bytes.div_euclid(2))
            }
            Self::Bytes(bytes) => *bytes,
            Self::Percent(percent) => percent.of(total_bytes),
        }
    }
}

impl Percent {
    /// This part of `bytes`, rounded down.
    fn of(self, bytes: u64) -> u64 {
        let part = u128::from(bytes).saturating_mul(u128::from(self.millionths)).div_euclid(u128::from(WHOLE));
        u64::try_from(part).unwrap_or(bytes) // by 1, never more than `bytes`
    }

    /// Reads the digits in front of a percent sign.
    fn parse(number: &str) -> Option<Self> {
        let (units, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(units) || !all_digits(fraction) || fraction.len() > FRACTION_DIGITS {
            return None;
        }
        let units = units.parse::<u32>().ok()?.checked_mul(WHOLE.div_euclid(100))?;
        let millionths = units.checked_add(format!("{fraction:0<FRACTION_DIGITS$}").parse().ok()?)?;
        (1..=WHOLE).contains(&millionths).then_some(Self { millionths })
    }
}

impl FromStr for BudgetSpec {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let seen = || text.to_owned();
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if let Some(number) = text.strip_suffix('%') {
            let percent = Percent::parse(number.trim_end());
            return percent.map(Self::Percent).ok_or_else(|| BudgetError::Percentage { seen: seen() });
        }
        match text.parse::<ByteSize>().map(|size| size.as_u64()) {
            Err(_) => Err(BudgetError::Unreadable { seen: seen() }),
            // The parser stops at the largest number instead of failing.
            Ok(u64::MAX) => Err(BudgetError::TooLarge { seen: seen() }),
            Ok(bytes) => Ok(Self::Bytes(bytes)),
        }
    }
}

/// Prints what [`FromStr`] reads back.
impl fmt::Display for BudgetSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Bytes(bytes) => write!(formatter, "{bytes} B"),
            Self::Percent(percent) => percent.fmt(formatter),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_unit = WHOLE.div_euclid(100);
        let fraction = format!("{:04}", self.millionths.rem_euclid(per_unit));
        let units = self.millionths.div_euclid(per_unit);
        match fraction.trim_end_matches('0') {
            "" => write!(formatter, "{units}%"),
            fraction => write!(formatter, "{units}.{fraction}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;

    fn percent(millionths: u32) -> BudgetSpec {
        BudgetSpec::Percent(Percent { millionths })
    }

    fn refusal(text: &str) -> String {
        text.parse::<BudgetSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_budget_is_auto_a_size_or_a_percentage() {
        let cases = [
            ("auto", BudgetSpec::Auto),
            ("8 GiB", BudgetSpec::Bytes(8 << 30)),
            ("512MB", BudgetSpec::Bytes(512_000_000)),
            ("1.5 KiB", BudgetSpec::Bytes(1536)),
            ("4096", BudgetSpec::Bytes(4096)),
            ("0", BudgetSpec::Bytes(0)),
            ("9007199254740993 B", BudgetSpec::Bytes(9_007_199_254_740_993)),
            ("75%", percent(750_000)),
            ("75 %", percent(750_000)),
            ("0.5%", percent(5_000)),
            ("0.0001%", percent(1)),
            ("100%", percent(WHOLE)),
        ];
        for (text, spec) in cases {
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
    }

    #[test]
    fn what_is_no_budget_is_refused() {
        for text in ["", "Auto", "8 GiBs", "-1 GiB", "+1 GiB", "8 GiB ", "nan", "inf", "1e3", ".", "half", "８ GiB"] {
            let wanted = "wanted \"auto\", a size such as \"8 GiB\" or a percentage such as \"75%\"";
            assert_eq!(refusal(text), format!("seen {text:?}, {wanted}"));
        }
    }

    #[test]
    fn a_percentage_outside_its_range_is_refused() {
        for text in ["0%", "0.0000%", "100.0001%", "101%", "-5%", "+5%", "%", ".5%", "5.%", "1.00001%", "nan%", "5%%"] {
            let wanted = "wanted a percentage above 0% and at most 100%, with up to 4 digits after the point";
            assert_eq!(refusal(text), format!("seen {text:?}, {wanted}"));
        }
        assert!("99999999999999999999%".parse::<BudgetSpec>().is_err());
    }

    #[test]
    fn a_size_that_64_bits_do_not_hold_is_refused() {
        for text in ["16 EiB", "20 EB", "99999999999999999999", "99999999999999999999 B", "16.5 EiB"] {
            assert!(text.parse::<BudgetSpec>().is_err(), "{text}");
        }
        assert_eq!(refusal("16 EiB"), "seen \"16 EiB\", wanted less than 16 EiB");
    }

    #[test]
    fn a_negative_integer_is_refused() {
        assert_eq!(BudgetSpec::from_integer(0), Ok(BudgetSpec::Bytes(0)));
        let error = BudgetSpec::from_integer(-1).unwrap_err();
        assert_eq!(error.to_string(), "seen -1, wanted a number of bytes that is not negative");
    }

    #[test]
    fn auto_leaves_a_sixteenth_of_the_total() {
        assert_eq!(BudgetSpec::Auto.resolve(64 * GIB, 60 * GIB), 56 * GIB);
    }

    #[test]
    fn auto_on_a_busy_machine_is_half_of_what_is_free() {
        assert_eq!(BudgetSpec::Auto.resolve(64 * GIB, 6 * GIB), 3 * GIB);
        assert_eq!(BudgetSpec::Auto.resolve(64 * GIB, 0), 0);
    }

    #[test]
    fn a_percentage_is_of_the_total_rounded_down() {
        assert_eq!(percent(500_000).resolve(7, 0), 3);
        assert_eq!(percent(WHOLE).resolve(u64::MAX, 0), u64::MAX);
        assert_eq!(percent(1).resolve(999_999, 0), 0);
    }

    #[test]
    fn bytes_are_taken_as_they_are() {
        assert_eq!(BudgetSpec::Bytes(9).resolve(4, 2), 9);
    }

    fn any_spec() -> impl Strategy<Value = BudgetSpec> {
        prop_oneof![Just(BudgetSpec::Auto), (0..u64::MAX).prop_map(BudgetSpec::Bytes), (1..=WHOLE).prop_map(percent),]
    }

    proptest! {
        #[test]
        fn a_budget_reads_back_what_it_prints(spec in any_spec()) {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,12}|[0-9.]{0,24} ?[kmgtpeKMGTPE]?i?B?%?") {
            let _ = text.parse::<BudgetSpec>();
        }

        #[test]
        fn auto_and_percentages_stay_within_the_total(spec in any_spec(), total: u64, free: u64) {
            let limit = if let BudgetSpec::Bytes(bytes) = spec { bytes } else { total };
            prop_assert!(spec.resolve(total, free) <= limit);
        }
    }
}
