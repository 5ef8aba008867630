"""Answers from a folder of texts, whose passages the embedded model finds on this machine.

python folder_rag.py notes "When is the harvest?"     needs ANTHROPIC_API_KEY, extra `local`
"""

import asyncio
import sys
from pathlib import Path

from swink import Agent, tool
from swink.local import LocalEmbedder, similarity


class Folder:
    """The passages of the texts in a folder, with their vectors."""

    def __init__(self, place: Path) -> None:
        # LocalEmbedder("/path/embedding-model.gguf") tells texts apart better.
        self.embedder = LocalEmbedder()
        files = [(path.name, path.read_text("utf-8")) for path in sorted(place.rglob("*.md"))]
        self.passages = [
            f"{name}: {part}" for name, text in files for part in text.split("\n\n") if part.strip()
        ]

    async def index(self) -> None:
        self.vectors = await self.embedder.embed(self.passages)

    async def search(self, question: str, most: int = 4) -> list[str]:
        """The passages that are nearest to a question."""
        [wanted] = await self.embedder.embed([question])
        near = sorted(
            zip(self.passages, self.vectors, strict=True), key=lambda found: -similarity(wanted, found[1])
        )
        return [passage for passage, _ in near[:most]]


async def main(place: Path, question: str) -> None:
    folder = Folder(place)
    await folder.index()
    prompt = "Search the notes, answer from them alone, and name the file."
    agent = Agent("anthropic:claude-sonnet-4-6", system_prompt=prompt, tools=[tool(folder.search)])
    result = await agent.run(question)
    for message in result.messages:
        if message.role == "tool_result":
            print("found:", message.text)
    print(result.raise_for_error().text)


if __name__ == "__main__":
    folder, *words = sys.argv[1:] or ["notes", "When is the harvest?"]
    asyncio.run(main(Path(folder), " ".join(words)))
