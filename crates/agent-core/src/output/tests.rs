use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::message::{ToolCall, ToolStatus};

fn texts(blocks: &[Block]) -> Vec<&str> {
    blocks.iter().map(|b| b.as_text().unwrap_or("<media>")).collect()
}

fn limits(bytes: usize) -> OutputLimits {
    OutputLimits::default().with_result_bytes(bytes)
}

fn png(size: usize) -> Block {
    Block::Image(Media::base64("image/png", "A".repeat(size)).with_name("shot.png"))
}

#[test]
fn text_within_the_limit_is_untouched_to_the_byte() {
    let output =
        ToolOutput::blocks(vec![Block::text("a"), png(4), Block::text("é")]).with_structured(json!(1));
    let (same, cut) = limit(output.clone(), &limits(3), None);
    assert_eq!(same, output);
    assert!(cut.is_nothing());
}

#[test]
fn a_cut_at_every_size_of_a_text_of_every_character_width_keeps_whole_characters_and_counts_right() {
    let text = "aé€🦀b".repeat(4);
    for bytes in 0..=text.len() {
        let (output, cut) = limit(ToolOutput::text(text.clone()), &limits(bytes), None);
        let [out] = texts(&output.blocks)[..] else { panic!("one block") };
        if bytes == text.len() {
            assert_eq!(out, text);
            continue;
        }
        let notice = format!("\n[… {} bytes of {} are left out here …]\n", cut.text_bytes, text.len());
        let (head, tail) = out.split_once(&notice).unwrap();
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert_eq!(head.len() + tail.len() + cut.text_bytes, text.len());
        assert!(head.len() + tail.len() <= bytes);
        // At most three bytes are lost to each border.
        assert!(head.len() + tail.len() + 6 >= bytes);
    }
}

#[test]
fn the_head_and_the_tail_are_those_of_all_blocks_together_and_pictures_stay_in_place() {
    let blocks =
        vec![Block::text("0123456789"), png(4), Block::text("abcdefghij"), Block::text("ABCDEFGHIJ")];
    let (output, cut) = limit(ToolOutput::blocks(blocks), &limits(10), Some("see output.txt"));
    assert_eq!(
        texts(&output.blocks),
        ["0123\n[… 20 bytes of 30 are left out here; see output.txt …]\n", "<media>", "EFGHIJ"]
    );
    assert_eq!(cut.text_bytes, 20);
}

#[test]
fn pictures_over_a_limit_leave_a_line_that_says_why() {
    let blind = OutputLimits::default().with_images(false);
    let narrow = OutputLimits::default().with_media(1, 8);
    for (limits, blocks, expected, media) in [
        (&blind, vec![png(4)], vec!["[image/png shot.png left out: this model sees no images]"], 1),
        (
            &narrow,
            vec![png(9)],
            vec!["[image/png shot.png left out: 9 characters of base64 are more than 8]"],
            1,
        ),
        (
            &narrow,
            vec![png(8), png(8)],
            vec!["<media>", "[image/png shot.png left out: a result holds at most 1]"],
            1,
        ),
        (
            &blind,
            vec![Block::Document(Media::url("application/pdf", "https://example.org"))],
            vec!["<media>"],
            0,
        ),
    ] {
        let (output, cut) = limit(ToolOutput::blocks(blocks), limits, None);
        assert_eq!((texts(&output.blocks), cut.media), (expected, media));
    }
}

#[test]
fn blocks_that_have_no_place_in_a_result_and_empty_outputs_are_replaced_by_words() {
    let call = Block::from(ToolCall::new("1", "t", json!({})));
    let (output, cut) = limit(ToolOutput::blocks(vec![call]), &limits(100), None);
    assert!(texts(&output.blocks)[0].starts_with("[left out"));
    assert_eq!(cut.foreign_blocks, 1);
    for empty in [ToolOutput::default(), ToolOutput::text(" \n"), ToolOutput::error("")] {
        let (output, cut) = limit(empty, &limits(100), None);
        assert_eq!(texts(&output.blocks), ["(no output)"]);
        assert!(cut.is_nothing());
    }
}

