"""Every scene, in a plain editor whose frames the schema judges, and in editors made of both published libraries."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from editor_scenes import SCENES
from editorscene import REQUESTS, SDK, serving
from libraries import node_editor, python_editor
from tests.counts import cell_of_more, in_cells, left_to_more

LEFT_OUT = {
    *("terminal/create", "terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"),
    "elicitation/complete",  # for questions on a web page, of which we have none
}
"""What an agent may send and ours never does: docs/editors.md says why."""
NOT_STABLE = {"plan_update", "plan_removed", "subagent_update", "session_message", "session_message_chunk"}
"""Updates that the draft of the protocol adds; editors know the stable ones."""


@in_cells("name", SCENES, every=3)
async def test_a_plain_editor_plays_it(name: str, project: Path):
    scene = SCENES[name]
    async with serving(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)


def published(name: str, field: str, schema: str = "schema.json") -> set[str]:
    """The values that the published schema has for a field of a union, or of an enumeration."""
    path = SDK / "schema" / "v1" / schema
    if not path.exists():
        pytest.skip("@agentclientprotocol/sdk (npm) is not installed; .ci/run installs it")
    found = json.loads(path.read_text("utf-8"))["$defs"][name]
    kinds = found.get("oneOf") or found["anyOf"]
    return {kind["properties"][field]["const"] if field else kind.get("const") for kind in kinds} - {None}


def things_in(frame: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of the protocol's vocabulary is in a frame of the agent's: by the name of its definition."""
    match frame:
        case {"method": "session/update", "params": {"update": update}}:
            yield "method", "session/update"
            yield "SessionUpdate", update["sessionUpdate"]
            if "status" in update and "toolCallId" in update:
                yield "ToolCallStatus", update["status"]
            if "kind" in update:
                yield "ToolKind", update["kind"]
            content = update.get("content") or ()
            for each in [content] if isinstance(content, dict) else content:
                yield "ToolCallContent" if "toolCallId" in update else "ContentBlock", each["type"]
        case {"method": method}:
            yield "method", method
        case {"result": {"stopReason": reason}}:
            yield "StopReason", reason
        case _:
            pass


@left_to_more
async def test_every_kind_of_update_and_request_occurs_in_a_scene(tmp_path: Path):
    counts: Counter[tuple[str, str]] = Counter()
    for name, scene in SCENES.items():
        project = tmp_path / name
        project.mkdir()
        async with serving(scene.replies, *scene.arguments) as editor:
            await scene.play(editor, project)
            counts.update(thing for frame in editor.frames for thing in things_in(frame))

    def never(name: str, wanted: set[str]) -> set[str]:
        return {each for each in wanted if not counts[name, each]}

    assert never("SessionUpdate", published("SessionUpdate", "sessionUpdate")) == set()
    draft = published("SessionUpdate", "sessionUpdate", "schema.unstable.json")
    assert never("SessionUpdate", draft) == NOT_STABLE
    assert never("method", {*REQUESTS} | LEFT_OUT) == LEFT_OUT
    assert never("ToolCallContent", published("ToolCallContent", "type")) == set()
    assert never("ToolCallStatus", {"pending", "in_progress", "completed", "failed"}) == set()
    assert (
        never("StopReason", {"end_turn", "cancelled", "max_tokens", "max_turn_requests", "refusal"}) == set()
    )
    assert never("ContentBlock", {"text", "image"}) == set()


each_scene = pytest.mark.parametrize(
    "name", [name if name == "change" else cell_of_more(name) for name in SCENES]
)


@each_scene
async def test_the_library_of_python_plays_it(name: str, project: Path):
    scene = SCENES[name]
    async with python_editor(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)


@each_scene
async def test_the_library_of_node_plays_it(name: str, project: Path):
    scene = SCENES[name]
    async with node_editor(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)
