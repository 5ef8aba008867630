"""What the pages promise: each sentence is there, and has a test that holds it."""

import ast
import re

import pytest

from tests.pages import ROOT

PROMISES = [
    ("library/interruption.md", "Whatever you do, the history stays complete and the next prompt works", "agent/engine/test_interruption.py::test_interrupted_at_every_event"),
    ("library/interruption.md", "Every tool call has exactly one result", "agent/engine/test_interruption.py::test_interrupted_at_every_tick"),
    ("library/interruption.md", "Nothing that is stuck keeps a run from ending", "agent/test_agent.py::test_a_deadline_bounds_model_tool_hook_approval_and_back_off"),
    ("library/interruption.md", "Empty deltas and pings are not content", "agent/engine/test_loop.py::test_a_stream_that_never_gives_content_is_given_up_after_its_own_limit"),
    ("library/durable.md", "a tool that sends money runs at most once, whatever is killed and when", "memory/test_killed_at_every_step.py::test_a_run_that_is_killed_at_any_step_is_taken_up_and_no_tool_runs_twice"),
    ("library/memory.md", "**An append is one transaction.** When it has returned, it survives `kill -9`", "memory/test_crashes.py::test_no_acknowledged_turn_is_missing_after_a_kill"),
    ("library/memory.md", "**Two writers never mix.**", "memory/test_jsonl.py::test_whoever_comes_second_gets_a_conflict_and_can_go_on"),
    ("library/memory.md", "Nothing in a conversation becomes a tag or a script", "memory/test_export_page.py::test_nothing_that_was_said_runs_or_becomes_a_tag"),
    ("library/concepts.md", "The `MessageStart` and `MessageEnd` of a queued message confirm its delivery", "agent/engine/test_loop.py::test_a_steering_message_has_exactly_one_receipt_when_it_enters_the_context"),
    ("library/http-api.md", "a client that leaves does not end the run", "serve/test_native_door.py::test_a_client_that_leaves_does_not_end_the_run"),
    ("library/http-api.md", "so that all clients agree however much each of them saw", "serve/test_runs_survive_kills.py::test_after_a_kill_all_clients_agree_wherever_each_of_them_was"),
    ("guarantees/security.md", "It looks only in absolute entries of the `PATH` that no tool or command can write", "system/test_programs.py::test_entries_that_a_workspace_can_write_do_not_count"),
    ("guarantees/security.md", "A program that was replaced since its first use is not started", "system/test_programs.py::test_a_program_that_was_replaced_since_its_first_use_is_not_started"),
    ("guarantees/security.md", "One module finds and starts all programs", "system/test_programs.py::test_no_other_module_finds_or_starts_a_program"),
    ("guarantees/security.md", "swink's own Python runs isolated", "system/test_programs.py::test_isolated_python_imports_nothing_of_its_directory_or_of_a_workspace"),
    ("guarantees/security.md", "A folder that was refused trust starts nothing", "app/tui/test_untrusted_folders.py::test_no_command_starts_anything_of_a_folder_that_was_refused"),
    ("guarantees/security.md", "start a program outside the sandbox", "tools/coding/test_launching.py::test_programs_that_a_command_plants_on_the_path_are_never_started"),
    ("guarantees/security.md", "Interpreter, environment and package are read-only for commands, wherever they lie", "tools/coding/test_runtime.py::test_a_command_replaces_neither_the_interpreter_nor_a_package_of_its_own_program"),
    ("guarantees/security.md", "Sandboxed commands leave none of them changed or made", "tools/coding/test_obeyed.py::test_commands_leave_nothing_that_programs_obey_at_any_depth"),
    ("guarantees/security.md", "the mode `edits` asks about each of them", "app/assistant/test_permissions.py::test_accept_edits_asks_outside_the_workspace_and_about_what_other_programs_run"),
    ("guarantees/security.md", "The tool writes the very file that was judged, or refuses", "app/assistant/test_write_races.py::test_no_race_is_won_in_mode_edits"),
    ("guarantees/security.md", "a link is shown with the file it leads to", "app/assistant/test_call_targets.py::test_a_question_names_the_file_that_a_link_leads_to"),
    ("guarantees/security.md", "A home as a workspace is read-only, but for its visible folders and files", "tools/coding/test_homes.py::test_commands_plant_nothing_in_a_home"),
    ("guarantees/security.md", "credentials in tool chains are hidden", "tools/coding/test_toolchains.py::test_commands_read_no_credentials_of_tool_chains"),
    ("guarantees/security.md", "A suggested rule is the whole command", "app/assistant/test_rules.py::test_the_suggested_rule_is_the_whole_command_unless_its_options_are_declared"),
    ("guarantees/security.md", "Commands that would print credentials ask", "tools/coding/test_gitsecrets.py::test_what_prints_a_secret_asks"),
    ("guarantees/security.md", "what a shell evaluates is always shown", "messages/test_shown_arguments.py::test_nothing_that_a_shell_evaluates_is_hidden"),
    ("guarantees/security.md", "Secrets are hidden", "messages/test_shown_arguments.py::test_a_secret_is_one_without_digits_too"),
    ("guarantees/security.md", "addresses are shown with the host that a browser opens", "mcp/test_mcp_addresses.py::test_a_browser_goes_where_the_person_was_told"),
    ("guarantees/security.md", "`baggage` of OpenTelemetry goes to no provider and no server", "telemetry/test_telemetry_wire.py::test_an_mcp_server_gets_no_baggage"),
    ("guarantees/security.md", "A served model without a key answers programs on this machine", "local/test_model_server.py::test_without_a_key_only_programs_on_this_machine_are_answered"),
    ("evaluation/scorers.md", "A program that exits before its last line has not passed, and cannot claim that it came to its end", "eval/test_eval_code.py::test_a_program_that_looks_for_the_proof_of_its_end_does_not_pass"),
    ("guarantees/security.md", "idle strangers make room for clients", "serve/test_idle_connections.py::test_strangers_who_say_nothing_make_room"),
    ("guarantees/security.md", "change them unasked: a change asks again", "app/assistant/test_brought.py::test_every_change_of_bytes_names_or_modes_is_asked_about_and_nothing_else"),
    ("guarantees/security.md", "do more: policies, guards, budget and approvals are the assistant's", "app/assistant/test_subagents.py::test_a_tool_that_is_denied_to_the_assistant_is_denied_to_its_sub_agent"),
    ("guarantees/security.md", "make swink read a file of yours", "providers/test_restored_files.py::test_no_way_in_opens_the_file"),
    ("guarantees/security.md", "swink itself in it | hidden, read-only | the level is refused", "tools/coding/test_runtime.py::test_landlock_is_refused_with_the_reason_and_the_remedy"),
    ("coding-agent/protected-files.md", "Sandboxed commands leave none of them changed or made", "tools/coding/test_obeyed.py::test_commands_change_nothing_that_programs_obey_at_any_depth"),
    ("coding-agent/sandbox.md", "hidden, but for tool chains without their credentials", "tools/coding/test_toolchains.py::test_commands_read_no_credentials_of_tool_chains"),
    ("coding-agent/permissions.md", "Secrets are hidden, except in text that a shell would evaluate", "messages/test_shown_arguments.py::test_what_a_machine_acts_on_is_never_hidden"),
    ("coding-agent/permissions.md", "None is suggested for interpreters, `rm`, `sudo`, `curl`, `ssh`, `git push`", "app/assistant/test_rules.py::test_no_rule_is_suggested_for_what_runs_others_destroys_or_publishes"),
    ("coding-agent/permissions.md", "nothing, except what may run a command that a rule denies", "app/cli/test_cli_run.py::test_a_denial_holds_in_mode_off_and_what_may_pass_it_by_is_refused_with_the_reason"),
    ("coding-agent/permissions.md", "A denial comes before everything else, in every mode", "app/assistant/test_permissions.py::test_denials_come_before_trust_rules_and_modes"),
]  # fmt: skip


@pytest.mark.parametrize(("page", "sentence", "test"), PROMISES, ids=[test for *_, test in PROMISES])
def test_the_sentence_stands_on_the_page_and_its_test_exists(page: str, sentence: str, test: str):
    assert sentence in re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text("utf-8"))
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
