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
    ("library/memory.md", "Sessions of a newer release are refused and left alone", "memory/test_sqlite.py::test_a_file_of_a_newer_version_is_refused_and_left_as_it_is"),
    ("library/stores.md", "A worker that was stopped past its claim runs no tool any more", "memory/test_leases.py::test_a_worker_stopped_past_its_lease_runs_no_tool_any_more"),
    ("library/policies.md", "`Budget` stops a run before the call that may pass the limit", "policies/test_policy_budget.py::test_the_next_call_is_not_made_if_it_may_pass_the_limit"),
    ("library/policies.md", "Several sub-agents at once cannot overshoot", "app/assistant/test_subagents.py::test_a_budget_counts_the_assistant_and_its_sub_agents_together"),
    ("models/api-keys.md", "A key is sent to its own provider and nowhere else, unless you say so", "agent/test_key_owners.py::test_a_fallback_of_another_provider_does_not_get_the_key"),
    ("models/api-keys.md", "A stored key is not sent to a `base_url` of yours", "providers/test_key_sources.py::test_a_stored_key_is_not_sent_to_another_host_and_the_error_says_what_to_pass"),
    ("library/concepts.md", "The `MessageStart` and `MessageEnd` of a queued message confirm its delivery", "agent/engine/test_loop.py::test_a_steering_message_has_exactly_one_receipt_when_it_enters_the_context"),
    ("library/http-api.md", "a client that leaves does not end the run", "serve/test_native_door.py::test_a_client_that_leaves_does_not_end_the_run"),
    ("library/http-api.md", "All clients agree, however much of a run each of them saw", "serve/test_runs_survive_kills.py::test_after_a_kill_all_clients_agree_wherever_each_of_them_was"),
    ("library/http-api.md", "The same `Idempotency-Key` again gives the same `run_id`, from whichever worker", "serve/test_served_conversations.py::test_a_repeated_request_with_a_key_does_not_run_twice_also_on_another_worker"),
    ("library/serving.md", "Two workers never run the same conversation", "serve/test_served_conversations.py::test_two_workers_never_run_one_conversation_and_the_other_one_tells_its_events"),
    ("library/serving.md", "A request is refused whose `Host` is not a name of this machine, or whose `Origin` is elsewhere", "serve/test_served_conversations.py::test_requests_of_web_pages_elsewhere_and_for_other_hosts_are_refused"),
    ("library/serving.md", "A caller sees its own conversations; those of others do not exist for it", "serve/test_served_conversations.py::test_a_caller_sees_its_own_conversations_alone_also_after_a_restart"),
    ("guarantees/security.md", "Programs are looked for only in absolute entries of the `PATH` that no tool or command can write", "system/test_programs.py::test_entries_that_a_workspace_can_write_do_not_count"),
    ("guarantees/security.md", "A program that was replaced since its first use is not started", "system/test_programs.py::test_a_program_that_was_replaced_since_its_first_use_is_not_started"),
    ("guarantees/security.md", "One module finds and starts all programs", "system/test_programs.py::test_no_other_module_finds_or_starts_a_program"),
    ("guarantees/security.md", "swink's own Python runs isolated", "system/test_programs.py::test_isolated_python_imports_nothing_of_its_directory_or_of_a_workspace"),
    ("guarantees/security.md", "A folder that was refused trust starts nothing", "app/tui/test_untrusted_folders.py::test_no_command_starts_anything_of_a_folder_that_was_refused"),
    ("guarantees/security.md", "start a server, a script or a program", "app/tui/test_untrusted_folders.py::test_no_command_starts_anything_of_a_folder_that_was_refused"),
    ("guarantees/security.md", "give instructions", "app/assistant/test_instructions.py::test_without_trust_only_the_users_own_are_read"),
    ("guarantees/security.md", "choose which program of yours is started", "system/test_programs.py::test_entries_that_a_workspace_can_write_do_not_count"),
    ("guarantees/security.md", "decide about its own calls", "app/assistant/test_permissions.py::test_the_mode_says_who_is_asked"),
    ("guarantees/security.md", "The model may not write unasked what other programs obey", "app/assistant/test_permissions.py::test_accept_edits_asks_outside_the_workspace_and_about_what_other_programs_run"),
    ("guarantees/security.md", "start a program outside the sandbox", "tools/coding/test_launching.py::test_programs_that_a_command_plants_on_the_path_are_never_started"),
    ("guarantees/security.md", "reach the network (unless you allow it), secrets, other processes", "tools/coding/test_escape.py::test_nothing_gets_out"),
    ("guarantees/security.md", "leave behind what runs later outside", "tools/coding/test_planting.py::test_git_obeys_nothing_that_a_command_planted"),
    ("guarantees/security.md", "Interpreter, environment and package are read-only for commands, wherever they lie", "tools/coding/test_runtime.py::test_a_command_replaces_neither_the_interpreter_nor_a_package_of_its_own_program"),
    ("guarantees/security.md", "Files that other programs obey are on one list, at every depth", "tools/coding/test_obeyed.py::test_every_listed_name_is_found_at_every_depth_in_any_case"),
    ("guarantees/security.md", "Sandboxed commands change and make no file that other programs obey", "tools/coding/test_obeyed.py::test_commands_leave_nothing_that_programs_obey_at_any_depth"),
    ("guarantees/security.md", "The mode `edits` asks about each file that other programs obey", "app/assistant/test_permissions.py::test_accept_edits_asks_outside_the_workspace_and_about_what_other_programs_run"),
    ("guarantees/security.md", "The tool writes the very file that was judged, or refuses", "app/assistant/test_write_races.py::test_no_race_is_won_in_mode_edits"),
    ("guarantees/security.md", "a link is shown with the file it leads to", "app/assistant/test_call_targets.py::test_a_question_names_the_file_that_a_link_leads_to"),
    ("guarantees/security.md", "A home as a workspace is read-only, but for its visible folders and files", "tools/coding/test_homes.py::test_commands_plant_nothing_in_a_home"),
    ("guarantees/security.md", "credentials in tool chains are hidden", "tools/coding/test_toolchains.py::test_commands_read_no_credentials_of_tool_chains"),
    ("guarantees/security.md", "A suggested rule is the whole command", "app/assistant/test_rules.py::test_the_suggested_rule_is_the_whole_command_unless_its_options_are_declared"),
    ("guarantees/security.md", "With a denial, a line of which nobody can tell what it runs asks in every mode", "app/assistant/test_permissions.py::test_what_may_run_something_denied_asks_in_every_mode"),
    ("guarantees/security.md", "Where nobody can be asked, such a line is refused", "app/assistant/test_permissions.py::test_what_may_run_something_denied_is_refused_with_the_reason_where_nothing_is_asked"),
    ("guarantees/security.md", "Commands that would print credentials ask", "tools/coding/test_gitsecrets.py::test_what_prints_a_secret_asks"),
    ("guarantees/security.md", "what a shell evaluates is always shown", "messages/test_shown_arguments.py::test_nothing_that_a_shell_evaluates_is_hidden"),
    ("guarantees/security.md", "Secrets are hidden", "messages/test_shown_arguments.py::test_a_secret_is_one_without_digits_too"),
    ("guarantees/security.md", "Invisible and reordering characters are written out", "messages/test_shown_arguments.py::test_characters_that_hide_or_reorder_text_are_escaped"),
    ("guarantees/security.md", "addresses are shown with the host that a browser opens", "mcp/test_mcp_addresses.py::test_a_browser_goes_where_the_person_was_told"),
    ("guarantees/security.md", "Keys are readable by you alone", "app/cli/test_cli_keys.py::test_a_key_is_stored_used_and_forgotten"),
    ("guarantees/security.md", "Sessions are readable by you alone", "memory/test_sqlite.py::test_the_file_and_its_directory_are_private"),
    ("guarantees/security.md", "Results and reports are readable by you alone", "app/cli/test_cli_eval.py::test_every_file_that_evaluation_writes_is_its_owners_alone"),
    ("guarantees/security.md", "`baggage` of OpenTelemetry goes to no provider", "telemetry/test_telemetry_wire.py::test_a_provider_gets_no_baggage"),
    ("guarantees/security.md", "`baggage` of OpenTelemetry goes to no MCP server", "telemetry/test_telemetry_wire.py::test_an_mcp_server_gets_no_baggage"),
    ("guarantees/security.md", "A served model without a key answers programs on this machine", "local/test_model_server.py::test_without_a_key_only_programs_on_this_machine_are_answered"),
    ("guarantees/security.md", "Nobody uses a proxy without a token of it", "providers/test_proxy.py::test_a_token_reaches_its_own_models_only"),
    ("guarantees/security.md", "use a served model or proxy", "local/test_model_server.py::test_a_page_is_given_no_leave_to_ask"),
    ("evaluation/scorers.md", "A program that exits before its last line has not passed, and cannot claim that it came to its end", "eval/test_eval_code.py::test_a_program_that_looks_for_the_proof_of_its_end_does_not_pass"),
    ("guarantees/security.md", "idle strangers make room for clients", "serve/test_idle_connections.py::test_strangers_who_say_nothing_make_room"),
    ("guarantees/security.md", "change what it brings unasked: a change asks again", "app/assistant/test_brought.py::test_every_change_of_bytes_names_or_modes_is_asked_about_and_nothing_else"),
    ("guarantees/security.md", "change rules, settings or the mode", "app/assistant/test_shell_settings.py::test_a_trusted_project_narrows_and_what_it_wants_beyond_is_told_once"),
    ("guarantees/security.md", "answer for you", "mcp/test_mcp_elicitation.py::test_the_answer_reaches_the_server_with_its_defaults_and_only_if_it_fits"),
    ("guarantees/security.md", "hide where a page leads", "mcp/test_mcp_elicitation.py::test_a_page_is_shown_with_its_whole_address_before_it_is_opened"),
    ("guarantees/security.md", "take the name of another tool", "mcp/test_mcp_names.py::test_a_clash_with_a_tool_of_the_program_drops_the_later_one_and_the_run_goes_on"),
    ("guarantees/security.md", "do more: policies, guards, budget and approvals are the assistant's", "app/assistant/test_subagents.py::test_a_tool_that_is_denied_to_the_assistant_is_denied_to_its_sub_agent"),
    ("guarantees/security.md", "make swink read a file of yours", "providers/test_restored_files.py::test_no_way_in_opens_the_file"),
    ("guarantees/security.md", "Under Landlock, a workspace that contains swink itself is refused", "tools/coding/test_runtime.py::test_landlock_is_refused_with_the_reason_and_the_remedy"),
    ("coding-agent/protected-files.md", "Sandboxed commands change and make no file that other programs obey", "tools/coding/test_obeyed.py::test_commands_change_nothing_that_programs_obey_at_any_depth"),
    ("coding-agent/sandbox.md", "A sandboxed command sees the tool chains of your home, without their credentials", "tools/coding/test_toolchains.py::test_commands_read_no_credentials_of_tool_chains"),
    ("coding-agent/planning.md", "Files are restored byte for byte, also what commands changed", "app/assistant/test_snapshots.py::test_whatever_tools_do_the_tree_is_restored_as_it_was"),
    ("coding-agent/permissions.md", "Secrets are hidden, except in text that a shell would evaluate", "messages/test_shown_arguments.py::test_what_a_machine_acts_on_is_never_hidden"),
    ("coding-agent/permissions.md", "No rule is suggested for interpreters, `rm`, `sudo`, `curl`, `ssh`, `git push` and the like", "app/assistant/test_rules.py::test_no_rule_is_suggested_for_what_runs_others_destroys_or_publishes"),
    ("coding-agent/permissions.md", "In mode `off` nothing is asked about, except what may run a command that a rule denies", "app/cli/test_cli_run.py::test_a_denial_holds_in_mode_off_and_what_may_pass_it_by_is_refused_with_the_reason"),
    ("coding-agent/permissions.md", "A denial comes before everything else, in every mode", "app/assistant/test_permissions.py::test_denials_come_before_trust_rules_and_modes"),
]  # fmt: skip
ON_THE_PAGE = {
    "All clients agree, however much of a run each of them saw": "so that all clients agree however much each of them saw",
    "Programs are looked for only in absolute entries of the `PATH` that no tool or command can write": "It looks only in absolute entries of the `PATH` that no tool or command can write",
    "The model may not write unasked what other programs obey": "write what [other programs obey](../coding-agent/protected-files.md#what-other-programs-obey) unasked",
    "Two workers never run the same conversation": "so two workers never run the same one",
    "Sandboxed commands change and make no file that other programs obey": "Sandboxed commands leave none of them changed or made",
    "The mode `edits` asks about each file that other programs obey": "the mode `edits` asks about each of them",
    "`baggage` of OpenTelemetry goes to no MCP server": "`baggage` of OpenTelemetry goes to no provider and no server",
    "Nobody uses a proxy without a token of it": "use a served model or proxy",
    "Under Landlock, a workspace that contains swink itself is refused": "swink itself in it | hidden, read-only | the level is refused",
    "A sandboxed command sees the tool chains of your home, without their credentials": "hidden, but for tool chains without their credentials",
    "In mode `off` nothing is asked about, except what may run a command that a rule denies": "nothing, except what may run a command that a rule denies",
    "No rule is suggested for interpreters, `rm`, `sudo`, `curl`, `ssh`, `git push` and the like": "None is suggested for interpreters, `rm`, `sudo`, `curl`, `ssh`, `git push` and the like",
    "Sessions of a newer release are refused and left alone": "those of a newer one are refused and left alone",
    "A worker that was stopped past its claim runs no tool any more": "so such a worker runs no tool any more",
    "`Budget` stops a run before the call that may pass the limit": "stops when the limit is reached, or when the next call may pass it",
    "Several sub-agents at once cannot overshoot": "One big call, or several sub-agents at once, therefore cannot overshoot",
    "A stored key is not sent to a `base_url` of yours": "| stored | the provider, or the address that the environment names; not to a `base_url` of yours |",
    "The same `Idempotency-Key` again gives the same `run_id`, from whichever worker": "and to whichever worker: the same key again gives the same `run_id`",
    "A request is refused whose `Host` is not a name of this machine, or whose `Origin` is elsewhere": "**`Origin`** must be the application's own, or one of `origins=`",
    "Where nobody can be asked, such a line is refused": "and is refused where nobody can be asked",
    "Invisible and reordering characters are written out": "invisible and reordering characters are written out",
    "Keys are readable by you alone": "Keys, sessions, results and reports are readable by you alone",
    "Sessions are readable by you alone": "Keys, sessions, results and reports are readable by you alone",
    "Results and reports are readable by you alone": "Keys, sessions, results and reports are readable by you alone",
    "Files are restored byte for byte, also what commands changed": "**Files** are restored byte for byte, also what commands changed",
}
"""How a page says what is a sentence only together with the rest of its table or list."""


