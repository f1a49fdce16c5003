use proptest::prelude::*;

use super::*;

fn split(start: ReasoningStart, pieces: &[&str]) -> (String, String) {
    let mut splitter = ReasoningSplitter::new(start);
    let mut whole = Split::default();
    let pieces = pieces.iter().map(|piece| splitter.push(piece)).collect::<Vec<_>>();
    for part in pieces.into_iter().chain(std::iter::once(splitter.finish())) {
        whole.reasoning.push_str(&part.reasoning);
        whole.content.push_str(&part.content);
    }
    (whole.reasoning, whole.content)
}

fn pair(reasoning: &str, content: &str) -> (String, String) {
    (reasoning.to_owned(), content.to_owned())
}

#[test]
fn x5_thinking_cut_before_the_close_tag_is_all_reasoning() {
    assert_eq!(split(ReasoningStart::Open, &["I am", " not done"]), pair("I am not done", ""));
    assert_eq!(split(ReasoningStart::Open, &["I am not done\n</thi"]), pair("I am not done\n</thi", ""));
    assert_eq!(split(ReasoningStart::Open, &[]), pair("", ""));
}

#[test]
fn x5_thinking_off_is_all_content() {
    let text = "\n\nPlain <think>tags</think> stay";
    assert_eq!(split(ReasoningStart::Off, &[text]), pair("", text));
}

#[test]
fn thoughts_and_answer_are_parted_without_the_line_breaks_between() {
    assert_eq!(split(ReasoningStart::Open, &["One and one.\n</think>\n\n2"]), pair("One and one.", "2"));
    assert_eq!(split(ReasoningStart::Open, &["\n</think>\n\n2"]), pair("", "2"));
    assert_eq!(split(ReasoningStart::Open, &["a</think>b</think>c"]), pair("a", "b</think>c"));
}

#[test]
fn a_tag_in_pieces_is_found() {
    assert_eq!(
        split(ReasoningStart::Open, &["a\n", "</", "thi", "nk", ">", "\n", "\n", "b\n"]),
        pair("a", "b\n")
    );
    assert_eq!(split(ReasoningStart::Open, &["a </", "th", "em> b"]), pair("a </them> b", ""));
    assert_eq!(split(ReasoningStart::Expected, &["\n<th", "ink", ">\na</think>b"]), pair("a", "b"));
}

#[test]
fn a_model_that_was_expected_to_think_may_answer_at_once() {
    assert_eq!(split(ReasoningStart::Expected, &[" <b", ">x"]), pair("", " <b>x"));
    assert_eq!(split(ReasoningStart::Expected, &["<thin"]), pair("", "<thin"));
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_split(text in "[a\n<>/think ]{0,40}(</think>)?[a\n<>/think ]{0,20}", cuts in proptest::collection::vec(1_usize..5, 0..40)) {
        for start in [ReasoningStart::Off, ReasoningStart::Open, ReasoningStart::Expected] {
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            for cut in cuts.iter().copied().chain(std::iter::once(usize::MAX)) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(split(start, &pieces), split(start, &[&text]));
        }
    }
}
