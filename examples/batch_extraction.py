"""Data out of many texts: typed, checked, eight at a time, each failure by itself, and what it cost.

python batch_extraction.py mails/*.txt > orders.jsonl     needs OPENAI_API_KEY
"""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, json

from swink import Agent
from swink.stream.wrappers import rate_limited, through


class Order(Struct):
    customer: str
    kind: Literal["order", "complaint", "question"]
    amount: Annotated[float, Meta(ge=0)]


extractor = Agent("openai:gpt-5-mini", system_prompt="Take the facts from the mail.", output=Order)


async def extract(texts: dict[str, str]) -> None:
    with through(lambda stream_fn: rate_limited(stream_fn, concurrent=8)):
        results = await asyncio.gather(*(extractor.copy().run(text) for text in texts.values()))
    for name, result in zip(texts, results, strict=True):
        if result.error:
            print(f"{name}: {result.error}", file=sys.stderr)
        else:
            print(json.encode({"file": name, "data": result.output}).decode())
    cost = sum(result.cost.total for result in results if result.cost)
    print(f"{len(texts)} texts, ${cost:.4f}", file=sys.stderr)


if __name__ == "__main__":
    paths = [Path(name) for name in sys.argv[1:]] or sorted(Path("mails").glob("*.txt"))
    asyncio.run(extract({path.name: path.read_text("utf-8") for path in paths}))
