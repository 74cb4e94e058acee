//! What a backing logs.

use crate::with_liar;
use leasehold::BackingState;
use tracing::Level;

#[test]
fn lines_of_every_level_and_content_reach_the_log_under_the_backings_name() {
    with_liar("log-noise", |scene| {
        let lines: Vec<_> = scene.log.lines().into_iter().filter(|line| line.backing == "liar").collect();
        for (level, name) in [
            (Level::ERROR, "Error"),
            (Level::WARN, "Warning"),
            (Level::INFO, "Information"),
            (Level::DEBUG, "Debugging"),
            (Level::TRACE, "Tracing"),
        ] {
            let message = format!("a line of level {name}");
            assert!(lines.iter().any(|line| line.level == level && line.message == message), "{message}");
        }
        let bytes = lines.iter().find(|line| line.message.starts_with("no text")).expect("is logged");
        assert_eq!((bytes.level, bytes.message.as_str()), (Level::ERROR, "no text: \u{fffd}\u{fffd}"));
        assert!(lines.iter().any(|line| line.message.is_empty()), "an empty line is a line");
        assert_eq!(scene.state(), BackingState::Ready);
        scene.assert_others_work();
    });
}
