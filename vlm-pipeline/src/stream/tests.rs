use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::tokenizer::Tokenizer;

fn tiny() -> Tokenizer {
    Tokenizer::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/assets/tiny"))).unwrap()
}

/// The id of the token that is just this byte.
fn byte_id(tokenizer: &Tokenizer, byte: u8) -> u32 {
    let vocabulary = tokenizer.stream().vocabulary;
    (0..768).find(|&id| vocabulary.text(id) == TokenText::Bytes(&[byte])).unwrap()
}

fn deltas(stream: &mut TextStream, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|&id| stream.push(id)).collect()
}

#[test]
fn e2_a_character_over_two_tokens() {
    let mut stream = tiny().stream();
    let pieces = [&[0xf0, 0x9f][..], &[0x98, 0x8a], &[0x21]].map(|bytes| stream.push_bytes(bytes));
    assert_eq!(pieces, ["", "\u{1f60a}", "!"]);
    assert_eq!(stream.finish(), "");
}

#[test]
fn e2_the_same_from_token_ids() {
    let tokenizer = tiny();
    let ids = [0xf0, 0x9f, 0x98, 0x8a, 0x21].map(|byte| byte_id(&tokenizer, byte));
    assert_eq!(deltas(&mut tokenizer.stream(), &ids), ["", "", "", "\u{1f60a}", "!"]);
    assert_eq!(tokenizer.decode(&ids), "\u{1f60a}!");
}

#[test]
fn e2_a_cut_in_a_character_shows_no_replacement() {
    let tokenizer = tiny();
    for length in 1..4 {
        let ids: Vec<u32> =
            [0xf0, 0x9f, 0x98][..length].iter().map(|&byte| byte_id(&tokenizer, byte)).collect();
        let mut stream = tokenizer.stream();
        assert!(deltas(&mut stream, &ids).concat().is_empty());
        assert_eq!(stream.finish(), "");
        assert_eq!(tokenizer.decode(&ids), "");
    }
}

#[test]
fn e2_a_lone_ff_shows_one_replacement() {
    let tokenizer = tiny();
    let ff = byte_id(&tokenizer, 0xff);
    let mut stream = tokenizer.stream();
    let mut text = stream.push(ff);
    text.push_str(&stream.finish());
    assert_eq!(text, "\u{fffd}");
    assert_eq!(tokenizer.decode(&[ff, byte_id(&tokenizer, b'a')]), "\u{fffd}a");
}

#[test]
fn a_broken_character_is_replaced_once_and_the_next_survives() {
    let mut stream = tiny().stream();
    assert_eq!(stream.push_bytes(&[0xf0, 0x9f]), "");
    assert_eq!(stream.push_bytes(b"A"), "\u{fffd}A");
}

#[test]
fn special_tokens_are_silent_and_think_tags_are_not() {
    let tokenizer = tiny();
    let ids = tokenizer.encode("<|im_start|><think>\n</think>a<|im_end|><|endoftext|>").unwrap();
    assert_eq!(tokenizer.decode(&ids), "<think>\n</think>a");
    assert_eq!(tokenizer.decode(&[u32::MAX, 768, 100_000]), "");
}

/// A tokenizer of another make: word pieces with a `▁` for spaces and bytes written `<0xE2>`.
fn byte_fallback() -> Tokenizer {
    let mut vocab = serde_json::Map::new();
    for (id, token) in ["<unk>", "▁hello", "▁world", "!", "▁"].into_iter().enumerate() {
        vocab.insert(token.into(), id.into());
    }
    for byte in 0..=255u8 {
        vocab.insert(format!("<0x{byte:02X}>"), (5 + usize::from(byte)).into());
    }
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null, "post_processor": null,
        "pre_tokenizer": null,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": []},
    });
    let dir = std::env::temp_dir().join(format!("byte-fallback-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("tokenizer.json"), json.to_string()).unwrap();
    let tokenizer = Tokenizer::load(&dir).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    tokenizer
}

#[test]
fn other_decoders_stream_the_same_text() {
    let tokenizer = byte_fallback();
    let byte = |byte: u8| 5 + u32::from(byte);
    let ids = [1, 2, 3, 4, byte(0xf0), byte(0x9f), byte(0x98), byte(0x8a), 3, 2];
    let mut stream = tokenizer.stream();
    let pieces = deltas(&mut stream, &ids);
    assert_eq!(pieces, ["hello", " world", "!", " ", "", "", "", "\u{1f60a}", "!", " world"]);
    assert_eq!(stream.finish(), "");
    let mut cut = tokenizer.stream();
    assert_eq!(deltas(&mut cut, &ids[..6]).concat() + &cut.finish(), "hello world! ");
}

proptest! {
    #[test]
    fn streamed_bytes_are_the_lossy_text_but_for_an_unfinished_end(bytes in proptest::collection::vec(any::<u8>(), 0..40),
            cuts in proptest::collection::vec(1_usize..6, 0..40)) {
        let mut stream = TextStream::new(Arc::clone(&tiny().stream().vocabulary));
        let mut text = String::new();
        let mut rest = bytes.as_slice();
        for cut in cuts.into_iter().chain(std::iter::once(usize::MAX)) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            text.push_str(&stream.push_bytes(piece));
            rest = after;
        }
        text.push_str(&stream.finish());
        let end = bytes.len() - unfinished(&bytes);
        prop_assert_eq!(text, String::from_utf8_lossy(&bytes[..end]));
    }

    #[test]
    fn any_text_survives_encoding_and_streaming(text in any::<String>()) {
        let tokenizer = tiny();
        let ids = tokenizer.encode_plain(&text).unwrap();
        let decoded = tokenizer.decode(&ids);
        // The tokenizer composes characters (NFC), so a second round must change nothing.
        let again = tokenizer.encode_plain(&decoded).unwrap();
        prop_assert_eq!(&again, &ids);
        prop_assert_eq!(tokenizer.decode(&again), decoded.clone());
        if text.is_ascii() {
            prop_assert_eq!(decoded, text);
        }
    }

    #[test]
    fn deltas_joined_are_the_whole_text(ids in proptest::collection::vec(0_u32..780, 0..60)) {
        let tokenizer = tiny();
        let mut stream = tokenizer.stream();
        let joined = deltas(&mut stream, &ids).concat() + &stream.finish();
        prop_assert_eq!(joined, tokenizer.decode(&ids));
    }
}

/// How many bytes at the end begin a character that is not finished.
fn unfinished(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    (from..bytes.len())
        .find(|&at| {
            std::str::from_utf8(&bytes[at..]).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
        })
        .map_or(0, |at| bytes.len() - at)
}
