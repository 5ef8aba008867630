"""What was judged is what is written: a command that swaps links and directories meanwhile wins no race."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.counts import MORE, cell_of_more, in_cells

from swink import Agent, ToolCall, ToolResultMessage
from swink.agent.policy import Policy, PolicyContext, Turn
from swink.app.assistant.permissions import Permissions
from swink.app.assistant.person import Question, Refuse
from swink.app.assistant.rulebook import RuleBook
from swink.app.assistant.rules import parse_rule
from swink.policies import PathGuard
from swink.testing import ScriptedModel
from swink.tools import read_tools, write_tools
from swink.tools.coding.process import Limits, run
from swink.tools.coding.sandbox import Sandbox
from swink.tools.coding.workspace import Workspace

pytestmark = [
    pytest.mark.more,
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes are Linux's"),
]
ROUNDS = 1_500 if MORE else 60
MATCHES = 20
"""How often the rounds are played anew while no call at all was let run: chance decides that."""
INTACT = "intact\n"

FLIPPER = """
import os, random, time
def put(name, target):
    os.symlink(target, "swap.link")
    os.replace("swap.link", name)
def fill(name):
    with open("swap.file", "w") as file:
        file.write("plain\\n")
    os.replace("swap.file", name)
def away(name):
    if not os.path.islink(name) and os.path.isdir(name):
        os.rename(name, name + str(time.time_ns()))
def wait():
    until = time.perf_counter() + random.random() / 500
    while time.perf_counter() < until:
        pass
{prepare}
print("ready", flush=True)
while True:
    try:
        {there}
        wait()
        {back}
        wait()
    except OSError:
        pass  # the tool was quicker, and has made what was taken away
