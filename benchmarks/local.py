"""The local model: tokens a second for reading and writing, by number of threads.

    python benchmarks/local.py [model] [threads ...]

Without numbers: 1, all physical cores but one (the default), all of them.
"""

import asyncio
import sys

from swink.local import DEFAULT_MODEL
from swink.local.speed import measure_threads

if __name__ == "__main__":
    chosen, *numbers = sys.argv[1:] or [DEFAULT_MODEL]
    print("threads  read tokens/s  write tokens/s  load s  stop ms  MB")
    for each in asyncio.run(measure_threads(chosen, [int(number) for number in numbers], 32)):
        print(
            f"{each.threads:7}  {each.reading:13.1f}  {each.writing:14.1f}  {each.load:6.2f}  "
            f"{each.abort * 1000:7.0f}  {each.memory:.0f}"
        )
