use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn at(seconds: u64, format: &str) -> String {
    let source = format!("{{{{ strftime_now({format:?}) }}}}");
    let template =
        ChatTemplate::with_clock(&source, move || UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7))
            .unwrap();
    template.render(&Request::default(), &RenderOptions::default(), &Map::new()).unwrap()
}

/// Values of Python's `datetime.fromtimestamp(seconds, utc).strftime(...)`.
#[test]
fn strftime_now_is_pythons() {
    let all = "%Y-%m-%d %H:%M:%S|%y %e %j %I %p %a %A %b %B %w %u %%|%F %T %D %R|%-d %-m %-H|%c|%f";
    assert_eq!(
        at(0, all),
        "1970-01-01 00:00:00|70  1 001 12 AM Thu Thursday Jan January 4 4 %|1970-01-01 00:00:00 01/01/70 00:00|1 1 0|\
         Thu Jan  1 00:00:00 1970|007000"
    );
    assert_eq!(
        at(1_709_210_096, all),
        "2024-02-29 12:34:56|24 29 060 12 PM Thu Thursday Feb February 4 4 %|2024-02-29 12:34:56 02/29/24 12:34|29 2 12|\
         Thu Feb 29 12:34:56 2024|007000"
    );
    assert_eq!(
        at(4_107_542_399, all),
        "2100-02-28 23:59:59|00 28 059 11 PM Sun Sunday Feb February 0 7 %|2100-02-28 23:59:59 02/28/00 23:59|28 2 23|\
         Sun Feb 28 23:59:59 2100|007000"
    );
    assert_eq!(at(1_735_689_599, "%d %B %Y, %j"), "31 December 2024, 366");
    assert_eq!(at(951_782_400, "%d %b %Y, %j"), "29 Feb 2000, 060");
    assert_eq!(at(1_700_000_000, "%Q %"), "%Q %");
}

#[test]
fn generation_tags_leave_their_content_and_other_tags_alone() {
    assert_eq!(
        without_generation_tags("{%- generation -%}a{% endgeneration %}"),
        "{%- if true -%}a{% endif %}"
    );
    assert_eq!(
        without_generation_tags("{% set generation = 1 %}{{ x }} {% open"),
        "{% set generation = 1 %}{{ x }} {% open"
    );
}

#[test]
fn the_template_is_looked_for_in_order() {
    let tiny = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"));
    let dir = std::env::temp_dir().join(format!("template-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::copy(tiny.join("tokenizer.json"), dir.join("tokenizer.json")).unwrap();
    let source = || ChatTemplate::load(&dir, &Tokenizer::load(&dir).unwrap()).unwrap().source().to_owned();
    assert_eq!(source(), DEFAULT_TEMPLATE);
    std::fs::write(dir.join("tokenizer_config.json"), r#"{"chat_template": "config"}"#).unwrap();
    assert_eq!(source(), "config");
    let named = r#"{"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "named"}]}"#;
    std::fs::write(dir.join("tokenizer_config.json"), named).unwrap();
    assert_eq!(source(), "named");
    std::fs::write(dir.join("chat_template.json"), r#"{"chat_template": "json"}"#).unwrap();
    assert_eq!(source(), "json");
    std::fs::write(dir.join("chat_template.jinja"), "jinja").unwrap();
    assert_eq!(source(), "jinja");
    std::fs::remove_dir_all(&dir).unwrap();
}