def words_of(sentence: str) -> str:
    return ON_THE_PAGE.get(sentence, sentence)


@pytest.mark.parametrize(("page", "sentence", "test"), PROMISES, ids=[test for *_, test in PROMISES])
def test_the_sentence_stands_on_the_page_and_its_test_exists(page: str, sentence: str, test: str):
    assert words_of(sentence) in re.sub(r"\s+", " ", (ROOT / "docs" / page).read_text("utf-8"))
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_sentence_of_who_is_trusted_and_of_what_holds_has_a_test():
    page = (ROOT / "docs/guarantees/security.md").read_text("utf-8")
    tables = page.partition("## Who is trusted")[2].partition("## On which system")[0]
    cells = [line.strip("| ").rpartition(" | ")[2] for line in tables.splitlines() if line.startswith("| ")]
    said = re.split(
        r"[.;] ", ". ".join(cell for cell in cells if cell not in ("may not", "how", "everything"))
    )
    tested = [words_of(sentence) for name, sentence, _ in PROMISES if name == "guarantees/security.md"]
    assert not [each for each in said if not any(part in each or each in part for part in tested)]


def test_what_a_page_says_in_other_words_is_a_promise():
    assert {*ON_THE_PAGE} <= {sentence for _, sentence, _ in PROMISES}
