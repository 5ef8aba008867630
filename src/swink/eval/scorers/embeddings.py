"""The scorer that compares meanings, by a local embedding model."""

from functools import lru_cache

from swink.eval.case import Case
from swink.eval.result import Score
from swink.eval.scorers.registry import scorer
from swink.eval.scorers.responses import against, wanted_text
from swink.eval.trajectory import Trajectory
from swink.local.embed import Embedder, LocalEmbedder, similarity


@scorer("embedding_similarity", threshold=0.8)
async def embedding_similarity(
    case: Case, trajectory: Trajectory, *, expected: str | None = None, model: str | None = None
) -> Score:
    """The cosine of what a local model makes of the response and of the expected text."""
    wanted = wanted_text(case, expected)
    one, other = await embedder(model).embed([trajectory.response, wanted])
    return Score(min(1.0, max(0.0, similarity(one, other))), against(wanted))


@lru_cache(4)
def embedder(model: str | None) -> Embedder:
    """One per model: it stays loaded from case to case."""
    return LocalEmbedder() if model is None else LocalEmbedder(model)
