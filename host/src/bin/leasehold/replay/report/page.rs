//! Puts a replay's setup, results and charts on one HTML page.
//!
//! Pure. Every text that isn't the program's own goes through [`escape`].

use super::super::outcome::{Run, Runs};
use super::super::results;
use super::super::setup::Setup;
use super::super::timeline::Timeline;
use super::charts::{self, ChartError, Scale};
use super::mark::Mark;
use crate::output;
use bytesize::ByteSize;
use plotters::style::RGBColor;

/// No script, and nothing from elsewhere: the browser holds the page to it.
const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
const STYLE: &str = include_str!("style.css");

type Chart = fn(&Timeline, &Scale) -> Result<String, ChartError>;

/// The charts of a run: title, lines, how to draw it.
const CHARTS: [(&str, &[Mark], Chart); 3] = [
    ("Memory", &[Mark::Owned, Mark::Mapped, Mark::Ideal], charts::memory),
    ("Running requests", &[Mark::Running], charts::running),
    ("Growth calls", &[Mark::Median, Mark::Tail, Mark::Slowest], charts::growth),
];

/// The whole page.
///
/// # Errors
/// When a chart can't be drawn.
pub(crate) fn page(setup: &Setup, runs: &Runs) -> Result<String, ChartError> {
    let trace = escape(setup.trace.as_deref().unwrap_or("a synthetic workload"));
    let scale = Scale::of(runs.finished.iter().map(|run| &run.summary.timeline));
    let mut parts = vec![
        format!("{HEAD}<title>Replay of {trace}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>"),
        format!("<h1>Replay of {trace}</h1>"),
        facts(setup),
        outcome(setup, runs),
    ];
    for run in &runs.finished {
        parts.push(section(run, &scale)?);
    }
    parts.push(footer(&runs.finished));
    parts.push("</main>\n</body>\n</html>\n".to_owned());
    Ok(parts.join("\n"))
}

fn facts(setup: &Setup) -> String {
    let Setup { format, requests, prefix, output_tokens, model, layout, context, .. } = setup;
    let seconds = setup.span.as_secs_f64();
    let mut facts = vec![
        ("trace", format!("{format}, {requests} requests over {seconds:.1} s")),
        ("tokens", format!("{} of prompts, {output_tokens} of outputs", prefix.prompt_tokens)),
        ("model", format!("{model}, {layout} caches, at most {context} tokens a request")),
        ("step", format!("{:?} of trace time, a token for each running request", setup.step)),
    ];
    facts.extend(setup.backings.iter().map(|backing| {
        let budget = ByteSize::b(backing.budget_bytes).display().iec();
        ("backing", format!("{}, a budget of {budget}", backing.name))
    }));
    let facts = facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>", escape(value)));
    format!("<dl>\n{}\n</dl>", facts.collect::<Vec<_>>().join("\n"))
}

fn outcome(setup: &Setup, runs: &Runs) -> String {
    let cells = |tag: &str, texts: Vec<String>| {
        let cells = texts.iter().enumerate().map(|(column, text)| {
            let class = if column < results::WORDS { " class=\"word\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escape(text))
        });
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let header = results::header(setup).into_iter().map(str::to_owned).collect();
    let rows: Vec<_> = results::rows(setup, runs).into_iter().map(|row| cells("td", row)).collect();
    let remarks = results::remarks(setup, runs).into_iter().chain(results::refusals(setup, runs));
    let remarks = remarks.chain(results::failures(runs));
    let remarks: Vec<_> = remarks.map(|remark| format!("<li>{}</li>", escape(&remark))).collect();
    format!(
        "<h2>Results</h2>\n<div class=\"wide\">\n<table>\n<thead>{}</thead>\n<tbody>\n{}\n</tbody>\n</table>\n</div>\n\
         <ul class=\"remarks\">\n{}\n</ul>",
        cells("th", header),
        rows.join("\n"),
        remarks.join("\n")
    )
}

/// One run's charts.
fn section(run: &Run, scale: &Scale) -> Result<String, ChartError> {
    let mut parts = vec![format!("<h2>{} on {}</h2>", escape(&run.strategy.to_string()), escape(&run.backing))];
    for (title, marks, chart) in CHARTS {
        let svg = chart(&run.summary.timeline, scale)?;
        let legend: String = marks.iter().map(|mark| legend(*mark)).collect();
        let named = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1);
        parts.push(format!("<figure>\n<figcaption>{title}{legend}</figcaption>\n{}\n</figure>", named.trim_end()));
    }
    Ok(parts.join("\n"))
}

fn legend(mark: Mark) -> String {
    let RGBColor(red, green, blue) = mark.color();
    format!("<span><i style=\"background:#{red:02x}{green:02x}{blue:02x}\"></i>{}</span>", mark.name())
}

fn footer(runs: &[Run]) -> String {
    let widths = runs.iter().map(|run| run.summary.timeline.width);
    let width = widths.max().map(|width| format!(" A point is {width:?} of trace time or less.")).unwrap_or_default();
    format!(
        "<footer>Memory and running requests: the most at the beginning of any step of a point.{width} Ideal is what \
         the tokens need; between it and owned lies the waste. Growth calls: those that succeeded; p50 and p99 of a point are exact to a sixteenth. All \
         runs are drawn at one scale, each over its own time. Made by leasehold {}.</footer>",
        env!("CARGO_PKG_VERSION")
    )
}

/// A text as HTML shows it, within an element or a quoted attribute; control characters are shown, too.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in output::clean(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::super::outcome::{FailedRun, RefusedRequest, RunSummary};
    use super::super::super::strategy::StrategyName;
    use super::*;

    const HOSTILE: &str = "<script>alert('x')</script>&\"\u{1b}";
    const ESCAPED: &str = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;\\u{1b}";

    #[test]
    fn every_text_from_outside_is_escaped() {
        let mut setup = Setup { trace: Some(HOSTILE.to_owned()), model: HOSTILE.to_owned(), ..Setup::example() };
        for backing in &mut setup.backings {
            backing.name = HOSTILE.to_owned();
            backing.sharing = Some(HOSTILE.to_owned());
        }
        let refused = vec![RefusedRequest { line: 1, reason: HOSTILE.to_owned() }];
        let summary = RunSummary { refused, ..RunSummary::default() };
        let run = Run { backing: HOSTILE.to_owned(), strategy: StrategyName::Leasehold, summary };
        let failed = FailedRun {
            backing: HOSTILE.to_owned(),
            strategy: Some(StrategyName::Realloc),
            reason: HOSTILE.to_owned(),
        };
        let page = page(&setup, &Runs { finished: vec![run], failed: vec![failed] }).unwrap();
        assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
        // Title, heading, model, backing; row, remark and refusal (the backing's name in both), section; the failed row, and
        // its failure with the name.
        assert_eq!(page.matches(ESCAPED).count(), 13, "{page}");
    }

    #[test]
    fn a_page_fetches_nothing_and_has_three_charts_a_run() {
        let run = |strategy| Run { backing: "one".to_owned(), strategy, summary: RunSummary::default() };
        let finished = vec![run(StrategyName::Leasehold), run(StrategyName::Realloc)];
        let page = page(&Setup::example(), &Runs { finished, failed: Vec::new() }).unwrap();
        assert_eq!((page.matches("<svg ").count(), page.matches("</svg>").count()), (6, 6));
        for fetched in ["src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(fetched), "{fetched}");
        }
        assert_eq!(page.matches("<h2>").count(), 3);
    }
}
