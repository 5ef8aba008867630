"""Agents as files: what is read of them, in which spellings, and what is said of broken ones."""

from pathlib import Path
from string import printable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swink.app.assistant.agentfiles import AgentFile, parse_agent, read_agents
from swink.app.assistant.brought import read_brought
from swink.app.assistant.trust import answer as trust
from swink.app.assistant.trust import look_up
from swink.system.frontmatter import BadFrontMatter, read_front_matter


def parse(text: str, name: str = "reviewer.md") -> AgentFile:
    return parse_agent(Path(name), text.encode())


def agent(*lines: str, body: str = "You review.") -> str:
    return "\n".join(["---", *lines, "---", body])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("You review.", 1, "does not begin with"),
        ("---\ndescription: d\nYou review.", 3, "is not closed"),
        (agent("name: reviewer"), 1, "description is missing"),
        (agent("name: reviewer", "description:"), 3, "description is missing"),
        (agent("description: d", "name: a/b"), 3, "its name 'a/b'"),
        (agent("description: d", "this is no line"), 3, "expected `key: value` here"),
        (agent("description: d", "description: e"), 3, "the key 'description' is there twice"),
        (agent("description: d", "", "max_turns: many"), 4, "max_turns is a number from 1 to"),
        (agent("description: d", "maxTurns: 0"), 3, "maxTurns is a number from 1 to"),
        (agent("description: d", "tools:"), 3, "tools is empty"),
        (agent("description: d", "tools:", "  Read: yes"), 3, "tools is no list"),
        (agent("description: d", "tools: [Read, Grep"), 3, "is not closed"),
        *[
            (agent("description: d", f"{key}: {word}"), 3, "what it denies is not known")
            for key in ("disallowedTools", "disallowed_tools", "disallowed-tools")
            for word in ("'*'", "Web*", "mcp__*", "mcp__git__pu*")
        ],
        (agent('description: "d'), 2, 'the quote " is not closed'),
        (agent("description: d", body=""), 3, "the system prompt is missing"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, line: int, why: str):
    with pytest.raises(BadFrontMatter, match=f"^line {line}: ") as refused:
        parse(text)
    assert why in str(refused.value)


def test_denials_of_all_spellings_count_together():
    lines = ("disallowedTools: Skill, Bash (rm:*)", "disallowed_tools: [Glob]", "permissionMode: Plan")
    found = parse(agent("description: d", *lines))
    assert not any(found.allows(name) for name in ("skill", "bash", "find_files"))
    assert found.reads_only
    denied = parse(agent("description: d", "disallowedTools: mcp__git, mcp__web__*"))
    assert not denied.allows("x", "git")
    assert not denied.allows("x", "web")


def test_what_is_not_utf_8_is_refused_with_its_line():
    with pytest.raises(BadFrontMatter, match="line 3: it is not UTF-8"):
        parse_agent(Path("a.md"), b"---\ndescription: d\nname: \xff\n---\nbody")


def test_all_of_a_file_is_read():
    found = parse(
        agent(
            "name: bugs", "description: Finds bugs.", "tools: read_file, bash", "model: x:y", "max_turns: 7"
        )
    )
    assert (found.name, found.description, found.prompt) == ("bugs", "Finds bugs.", "You review.")
    assert (found.model, found.max_turns, found.notes) == ("x:y", 7, ())
    assert [name for name in ("read_file", "bash", "write_file") if found.allows(name)] == [
        "read_file",
        "bash",
    ]


def test_a_file_without_a_name_is_called_like_the_file():
    assert parse(agent("description: d"), "tester.md").name == "tester"


def test_a_file_as_the_other_program_writes_it_is_read():
    found = parse(
        '---\r\nname: code-reviewer\r\ndescription: Use this agent when: code was written.\\n\\n<example>user: "hi"'
        "</example>\r\ntools: Glob, Grep, Read, WebFetch, TodoWrite, mcp__db__query, mcp__docs\r\nmodel: inherit\r\n"
        "color: red\r\nmaxTurns: 12\r\nhooks:\r\n  PreToolUse:\r\n    - matcher: Bash\r\n---\r\n\r\nYou review.\r\n"
    )
    assert found.description.startswith("Use this agent when: code was written.")
    assert (found.model, found.max_turns) == (None, 12)
    names = ["find_files", "search_text", "read_file", "fetch_url", "todo", "db_query"]
    assert all(found.allows(name) for name in names)
    assert found.allows("anything", "docs")
    assert not found.allows("anything", "db")
    assert not any(found.allows(name) for name in ("bash", "edit_file", "list_files", "task", "web_search"))


@pytest.mark.parametrize(
    "line",
    ["tools: Read, Bash", "tools: [Read, Bash]", 'tools: "Read, Bash"', "tools:\n  - Read\n  - Bash # x"],
)
def test_tools_may_be_written_in_any_form_of_a_list(line: str):
    found = parse(agent("description: d", line))
    assert found.tools is not None
    assert found.tools.names == {"read_file", "bash", "background_output", "background_stop"}


