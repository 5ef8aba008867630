"""What to expect of a local model on this machine, measured once it is there."""

from swink.errors import AgentError
from swink.system.threads import in_thread

PROMPT = 600
"""Tokens: the most that the prompt of a small model has before the user's words."""
_WORDS = 20


async def expectation(model_id: str) -> str:
    """A sentence on the speed of a local model here; if it could not be measured, one that says why."""
    from swink.local import locate, require_runtime
    from swink.local.speed import pace

    try:
        await in_thread(require_runtime)
        if await in_thread(locate, model_id) is None:
            return f"How fast {model_id} is on this machine is not measured: it is not here yet."
        measured = await pace(model_id)
    except (AgentError, OSError) as error:
        return f"How fast {model_id} is on this machine could not be measured: {error}"
    first, later = measured.first_word(PROMPT), measured.first_word(_WORDS)
    return (
        f"Measured just now: {model_id} writes {measured.writing:.0f} tokens a second on this machine (some "
        f"{measured.writing * 0.7:.0f} words). Its first word comes after about {_seconds(later)}, once the "
        f"instructions of an agent have been read; that takes about {_seconds(first)}, the first time only."
    )


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 1.5 else f"{value:.1f} s"
