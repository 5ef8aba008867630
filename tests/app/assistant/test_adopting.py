"""Coming over: what there is of other programs, what it becomes here, and that it never allows more."""

import json
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counts import tried

from swink.app.assistant.adopting import PROGRAMS, Adoptable, Places, find_theirs, write_adopted
from swink.app.assistant.adopting.adopted import NotAdopted
from swink.app.assistant.hookfiles import read_own_hooks
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.settings import load_settings
from swink.app.assistant.skillplaces import find_skills

SECRET = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a project."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return Path(os.path.realpath(tmp_path))


def write(root: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def places(root: Path, *, is_trusted: bool = True) -> Places:
    return Places(root / "home", root / "project", load_settings(), is_trusted)


def found(root: Path, program: str, *, is_trusted: bool = True) -> dict[str, Adoptable]:
    """What is found, by its name."""
    return {finding.name: finding for finding in find_theirs(program, places(root, is_trusted=is_trusted))}


def everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def adopt(root: Path, program: str) -> None:
    for finding in find_theirs(program, places(root)):
        write_adopted(finding, places(root))


def claude_rules(
    root: Path,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    ask: Sequence[str] = (),
    *,
    is_trusted: bool = True,
) -> dict[str, str]:
    """What becomes of rules of a project: the lines of ours, or nothing."""
    permissions = {"allow": allow, "deny": deny, "ask": ask}
    write(root, {"project/.claude/settings.json": {"permissions": permissions}})
    rules = found(root, "claude", is_trusted=is_trusted).items()
    return {
        name: ", ".join(rule.line for rule in getattr(finding.new, "rules", ()))
        for name, finding in rules
        if finding.kind == "rule"
    }


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Bash(npm run test:*)", "allow bash(npm run test *)"),
        ("Bash(npm run *)", "allow bash(npm run *)"),
        ("Bash(make)", "allow bash(make)"),
        ("Bash", "allow bash"),
        ("Bash(*)", "allow bash"),
        ("Edit", "allow edit_file, allow write_file"),
        ("Edit(/src/**)", "allow edit_file(src/**), allow write_file(src/**)"),
        ("Read(./docs/*)", "allow read_file(docs/*)"),
        ("WebFetch", "allow fetch_url"),
        ("mcp__github", "allow mcp(github)"),
        ("mcp__github__*", "allow mcp(github)"),
        ("mcp__github__list_issues", "allow github_list_issues"),
    ],
)
def test_a_rule_with_the_same_meaning_here_is_taken_over(root: Path, theirs: str, ours: str):
    assert claude_rules(root, allow=[theirs]) == {f"allow {theirs}": ours}


@pytest.mark.parametrize(
    "theirs",
    [
        "Bash(npm run*)",
        "Bash(git * main)",
        "Bash(* install)",
        "Bash(python:*)",  # would allow anything
        "Bash(make && rm x)",
        "Bash(sudo:*)",
        "Edit(~/notes/**)",
        "Edit(//etc/**)",
        "Edit(../other/**)",
        "Edit(src/[ab].py)",
        "Write(src/**)",
        "WebFetch(domain:github.com)",
        "Task(explore)",
        "mcp__*",
        "mcp__read__file",  # is named like a tool of our own
        "mcp__github__list_*",
        "Skill",
        "",
        "Bash(",
        "Bash(x)y",
    ],
)
def test_a_rule_without_the_same_meaning_is_not_and_says_why(root: Path, theirs: str):
    assert claude_rules(root, allow=[theirs]) == {f"allow {theirs}": ""}
    assert found(root, "claude")[f"allow {theirs}"].becomes


def test_denials_are_taken_over_with_all_that_they_mean_here(root: Path):
    rules = claude_rules(
        root, deny=["Bash(rm:*)", "Edit(.env)", "Read(./secrets/**)", "Bash(curl http://a/:*)"]
    )
    assert rules == {
        "deny Bash(rm:*)": "deny bash(rm *)",
        "deny Edit(.env)": ", ".join(
            f"deny {tool}({pattern})"
            for tool in ("edit_file", "write_file", "delete_file")
            for pattern in ("**/.env", "**/.env/**")
        ),
        "deny Read(./secrets/**)": "deny read_file(secrets/**), deny search_text(secrets/**)",
        "deny Bash(curl http://a/:*)": "",
    }
    assert "may still read it" in found(root, "claude")["deny Read(./secrets/**)"].becomes


