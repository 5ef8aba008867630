"""Every scene, in a plain editor whose frames the schema judges, and in editors made of both published libraries."""

from pathlib import Path

import pytest
from editor_scenes import SCENES
from editorscene import serving
from libraries import node_editor, python_editor

STABLE = {
    *("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"),
    *("plan", "available_commands_update", "current_mode_update", "config_option_update"),
    *("session_info_update", "usage_update", "notice", "compaction_update", "compaction_summary_chunk"),
}


@pytest.mark.parametrize("name", SCENES)
async def test_a_plain_editor_plays_it(name: str, project: Path):
    scene = SCENES[name]
    async with serving(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)


@pytest.mark.more
async def test_every_kind_of_update_is_in_a_scene(tmp_path: Path):
    kinds: set[str] = set()
    for name, scene in SCENES.items():
        project = tmp_path / name
        project.mkdir()
        async with serving(scene.replies, *scene.arguments) as editor:
            editor.heard = lambda frame: None
            await scene.play(editor, project)
            kinds |= {update["sessionUpdate"] for update in editor.updates()}
    assert STABLE - kinds == set()


@pytest.mark.parametrize("name", ["words", "change"])
async def test_the_library_of_python_plays_it(name: str, project: Path):
    scene = SCENES[name]
    async with python_editor(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)


@pytest.mark.more
@pytest.mark.parametrize("name", SCENES)
async def test_the_library_of_python_plays_every_scene(name: str, project: Path):
    scene = SCENES[name]
    async with python_editor(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)


@pytest.mark.more
@pytest.mark.parametrize("name", SCENES)
async def test_the_library_of_node_plays_every_scene(name: str, project: Path):
    scene = SCENES[name]
    async with node_editor(scene.replies, *scene.arguments) as editor:
        await scene.play(editor, project)
