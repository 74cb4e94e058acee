//! `leasehold replay`: what it measures, what its report and its page say, which traces it refuses.

use super::{HOST_MMAP, json, keys, leasehold, plugins, registry, stderr, stdout};
use std::fs;

#[test]
fn replay_serves_a_trace_through_the_library_with_every_strategy() {
    let (folder, _) = registry(HOST_MMAP);
    let trace = folder.path().join("trace.csv");
    fs::write(
        &trace,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,100,20\n2023-11-16 18:15:46.99,300,0\n",
    )
    .unwrap();
    let arguments = ["replay", "trace.csv", "--max-context", "1024", "--json"];
    let output = leasehold(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert_eq!(report["trace"], serde_json::json!({"format": "azure-csv", "requests": 2}));
    let strategies: Vec<_> = report["results"].as_array().unwrap().iter().map(|run| run["strategy"].clone()).collect();
    assert_eq!(strategies, ["leasehold", "prealloc", "realloc"]);
    for run in report["results"].as_array().unwrap() {
        assert_eq!(
            keys(run),
            [
                "backing",
                "completed",
                "growth",
                "ideal_peak_bytes",
                "peak_owned_bytes",
                "peak_running",
                "preempted",
                "prefix",
                "refused",
                "strategy"
            ]
        );
        assert_eq!(keys(&run["growth"]), ["calls", "max_ns", "p50_ns", "p99_ns"]);
        let nothing = serde_json::json!({"hit_tokens": 0, "infinite_cache_hit_tokens": 0, "bytes_not_stored_twice": 0});
        assert_eq!(run["prefix"], nothing, "the trace has no hash ids");
        assert_eq!((&run["completed"], &run["refused"]), (&2.into(), &0.into()), "{run}");
        // 48 planes of 256 bytes a token; both requests run at once, at 101 and 300 tokens or more.
        assert!(run["ideal_peak_bytes"].as_u64().unwrap() >= 300 * 48 * 256, "{run}");
        assert!(run["peak_owned_bytes"].as_u64() >= run["ideal_peak_bytes"].as_u64(), "{run}");
    }
    let owned = |index: usize| report["results"][index]["peak_owned_bytes"].as_u64().unwrap();
    assert_eq!(owned(1), 2 * 48 * 1024 * 256, "prealloc holds the context of each request");
    assert!(owned(0) < owned(1));
}

/// Two prompts of 600 and 700 tokens that have their first 512 in common.
const SHARED_PROMPTS: &str = "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}\n\
                              {\"timestamp\": 5, \"input_length\": 700, \"output_length\": 1, \"hash_ids\": [1, 3]}\n";

#[test]
fn replay_says_what_an_infinite_prefix_cache_would_hit() {
    let (folder, _) = registry(HOST_MMAP);
    fs::write(folder.path().join("trace.jsonl"), SHARED_PROMPTS).unwrap();
    let arguments = ["replay", "trace.jsonl", "--strategy", "leasehold"];
    let output = leasehold(folder.path(), &arguments);
    assert!(stdout(&output).contains("an infinite cache would hit 512 of 1300 prompt tokens, 39.4 %"), "{output:?}");
    assert!(stdout(&output).contains("hit tokens"), "{output:?}");

    let output = leasehold(folder.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(json(&output)["results"][0]["prefix"]["infinite_cache_hit_tokens"], 512, "{output:?}");

    fs::write(folder.path().join("trace.jsonl"), SHARED_PROMPTS.replace("hash_ids", "ids")).unwrap();
    let output = leasehold(folder.path(), &arguments);
    assert!(!stdout(&output).contains("infinite") && !stdout(&output).contains("hit tokens"), "{output:?}");
}

#[test]
fn replay_writes_a_page_that_needs_nothing_else() {
    let (folder, _) = registry(HOST_MMAP);
    let trace = "a <b> & c.jsonl";
    fs::write(folder.path().join(trace), SHARED_PROMPTS).unwrap();
    let output = leasehold(folder.path(), &["replay", trace, "--max-context", "1024", "--report", "report.html"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stderr(&output).contains("report: report.html"), "{output:?}");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    assert_eq!(page.matches("<svg ").count(), 9, "three charts of three strategies");
    assert!(page.contains("Replay of a &lt;b&gt; &amp; c.jsonl") && !page.contains("<b>"), "{page}");
    for text in ["infinite cache would hit 512 of 1300", "64.0 MiB", "qwen2.5-0.5b, per-layer", "map operations"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_replay() {
    let (folder, _) = registry(HOST_MMAP);
    fs::write(folder.path().join("trace.jsonl"), SHARED_PROMPTS).unwrap();
    for (report, why) in [
        ("gone/report.html", "can't be opened: No such file or directory"),
        (".", "can't be opened: Is a directory"),
        ("trace.jsonl", "is read by this very replay; name another file"),
        ("registry.toml", "is read by this very replay; name another file"),
    ] {
        let output = leasehold(folder.path(), &["replay", "trace.jsonl", "--report", report]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(&format!("report {report:?}: {why}")), "{output:?}");
        assert!(stdout(&output).is_empty() && !stderr(&output).contains("replaying"), "{output:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("trace.jsonl")).unwrap(), SHARED_PROMPTS);
}

#[test]
fn replay_with_rows_of_odd_bytes_keeps_every_row() {
    let (folder, _) = registry(HOST_MMAP);
    let model = "layers=3,kv_heads=1,head_dim=27,element_bytes=1,context=700";
    let output =
        leasehold(folder.path(), &["replay", "--requests", "12", "--model", model, "--growth", "geometric", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn replay_with_token_major_caches_keeps_every_row_in_one_plane() {
    let (folder, _) = registry(HOST_MMAP);
    fs::write(folder.path().join("trace.jsonl"), r#"{"timestamp":0,"input_length":10,"output_length":2}"#).unwrap();
    let peak_owned = |layout: &[&str]| {
        // A row of 100 bytes: 12 tokens are a page in each of 8 planes, or 9,600 bytes, 3 pages, in one.
        let model = "layers=4,kv_heads=1,head_dim=100,element_bytes=1,context=40";
        let arguments = ["replay", "trace.jsonl", "--model", model, "--strategy", "leasehold", "--json"];
        let output = leasehold(folder.path(), &[&arguments, layout].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        json(&output)["results"][0]["peak_owned_bytes"].as_u64().unwrap() / 4096
    };
    assert_eq!(peak_owned(&[]), 8);
    assert_eq!(peak_owned(&["--layout", "per-layer"]), 8);
    assert_eq!(peak_owned(&["--layout", "token-major"]), 3);
}

#[test]
fn replay_with_token_major_caches_serves_with_every_strategy() {
    let (folder, _) = registry(HOST_MMAP);
    let output = leasehold(folder.path(), &["replay", "--requests", "6", "--layout", "token-major"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let sharing = "host-mmap: prefixes of qwen2.5-0.5b at granules of 4.0 KiB: per-layer in units of 16 tokens, 48 map \
                   operations for a block of 512; token-major token by token, 1 map operation for a block of 512";
    assert!(stdout(&output).contains(sharing), "{output:?}");
}

#[test]
fn a_request_that_can_never_fit_is_counted_and_named() {
    let (folder, _) = registry(HOST_MMAP);
    let trace = folder.path().join("trace.jsonl");
    let lines = "{\"timestamp\": 0, \"input_length\": 90000, \"output_length\": 1, \"hash_ids\": []}\n\
                 {\"timestamp\": 5, \"input_length\": 64, \"output_length\": 1, \"hash_ids\": [1]}\n";
    fs::write(&trace, lines).unwrap();
    for json in [&[][..], &["--json"]] {
        let output = leasehold(folder.path(), &[&["replay", "trace.jsonl", "--strategy", "leasehold"], json].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let refused =
            "host-mmap, leasehold: request of line 1 refused: 90001 tokens are more than the context of 32768";
        assert!(stderr(&output).contains(refused), "{output:?}");
    }

    let output = leasehold(folder.path(), &["replay", "trace.jsonl", "--strategy", "leasehold", "--max-context", "10"]);
    assert_eq!(output.status.code(), Some(1), "nothing admitted: {output:?}");
}

#[test]
fn what_is_for_the_synthetic_workload_alone_is_refused_with_a_trace() {
    let (folder, _) = registry(HOST_MMAP);
    for flag in ["--seed", "--mean-prompt", "--mean-output", "--rate"] {
        let output = leasehold(folder.path(), &["replay", "trace.jsonl", flag, "5"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains(flag) && stderr(&output).contains("cannot be used with"), "{output:?}");
    }
}

#[test]
fn a_backing_that_nobody_knows_is_a_mistake_in_what_was_asked() {
    let (folder, _) = registry(HOST_MMAP);
    let output = leasehold(folder.path(), &["replay", "--backing", "nope"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no backing is called \"nope\": there are host-mmap"), "{output:?}");
}

#[test]
fn a_malformed_trace_line_is_named_by_its_number() {
    let (folder, _) = registry(HOST_MMAP);
    let trace = folder.path().join("trace.csv");
    fs::write(
        &trace,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,100,20\n2023-11-16 18:15:47,many,20\n",
    )
    .unwrap();
    let output = leasehold(folder.path(), &["replay", "trace.csv"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("line 3"), "{output:?}");
}

#[test]
fn the_peak_of_reallocating_counts_old_and_new_together() {
    let (folder, _) = registry(HOST_MMAP);
    fs::write(folder.path().join("trace.jsonl"), r#"{"timestamp":0,"input_length":16,"output_length":17}"#).unwrap();
    let model = "layers=1,kv_heads=1,head_dim=4096,element_bytes=1,context=1000";
    let arguments = ["replay", "trace.jsonl", "--model", model, "--strategy", "realloc", "--json"];
    let output = leasehold(folder.path(), &arguments);
    // 16, 32, 64 tokens of two planes of 4096 bytes each; the last time 32 and 64 are held at once.
    assert_eq!(json(&output)["results"][0]["peak_owned_bytes"], 96 * 8192, "{output:?}");
}

const HOST_POOL: &str = "[[backing]]\nname = \"host-pool\"\nlibrary = \"leasehold_host_pool\"\n";

/// Requests with prompts of whole blocks of 512 tokens, and a bit.
pub(super) fn requests(prompts: impl IntoIterator<Item = Vec<usize>>) -> String {
    let line = |(timestamp, ids): (usize, Vec<usize>)| {
        let input = ids.iter().fold(10_usize, |tokens, _| tokens.saturating_add(512));
        format!(
            "{{\"timestamp\": {timestamp}, \"input_length\": {input}, \"output_length\": 20, \"hash_ids\": {ids:?}}}\n"
        )
    };
    prompts.into_iter().enumerate().map(line).collect()
}

#[test]
fn replay_shares_prompts_and_keeps_every_row() {
    let (folder, _) = registry(HOST_POOL);
    let trace = requests((3..9).map(|blocks| (0..blocks).collect()));
    fs::write(folder.path().join("trace.jsonl"), trace).unwrap();
    let arguments = ["replay", "trace.jsonl", "--json", "--strategy", "sharing", "--strategy", "leasehold"];
    let output = leasehold(folder.path(), &[&arguments[..], &["--budget", "400 MiB"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    let [sharing, plain] = [&report["results"][0], &report["results"][1]];
    assert_eq!((&sharing["completed"], &plain["completed"]), (&6.into(), &6.into()));
    // Each prompt finds the whole one before it: 3, 4, 5, 6, 7 blocks.
    assert_eq!(sharing["prefix"]["hit_tokens"], 25 * 512);
    assert_eq!(sharing["prefix"]["infinite_cache_hit_tokens"], 25 * 512);
    assert_eq!(sharing["prefix"]["bytes_not_stored_twice"], 25 * 512 * 12_288_u64);
    assert_eq!(plain["prefix"]["hit_tokens"], 0);
}

/// Seen before: a request that was refused half-way found what it had made itself, and counted it as hit.
#[test]
fn no_budget_makes_more_hits_than_an_infinite_cache_has_nor_refuses_what_fits_alone() {
    let (folder, _) = registry(HOST_POOL);
    let alone = requests([(100..112).collect(), (0..24).collect()]);
    let common = requests((1..13).map(|number: usize| {
        let own = (0..16_usize).map(|block| number.saturating_mul(100).saturating_add(block));
        (0..3).chain(own).collect()
    }));
    for trace in [alone, common] {
        fs::write(folder.path().join("trace.jsonl"), trace).unwrap();
        for budget in ["160 MiB", "176 MiB", "190 MiB", "205 MiB", "230 MiB", "300 MiB", "400 MiB"] {
            let arguments = ["replay", "trace.jsonl", "--json", "--no-touch", "--budget", budget];
            let strategies = ["--strategy", "sharing", "--strategy", "leasehold"];
            let output = leasehold(folder.path(), &[&arguments[..], &strategies].concat());
            assert!(output.status.success(), "{budget}: {}", stderr(&output));
            let report = json(&output);
            let [sharing, plain] = [&report["results"][0], &report["results"][1]];
            let figure = |key: &str| sharing["prefix"][key].as_u64().unwrap();
            assert!(figure("hit_tokens") <= figure("infinite_cache_hit_tokens"), "{budget}: {sharing}");
            assert_eq!(sharing["completed"], plain["completed"], "{budget}: {sharing} {plain}");
        }
    }
}

#[test]
fn sharing_that_can_not_share_says_why() {
    let library = plugins().join("libleasehold_host_pool.so");
    let table =
        format!("[[backing]]\nname = \"host-pool\"\nlibrary = {library:?}\n[backing.options]\ngranule = \"2 MiB\"\n");
    let (folder, _) = registry(&table);
    let arguments = ["replay", "--requests", "2", "--strategy", "sharing", "--no-touch", "--budget", "1GiB"];
    let plain = leasehold(folder.path(), &arguments);
    assert!(stderr(&plain).contains("shares nothing: no request says what it shares (hash_ids)"), "{plain:?}");
    fs::write(folder.path().join("trace.jsonl"), requests([vec![1], vec![1]])).unwrap();
    let short = leasehold(folder.path(), &[&arguments[..], &["trace.jsonl"]].concat());
    assert_eq!(short.status.code(), Some(0), "{short:?}");
    let why = "shares nothing: laid out per-layer, 8192 tokens at once can be shared at granules of 2.0 MiB, and a block of a \
               trace has 512: use --layout token-major, or smaller granules";
    assert!(stderr(&short).contains(why), "{}", stderr(&short));
}