@pytest.mark.parametrize(
    ("allowed", "restricted", "is_taken"),
    [
        ("Bash(git:*)", {"ask": ["Bash(git push:*)"]}, False),
        ("Bash(git push origin:*)", {"ask": ["Bash(git push:*)"]}, False),
        ("Bash(git status:*)", {"ask": ["Bash(git push:*)"]}, True),
        ("Bash(git status:*)", {"ask": ["Bash(git 'status':*)"]}, False),
        ("Bash(git status:*)", {"ask": ["Bash(* push)"]}, False),
        ("Bash(git status:*)", {"ask": ["Bash"]}, False),
        ("Bash(git status:*)", {"ask": ["Edit"]}, True),
        ("Bash(git:*)", {"deny": ["Bash(git push:*)"]}, True),  # the denial is taken over too
        ("Bash(git:*)", {"deny": ["Bash(git push*)"]}, False),
        ("Edit", {"deny": ["Edit(~/x)"]}, False),
        ("Edit", {"ask": ["Edit(src/**)"]}, False),
        ("mcp__github", {"ask": ["mcp__github"]}, False),
        ("mcp__github", {"ask": ["mcp__github__delete"]}, False),
        ("mcp__github", {"ask": ["mcp__*"]}, False),
        ("mcp__github", {"ask": ["mcp__other", "mcp__other__delete", "Bash"]}, True),
        ("mcp__github__list", {"ask": ["mcp__github"]}, False),
        ("mcp__github__list", {"ask": ["mcp__github__delete"]}, True),
        ("mcp__github", {"deny": ["mcp__github__delete"]}, True),
        ("Bash(make)", {"ask": ["mcp__*", "WebSearch"]}, True),
        ("Bash(make)", {"ask": ["B*"]}, False),
    ],
)
def test_nothing_is_allowed_that_they_ask_about_or_deny_and_we_cannot(
    root: Path, allowed: str, restricted: dict[str, list[str]], is_taken: bool
):
    rules = claude_rules(root, [allowed], restricted.get("deny", []), restricted.get("ask", []))
    assert bool(rules[f"allow {allowed}"]) == is_taken


def test_a_rule_of_the_user_is_held_back_by_one_of_the_project(root: Path):
    write(root, {"home/.claude/settings.json": {"permissions": {"allow": ["Bash(git:*)"]}}})
    assert claude_rules(root, ask=["Bash(git push:*)"])["allow Bash(git:*)"] == ""


def test_allowances_of_a_folder_without_trust_are_not_taken_over(root: Path):
    rules = claude_rules(root, is_trusted=False, allow=["Bash(make)"], deny=["Bash(rm:*)"])
    assert rules == {"allow Bash(make)": "", "deny Bash(rm:*)": "deny bash(rm *)"}


