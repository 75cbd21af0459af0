//! Which test holds which case of the format. A case without a test, or a test that is gone, is a failure here.

use std::collections::BTreeSet;
use std::path::Path;

/// Case by its number in the description of the format, the file of its test, the test.
const CASES: &[(u32, &str, &str)] = &[
    // Parsing and validation
    (1, "tests/it/authoring.rs", "a_parse_says_everything_that_is_read_and_where_it_fails"),
    (2, "tests/it/authoring.rs", "a_parse_says_everything_that_is_read_and_where_it_fails"),
    (3, "tests/it/format_cases.rs", "a_front_matter_that_is_no_front_matter_is_refused_with_its_line"),
    (5, "tests/it/format_cases.rs", "lists_keep_what_counts_in_order"),
    (6, "src/metadata/tests.rs", "escalation_hints_have_defaults"),
    (7, "tests/it/format_cases.rs", "a_fence_inside_a_text_does_not_close_the_front_matter"),
    (8, "tests/it/format_cases.rs", "the_top_and_a_section_each_say_their_own"),
    (9, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (11, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (12, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (13, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (14, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (15, "src/validate/tests.rs", "every_fault_is_found_in_the_order_of_the_modes"),
    (17, "tests/it/authoring.rs", "the_templates_and_examples_can_be_read_and_run"),
    (18, "src/validate/tests.rs", "secrets_come_before_everything_else"),
    // Prompt mode
    (19, "src/prompt.rs", "a_query_stands_before_the_body_and_a_blank_one_is_none"),
    // Templates
    (20, "src/template/tests.rs", "a_reference_alone_keeps_its_type_and_in_a_text_it_becomes_text"),
    (21, "src/template/tests.rs", "a_reference_alone_keeps_its_type_and_in_a_text_it_becomes_text"),
    (23, "src/template/tests.rs", "a_path_that_leads_nowhere_says_where_it_ends"),
    // Compilation
    (24, "tests/it/format_cases.rs", "names_are_sanitised_and_words_have_defaults"),
    (25, "tests/it/pipelines.rs", "approvals_are_the_steps_own_or_the_tools_and_the_highest_counts"),
    (26, "tests/it/pipelines.rs", "what_is_wrong_with_a_pipeline_is_told_at_once_and_whole"),
    (27, "tests/it/format_cases.rs", "a_skill_is_known_by_its_hash_and_compiled_once"),
    // Runs
    (29, "tests/it/pipelines.rs", "input_that_does_not_fit_is_refused_before_anything_runs"),
    (30, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (31, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (32, "tests/it/pipelines.rs", "a_call_is_tried_again_after_a_pause_that_doubles_also_in_loops"),
    (33, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (35, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (36, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (37, "tests/it/pipelines.rs", "long_outputs_are_cut_in_the_text_and_whole_in_the_report"),
    (38, "tests/it/pipelines.rs", "no_secret_leaves_a_pipeline_on_any_path"),
    (39, "tests/it/pipelines.rs", "arguments_keep_their_types_on_the_way_to_the_tool"),
    (39, "tests/it/pipelines.rs", "a_cancel_reaches_the_running_call_and_the_report_says_what_was_done"),
    // Contracts and agents
    (41, "src/agent/contract/tests.rs", "limits_count_code_points_and_an_empty_task_is_none"),
    (42, "src/agent/contract/tests.rs", "only_these_states_follow_each_other"),
    (43, "src/agent/contract/tests.rs", "an_agent_starts_only_what_is_listed"),
    (44, "src/agent/decay/tests.rs", "tools_are_inherited_added_and_denied_in_that_order"),
    (45, "tests/it/agents.rs", "a_host_may_run_the_agents_itself"),
    (47, "tests/it/agents.rs", "arguments_that_make_no_task_are_refused"),
    (48, "tests/it/agents.rs", "a_handoff_goes_to_whoever_listens_and_else_is_recorded_and_run"),
    (49, "tests/it/agents.rs", "an_agent_starts_another_only_if_its_contract_lists_it"),
    (50, "src/agent/report/tests.rs", "a_record_is_read_in_either_spelling_bare_or_in_a_fence"),
    (50, "src/agent/report/tests.rs", "what_is_no_record_is_none"),
    (51, "src/agent/decay/tests.rs", "every_violation_is_named"),
    (53, "src/agent/contract/tests.rs", "the_first_limit_reached_is_named_and_zero_is_none_at_all"),
    // Tree and management
    (54, "tests/it/manage.rs", "tiers_give_lists_and_prompts"),
    (55, "tests/it/manage.rs", "tiers_give_lists_and_prompts"),
    (55, "tests/it/capabilities.rs", "tiers_offer_what_their_nodes_say"),
    (56, "tests/it/manage.rs", "the_tree_is_looked_at_by_id_and_by_name"),
    (57, "tests/it/manage.rs", "a_new_node_has_to_say_who_runs_it_when_for_what_and_from_which_tier"),
    (59, "tests/it/format_cases.rs", "a_node_that_does_not_fit_leaves_nothing_behind"),
    (60, "tests/it/format_cases.rs", "a_skill_overwrites_only_with_what_it_says"),
    // Sources
    (61, "src/sources.rs", "the_higher_source_counts_and_the_other_id_leads_to_it"),
    (61, "src/sources.rs", "only_tools_take_part"),
    // Authoring
    (62, "src/authoring/suggest/tests.rs", "a_template_is_found_by_the_words_of_the_request"),
    (62, "src/authoring/suggest/tests.rs", "capabilities_count_and_are_named_in_a_hint"),
    (63, "tests/it/authoring.rs", "a_new_skill_is_saved_once_nothing_is_wrong_with_it"),
    (63, "tests/it/authoring.rs", "nothing_is_written_or_read_outside_of_the_folder"),
    // Secrets
    (65, "tests/it/manage.rs", "profiles_are_checked_listed_and_removed"),
    (66, "tests/it/manage.rs", "a_profile_is_tested_without_its_value_being_told"),
    (67, "src/redact/tests.rs", "tokens_are_masked_by_their_shapes_and_other_text_stays"),
    // What has to differ from the first program of this format
    (71, "tests/it/pipelines.rs", "no_secret_leaves_a_pipeline_on_any_path"),
    (72, "tests/it/pipelines.rs", "a_failing_step_stops_the_pipeline_and_what_was_done_is_kept"),
    (73, "tests/it/pipelines.rs", "outputs_are_values_that_later_steps_take_apart"),
    (74, "tests/it/agents.rs", "the_tools_of_an_agent_are_always_an_explicit_subset"),
    (75, "src/metadata/tests.rs", "a_mistake_in_a_limit_of_an_agent_is_an_error_and_closes"),
    (77, "tests/it/manage.rs", "a_patch_is_applied_once_with_the_agreement_of_caller_and_host"),
    (78, "tests/it/manage.rs", "what_others_stand_on_is_not_taken_away"),
    (79, "tests/it/authoring.rs", "nothing_is_written_or_read_outside_of_the_folder"),
    (80, "tests/it/manage.rs", "a_profile_is_tested_without_its_value_being_told"),
    (81, "../tool-adapter/src/skill_modes/tests.rs", "what_cannot_run_is_no_tool_and_says_why"),
    (
        81,
        "../tool-adapter/src/skill_pipeline.rs",
        "a_pipeline_is_called_like_any_tool_and_a_failed_one_is_an_error",
    ),
    (84, "src/metadata/tests.rs", "fields_are_read_from_the_top_and_from_every_section_alike"),
    (84, "tests/it/format_cases.rs", "line_ends_and_a_mark_at_the_start_change_nothing"),
    (85, "src/metadata/tests.rs", "every_step_field_is_read_and_arguments_keep_their_types"),
    (85, "src/metadata/tests.rs", "a_template_without_quotes_is_never_lost_silently"),
    (86, "tests/it/authoring.rs", "a_new_skill_is_saved_once_nothing_is_wrong_with_it"),
    (87, "tests/it/format_cases.rs", "names_are_sanitised_and_words_have_defaults"),
    (89, "tests/it/manage.rs", "a_dump_of_the_tree_is_loaded_as_the_same_tree_and_constants_are_made_of_it"),
];

/// Cases of protocols and of the command line, which this crate has not.
const ELSEWHERE: &[u32] = &[68, 69, 83];

/// Numbers that the description leaves out.
const NOT_USED: &[u32] = &[4, 10, 16, 22, 28, 34, 40, 46, 52, 58, 64, 70, 76, 82, 88];

#[test]
fn every_case_of_the_format_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (number, file, test) in CASES {
        let source =
            std::fs::read_to_string(root.join(file)).unwrap_or_else(|_| panic!("{number}: no {file}"));
        let (before, _) = source
            .split_once(&format!("fn {test}("))
            .unwrap_or_else(|| panic!("{number}: {file} has no test {test}"));
        let attribute = before.trim_end().lines().next_back().unwrap_or_default();
        assert!(attribute.trim().starts_with("#["), "{number}: {test} is no test");
    }
    let held: BTreeSet<u32> =
        CASES.iter().map(|(number, ..)| *number).chain(ELSEWHERE.iter().copied()).collect();
    let missing: Vec<u32> = (1..=89).filter(|n| !held.contains(n) && !NOT_USED.contains(n)).collect();
    assert_eq!(missing, [0; 0], "cases without a test");
}