"""


class Scene(Struct, frozen=True):
    """Who swaps what, the path the model names, and the file that must stay as it is."""

    path: str
    victim: str
    there: str
    back: str
    prepare: str = ""

    @property
    def flipper(self) -> str:
        there, back = (text.replace("\n", "\n        ") for text in (self.there, self.back))
        return FLIPPER.format(prepare=self.prepare, there=there, back=back)


LINK = Scene("notes.md", ".mcp.json", 'put("notes.md", ".mcp.json")', 'fill("notes.md")')
CHAIN = Scene(
    "link.md",
    ".mcp.json",
    'put("hop.md", ".mcp.json")',
    'put("hop.md", "notes.md")',
    'fill("notes.md"); put("hop.md", "notes.md"); put("link.md", "hop.md")',
)
DIRECTORY = Scene(
    "docs/settings.json",
    ".vscode/settings.json",
    'away("docs")\nput("docs", ".vscode")',
    'os.unlink("docs")\nos.rename("docs.real", "docs")\nwait()\nos.rename("docs", "docs.real")',
    'os.rename("docs", "docs.real")',
)
NEW_DIRECTORY = Scene(
    "made/settings.json",
    ".vscode/settings.json",
    'away("made")\nput("made", ".vscode")',
    'os.unlink("made")',
)
RULE = Scene("src/a.md", "other/a.md", 'put("src/a.md", "../other/a.md")', 'fill("src/a.md")')


class Watch(Policy):
    """Counts the turns after which the victim is another file than before."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim
        self.lost = 0

    async def post_turn(self, ctx: PolicyContext, turn: Turn) -> None:
        if not self.victim.exists() or self.victim.read_text() != INTACT:
            self.lost += 1
            self.victim.write_text(INTACT)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (".mcp.json", ".vscode/settings.json", "other/a.md", "src/a.md", "docs/settings.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(INTACT)
    return root


@asynccontextmanager
async def flipping(root: Path, backend: Any, scene: Scene) -> AsyncIterator[None]:
    """A command in the sandbox swaps, as fast as it can, for as long as the block runs."""
    box = Sandbox(root, backends=(backend,))
    said = asyncio.Event()
    output: list[bytes] = []

    def hear(data: bytes) -> None:
        output.append(data)
        said.set()

    launch = await box.launch([sys.executable, "-c", scene.flipper], limits=Limits(wall=600, cpu=600))
    job = asyncio.ensure_future(run(launch, hear))
    try:
        async with asyncio.timeout(60):
            await said.wait()
        assert output[0].startswith(b"ready"), output
        yield
        assert not job.done(), b"".join(output)
    finally:
        job.cancel()
        with suppress(asyncio.CancelledError):
            await job


async def refuse(question: Question) -> Refuse:
    return Refuse()


def permissions(root: Path, *rules: str) -> Permissions:
    book = RuleBook(root, path=root.parent / "permissions")
    book.add([parse_rule(rule) for rule in rules], "project")
    return Permissions("smart" if rules else "edits", workspace=Workspace(root), rules=book, ask=refuse)


async def play(
    root: Path, scene: Scene, call: dict[str, Any], policies: Sequence[Policy] = (), **options: Any
) -> tuple[int, int]:
    """How many rounds changed the victim, and how many calls were let run."""
    lost = let_run = 0
    for _ in range(MATCHES):
        lost, let_run = await play_once(root, scene, call, policies, **options)
        if lost or let_run:
            break
    return lost, let_run


async def play_once(
    root: Path, scene: Scene, call: dict[str, Any], policies: Sequence[Policy] = (), **options: Any
) -> tuple[int, int]:
    watch = Watch(root / scene.victim)
    name, arguments = call["name"], {key: value for key, value in call.items() if key != "name"}
    calls = [[ToolCall(f"c{number}", name, {"path": scene.path, **arguments})] for number in range(ROUNDS)]
    workspace = Workspace(root)
    agent = Agent(
        "test:model",
        tools=[*write_tools(workspace), *read_tools(workspace)],
        stream_fn=ScriptedModel([*calls, "Done."]),
        policies=[*policies, watch],
        **options,
    )
    await agent.run("Go.")
    texts = [message.text for message in agent.messages if isinstance(message, ToolResultMessage)]
    assert len(texts) == ROUNDS
    return watch.lost, sum(not text.startswith(("tool call rejected", "tool call not run")) for text in texts)


WRITE = {"name": "write_file", "content": "written by the tool\n"}
EDIT = {"name": "edit_file", "edits": [{"old": "\n", "new": "!\n", "near_line": 1}]}
backends = pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])


SCENES = {"link": (LINK, WRITE), "directory": (DIRECTORY, WRITE), "new directory": (NEW_DIRECTORY, WRITE)}
if MORE:
    SCENES |= {"edit": (LINK, EDIT), "chain": (CHAIN, WRITE)}


@backends
@in_cells(("scene", "call"), SCENES.values(), ids=SCENES, every=3)
async def test_no_race_is_won_in_mode_edits(root: Path, backend: Any, scene: Scene, call: dict[str, Any]):
    async with flipping(root, backend, scene):
        lost, let_run = await play(root, scene, call, approve=permissions(root), approval_mode="on")
    assert (lost, let_run > 0) == (0, True)


@pytest.mark.parametrize("backend", ["bubblewrap", cell_of_more("landlock")])
async def test_no_race_is_won_against_a_path_rule(root: Path, backend: Any):
    asked = permissions(root, "write_file(src/**)")
    async with flipping(root, backend, RULE):
        lost, let_run = await play(root, RULE, WRITE, approve=asked, approval_mode="on")
    assert (lost, let_run > 0) == (0, True)


@pytest.mark.parametrize("backend", [cell_of_more("bubblewrap"), "landlock"])
async def test_no_race_is_won_against_a_path_guard(root: Path, backend: Any):
    guard = PathGuard(root / "src", base=root)
    async with flipping(root, backend, RULE):
        lost, let_run = await play(root, RULE, WRITE, [guard], approval_mode="off")
    assert (lost, let_run > 0) == (0, True)