def test_everything_of_claude_is_listed_and_written_once(root: Path):
    write(
        root,
        {
            "home/.claude/CLAUDE.md": "Be brief. See @style.md.",
            "home/.claude/commands/Review.md": "---\nallowed-tools: Bash\n---\nReview $1. !`git diff`",
            "home/.claude/agents/critic.md": "---\ndescription: criticises\n---\nYou criticise.",
            "home/.claude/skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads it.\n---\nx",
            "home/.claude/skills/torn/SKILL.md": "---\nname: torn\n",
            "home/.claude/settings.json": {
                "permissions": {"allow": ["Bash(git status:*)"], "defaultMode": "bypassPermissions"},
                "hooks": {
                    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./x"}]}]
                },
            },
            "home/.claude.json": {
                "mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"]}},
                "projects": {str(root / "project"): {"mcpServers": {"local": {"command": "x"}}}},
            },
            "project/CLAUDE.md": "Use tabs.",
            "project/.mcp.json": {"mcpServers": {}},
            "project/.claude/commands/ship.md": "Ship $ARGUMENTS.",
            "project/.claude/settings.local.json": {"permissions": {"allow": ["Bash(make:*)"]}},
        },
    )
    theirs = everything(root)
    states = {name: finding.state for name, finding in found(root, "claude").items()}
    assert states == {
        "CLAUDE.md": "new",  # the user's; the project's, which is read as it is, has the same name
        "/review": "new",
        "/ship": "new",
        ".mcp.json": "read",
        "files": "new",
        "local": "cannot",
        "PreToolUse(Bash) runs ./x": "new",
        "defaultMode bypassPermissions": "cannot",
        "allow Bash(git status:*)": "new",
        "allow Bash(make:*)": "new",
        "pdf": "read",
        "torn": "cannot",
        "critic": "read",
    }
    assert everything(root) == theirs  # only looking changes nothing
    adopt(root, "claude")
    after = everything(root)
    assert {name: after[name] for name in theirs} == theirs  # nor does writing change what is theirs
    config = root / "home" / ".config" / "swink"
    assert (config / "AGENTS.md").read_text() == "Be brief. See @style.md."
    assert (config / "commands" / "review.md").exists()
    assert (root / "project" / ".swink" / "commands" / "ship.md").read_text() == "Ship $ARGUMENTS."
    assert load_settings().mcp == {"files": {"command": "npx", "args": ["-y", "files"]}}
    lines = [rule.line for rule in RuleBook(root / "project").rules]
    assert lines == ["allow bash(make *)", "allow bash(git status *)"]
    again = [finding for finding in find_theirs("claude", places(root)) if finding.new is not None]
    assert again == []
    adopt(root, "claude")
    assert everything(root) == after


def test_secrets_of_servers_become_references(root: Path):
    env = {
        "API_KEY": SECRET,
        "GH_PAT": "hunter",
        "LOG_LEVEL": "debug",
        "PLAIN": SECRET,
        "MINE": "${MINE}",
        "HOME_DIR": "/srv/data",
    }
    servers = {
        "files": {"command": "npx", "env": env},
        "web": {
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"Authorization": f"Bearer {SECRET}"},
        },
        "words": {"command": "npx", "args": ["--token", SECRET]},
        "short": {"command": "npx", "args": ["--password", "hunter2"]},
        "given": {"command": "npx", "args": ["--api-key=hunter2"]},
        "address": {"url": "https://ada:pass@example.com/mcp"},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "odd": {"command": 7},
        "empty": {},
    }
    write(root, {"home/.claude.json": {"mcpServers": servers}})
    kept = found(root, "claude")
    assert [name for name, finding in kept.items() if finding.state == "new"] == ["files", "web"]
    assert "set API_KEY, GH_PAT, PLAIN in the environment" in kept["files"].becomes
    assert "copies the values of LOG_LEVEL, HOME_DIR" in kept["files"].becomes
    assert SECRET not in repr(kept)
    adopt(root, "claude")
    text = (root / "home" / ".config" / "swink" / "config.toml").read_text()
    assert SECRET not in text
    assert tomllib.loads(text)["mcp"] == {
        "files": {
            "command": "npx",
            "env": {
                "API_KEY": "${API_KEY}",
                "GH_PAT": "${GH_PAT}",
                "LOG_LEVEL": "debug",
                "PLAIN": "${PLAIN}",
                "MINE": "${MINE}",
                "HOME_DIR": "/srv/data",
            },
        },
        "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "${WEB_AUTHORIZATION}"}},
    }


def test_the_other_lines_of_config_toml_stay_and_a_name_that_is_taken_is_left(root: Path):
    mine = '# mine\nsave = false # yes\n\n[mcp.files]\ncommand = "other"'
    write(
        root,
        {
            "home/.config/swink/config.toml": mine,
            "home/.claude.json": {"mcpServers": {"files": {"command": "npx"}, "a.b": {"command": "x"}}},
        },
    )
    assert found(root, "claude")["files"].state == "cannot"
    adopt(root, "claude")
    text = (root / "home" / ".config" / "swink" / "config.toml").read_text()
    assert text == f'{mine}\n\n[mcp."a.b"]\ncommand = "x"\n'
    assert load_settings().problems == ()