#[test]
fn structured_output_is_kept_whole_or_not_at_all() {
    let limits = OutputLimits::default().with_structured_bytes(7);
    let (kept, _) = limit(ToolOutput::text("a").with_structured(json!({"a": 1})), &limits, None);
    assert_eq!(kept.structured, Some(json!({"a": 1})));
    let (gone, cut) = limit(ToolOutput::text("a").with_structured(json!({"a": 12})), &limits, None);
    assert_eq!((gone.structured, cut.structured_bytes), (None, 8));
}

fn result(text: &str) -> ToolResult {
    ToolResult::new("1", "t", ToolStatus::Ok, vec![Block::text(text)])
}

#[test]
fn together_short_results_stay_whole_and_long_ones_share_what_is_left() {
    let mut results = [result(&"a".repeat(10)), result(&"b".repeat(1_000)), result(&"c".repeat(2_000))];
    assert_eq!(limit_together(&mut results, 210), 2_800);
    assert_eq!(results[0].text(), "a".repeat(10));
    for (result, total) in results[1..].iter().zip([1_000, 2_000]) {
        let notice = format!("{} bytes of {total}", total - 100);
        assert!(result.text().contains(&notice), "{}", result.text());
    }
    let mut small = [result("a"), result("b")];
    assert_eq!(limit_together(&mut small, 2), 0);
    assert_eq!(limit_together(&mut [], 0), 0);
}

struct Keeps(fn(Spill) -> Result<String, ToolError>);

#[async_trait]
impl SpillSink for Keeps {
    async fn spill(&self, spill: Spill) -> Result<String, ToolError> {
        self.0(spill)
    }
}

#[test]
fn a_sink_keeps_the_whole_and_its_failure_or_panic_loses_only_the_pointer() {
    let with = |sink: Keeps, text: &str| {
        let output = ToolOutput::text(text);
        let (output, _) = limit_and_spill(output, &limits(10), Some(&sink), &"1".into(), &"t".into())
            .now_or_never()
            .unwrap();
        output.blocks[0].as_text().unwrap().to_owned()
    };
    let keeps = || {
        Keeps(|spill| {
            assert_eq!((spill.call.as_str(), &*spill.tool, spill.text.len()), ("1", "t", 20));
            Ok("read `out.txt`".to_owned())
        })
    };
    let text = "0123456789abcdefghij";
    assert_eq!(with(keeps(), text), "0123\n[… 10 bytes of 20 are left out here; read `out.txt` …]\nefghij");
    assert_eq!(with(Keeps(|_| panic!("not asked for short output")), "short"), "short");
    let full = with(Keeps(|_| Err(ToolError::failed("the disk is full"))), text);
    assert!(full.contains("the whole could not be kept: the disk is full"), "{full}");
    assert!(with(Keeps(|_| panic!("sink")), text).contains("could not be kept"));
}

proptest! {
    #[test]
    fn whatever_the_blocks_and_the_limit_the_counts_add_up(
        parts in prop::collection::vec(prop_oneof![".{0,40}".prop_map(Some), Just(None)], 0..6),
        bytes in 0_usize..120,
    ) {
        let blocks: Vec<_> = parts.iter().map(|p| p.as_ref().map_or_else(|| png(1), Block::text)).collect();
        let total = text_bytes(&blocks);
        let mut cut = blocks.clone();
        let dropped = cut_blocks(&mut cut, bytes, None);
        if total <= bytes {
            prop_assert_eq!((cut, dropped), (blocks, 0));
        } else {
            let notice = notice(dropped, total, None);
            prop_assert_eq!(text_bytes(&cut), total - dropped + notice.len());
            prop_assert!(total - dropped <= bytes);
            let media = |blocks: &[Block]| blocks.iter().filter(|b| b.as_text().is_none()).count();
            prop_assert_eq!(media(&cut), media(&blocks));
        }
    }
}