def test_no_tools_at_all_and_all_tools_can_be_said():
    assert not parse(agent("description: d", "tools: []")).allows("read_file")
    assert parse(agent("description: d", "tools: '*'")).allows("read_file")


def test_a_tool_with_a_pattern_is_left_out_and_told():
    found = parse(agent("description: d", "tools: Read, Bash(git diff:*, git log:*)"))
    assert found.notes == (
        "the tool 'Bash(git diff:*, git log:*)' is left out: patterns are not kept; write Bash",
    )
    assert not found.allows("bash")


def test_a_denial_is_taken_wide():
    found = parse(agent("description: d", "disallowedTools: Bash(rm:*), Edit", "permissionMode: plan"))
    assert not any(found.allows(name) for name in ("bash", "edit_file", "write_file", "delete_file"))
    assert found.allows("read_file")
    assert found.reads_only


@given(st.text(alphabet=printable + "äß–…", max_size=300))
def test_any_text_is_an_agent_or_refused_with_a_line_that_it_has(text: str):
    for whole in (text, f"---\n{text}\n---\nbody"):
        line, found = 1, None
        try:
            found = parse_agent(Path("a.md"), whole.encode())
        except BadFrontMatter as error:
            line = error.line
        assert 1 <= line <= len(whole.splitlines()) + 2
        assert found is None or (found.description and found.prompt)


@given(
    st.lists(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,10}", fullmatch=True), min_size=1, max_size=5, unique=True
    )
)
def test_a_list_means_the_same_in_every_form(words: list[str]):
    forms = [", ".join(words), f"[{', '.join(words)}]", "\n".join(["", *[f"- {word}" for word in words]])]
    read = [read_front_matter(f"---\ntools: {form}\n---\n", lenient=True).words("tools") for form in forms]
    assert read == [words, words, words]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    return tmp_path


def write(path: Path, description: str, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(agent(f"description: {description}", *lines))


def test_the_nearest_agent_of_a_name_counts(places: Path):
    project = places / "project"
    order = [
        project / ".swink/agents",
        project / ".agents/agents",
        project / ".claude/agents",
        places / "config/swink/agents",
        places / "home/.agents/agents",
        places / "home/.claude/agents",
    ]
    for folder in reversed(order):
        write(folder / "a.md", str(folder))
        assert read_agents(read_brought(project))[0]["a"].description == str(folder)
    assert read_agents(None)[0]["a"].description == str(order[3])


def test_agents_of_folders_on_the_way_to_the_root_count_and_the_nearest_wins(places: Path):
    project = places / "project"
    below, beside = project / "pkg" / "deep", project / "other"
    below.mkdir(parents=True)
    beside.mkdir()
    for folder in (project, project / "pkg", below, beside):
        write(folder / ".claude/agents/a.md", folder.name)
        write(folder / f".agents/agents/{folder.name}.md", "own")
    found, _ = read_agents(read_brought(project, below))
    assert found["a"].description == "deep"
    assert [*found] == ["a", "deep", "pkg", "project"]
    assert read_agents(read_brought(project, project / "pkg"))[0]["a"].description == "pkg"
    assert [*read_agents(read_brought(project, beside))[0]] == ["a", "other", "project"]


def test_an_answer_about_one_folder_leaves_what_was_allowed_in_another(places: Path):
    project = places / "project"
    (project / ".git").mkdir()
    one, other = project / "one", project / "other"
    for folder in (one, other):
        write(folder / ".claude/agents/a.md", folder.name)
    trust(look_up(one), "y")
    assert look_up(one).is_trusted
    assert look_up(other).changes == ("new: other/.claude/agents/a.md",)
    trust(look_up(other), "y")
    assert look_up(one).is_trusted
    write(one / ".claude/agents/a.md", "changed")
    assert look_up(one).standing == "changed"
    assert look_up(other).is_trusted
    assert look_up(project).is_trusted


def test_broken_files_are_named_and_left_out_and_others_work(places: Path):
    project = places / "project"
    write(project / ".claude/agents/good.md", "works")
    write(project / ".claude/agents/zwin.md", "is late", "name: good")
    (project / ".claude/agents/README.md").write_text("These are our agents.")
    found, notices = read_agents(read_brought(project))
    assert [*found] == ["good"]
    assert found["good"].description == "works"
    assert len(notices) == 2
    assert "README.md is no agent: line 1: the file does not begin" in notices[0]
    assert "zwin.md is left out: good.md beside it is named good too" in notices[1]


def test_a_broken_file_does_not_hide_a_good_one_further_away(places: Path):
    write(places / "home/.claude/agents/a.md", "mine")
    write(places / "project/.claude/agents/a.md", "theirs", "max_turns: x")
    found, notices = read_agents(read_brought(places / "project"))
    assert found["a"].description == "mine"
    assert len(notices) == 1