def test_codex_is_read_as_it_is_written(root: Path):
    write(
        root,
        {
            "home/.codex/config.toml": """
                model = "gpt-5.2"
                approval_policy = "never"
                sandbox_mode = "danger-full-access"
                [mcp_servers.files]
                command = "npx"
                args = ["-y", "files"]
                env_vars = ["FILES_TOKEN"]
                enabled = false
                [mcp_servers.web]
                url = "https://example.com/mcp"
                bearer_token_env_var = "WEB_TOKEN"
                env_http_headers = { "X-Team" = "TEAM" }
            """,
            "home/.codex/AGENTS.md": "Be brief.",
            "home/.codex/prompts/draft.md": "Draft $1.",
            "project/.codex/config.toml": '[mcp_servers.theirs]\ncommand = "x"\n',
            "project/AGENTS.md": "Use tabs.",
        },
    )
    states = {name: finding.state for name, finding in found(root, "codex").items()}
    assert states == {
        "AGENTS.md": "new",
        "/draft": "new",
        "files": "new",
        "web": "new",
        "model gpt-5.2": "new",
        "approval_policy never": "cannot",
        "sandbox_mode danger-full-access": "cannot",
        "theirs": "cannot",
    }
    adopt(root, "codex")
    ours = load_settings()
    assert ours.default_model == "openai:gpt-5.2"
    assert ours.mcp == {
        "files": {
            "command": "npx",
            "args": ["-y", "files"],
            "disabled": True,
            "env": {"FILES_TOKEN": "${FILES_TOKEN}"},
        },
        "web": {
            "url": "https://example.com/mcp",
            "headers": {"X-Team": "${TEAM}", "Authorization": "Bearer ${WEB_TOKEN}"},
        },
    }
    assert [finding for finding in find_theirs("codex", places(root)) if finding.new is not None] == []


def test_opencode_is_read_as_it_is_written_and_its_last_rule_counts(root: Path):
    write(
        root,
        {
            "home/.config/opencode/opencode.jsonc": """{
                // a comment, and a "text" in it
                "mcp": {
                    "files": {"type": "local", "command": ["npx", "-y", "files"],
                              "environment": {"TOKEN": "{env:MY_TOKEN}"}},
                    "web": {"type": "remote", "url": "https://example.com//mcp", "enabled": false,},
                },
                "command": {"Test": {"template": "Test $ARGUMENTS.", "description": "run\\ntests"}},
                "permission": {
                    "*": "ask",
                    "bash": {"*": "ask", "git *": "allow", "rm *": "deny", "git push *": "ask", "ls *": "allow"},
                    "edit": {"*": "allow", "docs/*.md": "deny"},
                    "webfetch": "deny",
                },
                "agent": {"critic": {}},
                "instructions": ["docs/*.md"],
            }""",
            "project/opencode.json": {"mcp": {"servers": {"second": {"type": "local", "command": ["x"]}}}},
            "project/.opencode/commands/ship.md": "Ship.",
        },
    )
    kept = found(root, "opencode")
    lines = {
        name: ", ".join(rule.line for rule in finding.new.rules)  # type: ignore[union-attr]
        for name, finding in kept.items()
        if finding.kind == "rule" and finding.new is not None
    }
    assert lines == {
        "deny bash(rm *)": "deny bash(rm *)",
        "allow bash(ls *)": "allow bash(ls *)",
        "allow edit(*)": "allow edit_file, allow write_file",
        "deny edit(docs/*.md)": ", ".join(
            f"deny {tool}({pattern})"
            for tool in ("edit_file", "write_file", "delete_file")
            for pattern in ("docs/**.md", "docs/**.md/**")
        ),
        "deny webfetch": "deny fetch_url",
    }
    assert (kept["critic"].state, kept["docs/*.md"].state) == ("cannot", "cannot")
    assert kept["second"].state == "cannot"  # it belongs to the project
    adopt(root, "opencode")
    assert load_settings().mcp == {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "${MY_TOKEN}"}},
        "web": {"disabled": True, "url": "https://example.com//mcp"},
    }
    command = root / "home" / ".config" / "swink" / "commands" / "test.md"
    assert command.read_text() == "---\ndescription: run tests\n---\nTest $ARGUMENTS.\n"
    assert [finding for finding in find_theirs("opencode", places(root)) if finding.new is not None] == []


