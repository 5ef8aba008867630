"""todo: the list lives in the session's state."""

from calling import call, complaint

from swink.tools.coding.todo import STATE_KEY, todo_tools


async def test_the_list_is_written_and_read():
    todo = todo_tools()[0]
    state: dict = {}
    assert (await call(todo, state=state)).text == "[no tasks]"
    written = await call(
        todo,
        state=state,
        tasks=[
            {"text": "look", "status": "done"},
            {"text": "change", "status": "in_progress"},
            {"text": "test"},
        ],
    )
    assert written.text == "[x] look\n[>] change\n[ ] test"
    assert (await call(todo, state=state)).text == written.text
    assert state[STATE_KEY][2] == {"text": "test", "status": "pending"}
    assert (await call(todo, state=state, tasks=[])).text == "[no tasks]"


async def test_a_bad_task_is_explained():
    assert "tasks" in await complaint(todo_tools()[0], tasks=[{"text": "", "status": "soon"}])
