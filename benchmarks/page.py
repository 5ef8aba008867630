"""The page while it streams beside 2,000 blocks: how long its frames are, in Chromium.

python benchmarks/page.py   needs playwright and a chromium; a frame above 50 ms is one that people see
"""

import asyncio
import shutil
import tempfile
from typing import Any

from playwright.async_api import async_playwright

from swink import Agent, tool
from swink.memory import MemoryStore
from swink.messages import ToolCall
from swink.serve.agentapp import agent_app
from swink.serve.asgi import serve_app
from swink.testing import Pause, ScriptedModel

PROMPTS = 500
"""Each makes four blocks: the prompt, a text, a call, a text."""
WORDS = 1_000
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
SPENT = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration")
WATCH = """() => {
  window.frames_ = [];
  let before = performance.now();
  const frame = (now) => { frames_.push(now - before); before = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


@tool
async def read(path: str) -> str:
    """Read a file."""
    return "a line of it\n" * 30


def replies() -> list[Any]:
    """What the model says in the history, and in the run that is watched."""
    turns: list[Any] = []
    for number in range(PROMPTS):
        call = ToolCall(f"call-{number}", "read", {"path": f"file-{number}.txt"})
        turns += [
            [f"Part **{number}** with `code`.\n\n- one\n- two\n\n```python\nx = 1\n```", call],
            ["Done."],
        ]
    words: list[Any] = []
    for number in range(WORDS):
        words += [f"word {number}. " if number % 12 else f"word {number}.\n\n", Pause(0.01)]
    return [*turns, words]


async def main() -> None:
    """Make the history, then watch one run in the browser."""
    model, store = ScriptedModel(replies()), MemoryStore()
    app = agent_app(lambda request: Agent("test:m", stream_fn=model, tools=[read]), store=store, page=True)
    session = await store.create("bench", directory="swink-serve:local")
    agent = Agent("test:m", stream_fn=model, tools=[read], session=session)
    for number in range(PROMPTS):
        await agent.run(f"Prompt {number}")
    async with serve_app(app) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch_persistent_context(
            tempfile.mkdtemp(), executable_path=shutil.which("chromium"), args=list(FLAGS), headless=True
        )
        page = await browser.new_page()
        await page.goto(f"{url}/#{session.id}")
        await page.locator(".prompt").nth(PROMPTS - 1).wait_for()
        blocks = await page.locator("#log .entry").count()
        await page.evaluate(WATCH)
        await page.wait_for_timeout(5_000)
        tell("at rest", await page.evaluate("frames_.splice(0)"))
        metrics = await browser.new_cdp_session(page)
        await metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
        before = await spent(metrics)
        await page.fill("#prompt", "Go")
        await page.keyboard.press("Enter")
        for state in ("busy", "idle"):  # a search through the text would itself cost frames
            await page.locator(f"#composer[data-state={state}]").wait_for(timeout=120_000)
        frames = await page.evaluate("frames_")
        after = await spent(metrics)
        await browser.close()
        await app.aclose()
    print(f"{blocks} blocks, {WORDS} deltas")
    tell("streaming", frames)
    print("CPU of the page, s:", ", ".join(f"{name} {after[name] - before[name]:.2f}" for name in SPENT))


async def spent(metrics: Any) -> dict[str, float]:
    """CPU seconds of the page so far, by what for."""
    found = (await metrics.send("Performance.getMetrics"))["metrics"]
    return {each["name"]: each["value"] for each in found if each["name"] in SPENT}


def tell(what: str, unordered: list[float]) -> None:
    """The frames of a time; those at rest say what the machine itself costs."""
    frames = sorted(unordered)
    median, most = frames[len(frames) // 2], frames[len(frames) * 99 // 100]
    long = sum(frame > 50 for frame in frames)
    print(f"{what}: {len(frames)} frames, median {median:.1f} ms, 99 % {most:.1f} ms", end="")
    print(f", worst {frames[-1]:.1f} ms, above 50 ms: {long}")


if __name__ == "__main__":
    asyncio.run(main())