def test_a_broken_file_is_named_with_its_line_and_the_rest_goes_on(root: Path):
    write(
        root,
        {
            "home/.claude/settings.json": '{\n  "permissions": {\n    "allow" ["Bash"]\n}}',
            "home/.claude.json": {"mcpServers": {"files": {"command": "npx"}}},
            "home/.codex/config.toml": 'model = "m"\nbroken\n',
            "project/opencode.json": "[" * 100_000,
            "home/.claude/commands/binary.md": "x",
        },
    )
    (root / "home/.claude/commands/binary.md").write_bytes(b"\xff\xfe\x00")
    (root / "project" / ".claude").mkdir()
    (root / "project" / ".claude" / "settings.json").mkdir()
    claude = [finding for finding in find_theirs("claude", places(root)) if finding.kind == "file"]
    assert [(each.source.parent.parent.name, each.state) for each in claude] == [
        ("home", "cannot"),
        ("project", "cannot"),
    ]
    assert "line 3 column" in claude[0].becomes
    assert found(root, "claude")["files"].state == "new"
    assert found(root, "claude")["binary"].state == "cannot"
    assert "line 2" in found(root, "codex")["config.toml"].becomes
    assert "nested too deeply" in found(root, "opencode")["opencode.json"].becomes


def test_links_of_a_project_bring_nothing_in_and_take_nothing_out(root: Path):
    write(root, {"home/secret": "the secret", "project/.claude/commands/ship.md": "Ship."})
    (root / "project" / ".claude" / "commands" / "leak.md").symlink_to(root / "home" / "secret")
    kept = found(root, "claude")
    assert (kept["leak"].state, kept["/ship"].state) == ("cannot", "new")
    (root / "project" / ".swink").symlink_to(root / "home")
    assert found(root, "claude")["/ship"].state == "cannot"


def test_what_has_come_meanwhile_is_not_overwritten(root: Path):
    write(
        root,
        {"home/.claude/CLAUDE.md": "Be brief.", "home/.claude.json": {"mcpServers": {"a": {"command": "x"}}}},
    )
    listed = find_theirs("claude", places(root))
    mine = '[mcp.a]\ncommand = "mine"\n'
    write(root, {"home/.config/swink/AGENTS.md": "Mine.", "home/.config/swink/config.toml": mine})
    for finding in listed:
        with pytest.raises(NotAdopted, match="by now, and was not changed"):
            write_adopted(finding, places(root))
    assert (root / "home/.config/swink/AGENTS.md").read_text() == "Mine."
    assert (root / "home/.config/swink/config.toml").read_text() == mine


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
_KEYS = ("permissions", "allow", "deny", "ask", "hooks", "mcpServers", "mcp", "servers", "permission", "bash")
_MORE = ("edit", "*", "command", "template", "env", "headers", "url", "args", "agent", "instructions")
NAMES = st.sampled_from([*_KEYS, *_MORE, "projects"])
LIKELY = st.recursive(
    st.sampled_from(["Bash", "Bash(x:*)", "allow", "deny", "npx", "https://a/b", "../x", "\x00", "\ud800"])
    | JSON,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=30,
)
FILES = (
    "home/.claude.json",
    "home/.claude/settings.json",
    "project/.claude/settings.json",
    "project/opencode.json",
    "home/.config/opencode/opencode.jsonc",
)


