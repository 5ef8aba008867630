"""What an MCP server asks, put to the person in the form that the agent's own questions have."""

from collections.abc import Sequence

from swink.app.assistant.forms import FillIn, Form, Item
from swink.errors import InvalidInput
from swink.mcp.elicitation import Elicitation, ElicitField, ElicitForm, ElicitUrl
from swink.mcp.webaddress import open_browser
from swink.tools import ToolError

SEND, OPEN, DECLINE, SKIP = "send it", "open it in the browser", "decline", "(leave it out)"
_MOST_CHOICES = 20
"""More than these are named in the question, and written."""


async def answer(asked: Elicitation, fill_in: FillIn) -> dict[str, object] | bool | None:
    """What the person says: the values, no, or nothing."""
    try:
        if isinstance(asked, ElicitUrl):
            return await _open(asked, fill_in)
        return await _fill(asked, fill_in)
    except ToolError:  # the person has left
        return None


async def _open(asked: ElicitUrl, fill_in: FillIn) -> bool | None:
    # What swink says comes first: the server's words could look like it, or be too long for the screen.
    question = f"It asks you to open a page of {asked.host}:\n{asked.url}\n\nIt says: {asked.message}"
    answers = await fill_in(Form([Item(question, (OPEN, DECLINE))], _asker(asked)))
    if answers is None or answers[0] != OPEN:
        return None if answers is None else False
    open_browser(asked.url)  # where there is none, the person has the address
    return True


async def _fill(asked: ElicitForm, fill_in: FillIn) -> dict[str, object] | bool | None:
    values: dict[str, object] = {}
    open_fields: Sequence[ElicitField] = asked.fields
    wrong: dict[str, str] = {}
    while True:
        items = [_item(field, wrong.get(field.name, "")) for field in open_fields]
        items.append(Item(f"Send this to the MCP server {asked.server}?", (SEND, DECLINE)))
        first = Item(f"{asked.message}\n\n{items[0].question}", items[0].choices, items[0].several)
        answers = await fill_in(Form([first, *items[1:]], _asker(asked)))
        if answers is None or answers[-1] != SEND:
            return None if answers is None else False
        wrong = {}
        for field, said in zip(open_fields, answers[:-1], strict=True):
            if said == SKIP and not field.required:
                continue
            try:
                values[field.name] = field.parse(said)
            except InvalidInput as error:
                wrong[field.name] = str(error)
        if not wrong:
            return values
        open_fields = [field for field in open_fields if field.name in wrong]


def _item(field: ElicitField, wrong: str) -> Item:
    about = f": {field.description}" if field.description else ""
    question = f"{field.title or field.name}{about}"
    if wrong:
        question = f"{question}\n({wrong})"
    labels = ["yes", "no"] if field.kind == "boolean" else list(field.choices.values())
    if len(labels) > _MOST_CHOICES:
        question, labels = f"{question}\nOne of: {', '.join(labels)}"[:2_000], []
    if field.kind != "choices" and field.default is not None:
        usual = field.choices.get(str(field.default), str(field.default))
        if isinstance(field.default, bool):
            usual = "yes" if field.default else "no"
        labels = [usual, *(label for label in labels if label != usual)]
    if not field.required:
        labels.append(SKIP)
    return Item(question, tuple(labels), field.kind == "choices")


def _asker(asked: Elicitation) -> str:
    return f"the MCP server {asked.server}"