@tried(15, 400)
@given(st.dictionaries(NAMES, LIKELY, max_size=5) | JSON, st.text(max_size=40))
def test_whatever_their_files_hold_looking_raises_nothing_and_writes_nothing(
    root: Path, content: Any, text: str
):
    write(root, dict.fromkeys(FILES, content))
    for name in ("home/.codex/config.toml", "home/.claude/CLAUDE.md", "project/.claude/commands/x.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    before = everything(root)
    for program in PROGRAMS:
        for finding in find_theirs(program, places(root)):
            assert finding.becomes
            assert (finding.new is not None) == (finding.state == "new")
    assert everything(root) == before


@pytest.mark.parametrize(
    ("program", "name"),
    [("claude", ".mcp.json"), ("claude", "CLAUDE.md"), ("codex", "AGENTS.md"), ("opencode", "AGENTS.md")],
)
def test_what_is_not_read_here_is_not_said_to_be(root: Path, program: str, name: str):
    path = root / "project" / name
    os.mkfifo(path)
    assert found(root, program)[name].becomes == "was not read: it is not a file"
    path.unlink()
    path.write_bytes(b"\xff")
    assert "was not read: " in found(root, program)[name].becomes
    path.write_text("Use tabs.")
    assert found(root, program)[name].becomes == "is read as it is"


def test_agents_are_read_or_copied_or_refused_with_the_reason(root: Path):
    good = "---\ndescription: d\n---\nYou work."
    write(
        root,
        {
            "project/.claude/agents/good.md": good,
            "project/.claude/agents/deep/deep.md": good,
            "project/.claude/agents/broken.md": "x",
            "project/.opencode/agent/other.md": good,
            "project/.opencode/agent/narrow.md": "---\ndescription: d\npermission:\n  edit: deny\n---\nYou work.",
            "home/.claude/agents/mine.md": good,
        },
    )
    theirs = found(root, "claude", is_trusted=False) | found(root, "opencode", is_trusted=False)
    states = {name: (one.state, one.becomes) for name, one in theirs.items() if one.kind == "agent"}
    assert states["good"] == ("read", "is read as it is once the folder is trusted (swink trust): @good")
    assert states["mine"] == ("read", "is read as it is: @mine")
    assert states["broken"][0] == states["deep"][0] == states["narrow"][0] == "cannot"
    assert "line 1" in states["broken"][1]
    assert "not directly in .claude/agents" in states["deep"][1]
    assert states["other"][0] == "new"


def test_the_list_says_what_an_agent_has_here_and_what_is_not_read(root: Path):
    head = "description: d\ntools: Read, Grep, mcp__github\nmodel: sonnet\npermissionMode: acceptEdits\ncolor: red"
    write(
        root,
        {
            "home/.claude/agents/wide.md": f"---\n{head}\n---\nYou work.",
            "home/.claude/agents/plan.md": "---\ndescription: d\ntools: []\npermissionMode: plan\n---\nYou plan.",
        },
    )
    theirs = found(root, "claude", is_trusted=False)
    assert theirs["wide"].becomes == (
        "is read as it is: @wide; its tools are read_file, search_text, mcp(github); its model is sonnet where "
        "it can be had, else its caller's; not read: permissionMode, color"
    )
    assert theirs["plan"].becomes == "is read as it is: @plan; it has no tools; it only reads"


def test_skills_are_read_where_they_are_or_copied_or_named_with_the_link_that_does_it(root: Path):
    text = "---\nname: {}\ndescription: Does it.\n---\nDo it."
    names = ("home/.codex/skills/plain", "home/.codex/skills/large", "project/.agents/skills/theirs")
    write(root, {f"{name}/SKILL.md": text.format(name.rpartition("/")[2]) for name in names})
    write(root, {"home/.codex/skills/large/scripts/run.sh": "true"})
    findings = found(root, "codex", is_trusted=False)
    assert {name: finding.state for name, finding in findings.items()} == {
        "plain": "new",
        "large": "cannot",
        "theirs": "read",
    }
    assert "ln -s ~/.codex/skills/large ~/.agents/skills/" in findings["large"].becomes
    assert "once the folder is trusted" in findings["theirs"].becomes
    adopt(root, "codex")
    assert found(root, "codex")["plain"].state == "here"
    assert find_skills(None).skills["plain"].body == "Do it."


def test_a_hook_of_the_user_is_taken_over_with_its_names_and_once(root: Path):
    hook = {"type": "command", "command": 'echo "done"; exit 0', "timeout": 5}
    hooks = {"Stop": [{"hooks": [hook]}], "PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    for folder in ("home", "project"):
        write(root, {f"{folder}/.claude/settings.json": {"hooks": hooks}})
    findings = [one for one in find_theirs("claude", places(root)) if one.kind == "hook"]
    assert sorted(one.state for one in findings) == ["new", "new", "read", "read"]
    adopt(root, "claude")
    written = load_settings()
    assert written.problems == ()
    entries, problems = read_own_hooks(written.hooks)
    assert problems == []
    assert [(one.event, one.matcher, one.timeout) for one in entries] == [
        ("Stop", "", 5),
        ("PreToolUse", "Bash", 5),
    ]
    assert all(one.foreign_names for one in entries)
    again = [one.state for one in find_theirs("claude", places(root)) if one.kind == "hook"]
    assert sorted(again) == ["here", "here", "read", "read"]
