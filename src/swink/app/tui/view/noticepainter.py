"""Notices: what happened besides what was said, and what to do about it."""

from swink.app.tui.escaping import visible
from swink.app.tui.markdown import paint_markdown
from swink.app.tui.view.callpainter import Moment, seconds_of
from swink.app.tui.view.painted import MARGIN, Canvas
from swink.events.transcript import AgentStopped, Compacted, Custom, Discarded, Ended, Fallback
from swink.events.transcript.blockkinds import NoticeBlock, Retrying, Spent

_HINTS = {
    "auth": "Check the key: #keys lists them, #key PROVIDER sets one.",
    "throttled": "Wait a moment and send it again, or choose another model with /model.",
    "network": "Check the connection and send it again.",
    "context_window_exceeded": "Shorten the conversation with /compact, or start another with /new.",
    "content_filtered": "Rephrase it, or choose another model with /model.",
    "model_retired": "Choose another model with /model.",
}
_AGAIN = "Send it again, or choose another model with /model."
_SOON = 0.5  # seconds before a rate says something
_LEAST_SUMMARY = 12  # lines of the summary of a compaction that are shown at once


def paint_notice(canvas: Canvas, block: NoticeBlock, moment: Moment, *, is_open: bool) -> None:
    """Paint what happened besides what was said; `is_open` shows the summary of a compaction."""
    look = canvas.look
    match block.notice:
        case Spent() as spent:
            is_known = spent.rate and (spent.seconds or 0) >= _SOON
            rate = f", {spent.rate:.0f} tokens/s" if is_known else ""
            canvas.line([(" " * MARGIN, look.dim), (f"{spent}{rate}", look.dim)], copied=f"{spent}{rate}")
        case Ended(stop_reason="error") as ended:
            _paint_error(canvas, str(ended), _HINTS.get(ended.error_kind, _AGAIN))
        case Ended(stop_reason="length") as ended:
            canvas.text(str(ended), look.warning, first=("! ", look.warning))
            canvas.text("Say “go on” to let it continue.", look.dim)
        case Ended() | AgentStopped() as ended:
            canvas.text(visible(str(ended)), look.warning, first=("■ ", look.warning))
        case Retrying(attempt, _, error):
            left = None if moment.until is None else moment.until - moment.now
            again = f", trying again in {seconds_of(left)}" if left and left > 0 else ""
            told = f"{visible(error)} · attempt {attempt} failed{again}"
            canvas.text(told, look.warning, first=("↻ ", look.warning))
        case Compacted() as compacted:
            rule = (" " + "─" * canvas.width, look.border)
            canvas.line([("── ", look.border), (str(compacted), look.dim), rule], copied=str(compacted))
            if is_open and compacted.summary:
                canvas.text(visible(compacted.summary), look.dim, most=_LEAST_SUMMARY)
        case Fallback() | Discarded() as changed:
            canvas.text(visible(str(changed)), look.warning, first=("↻ ", look.warning))
        case Custom("error") as custom:
            _paint_error(canvas, custom.text, "")
        case Custom("notice", str() as text):
            canvas.text(visible(text.strip()), look.dim)
        case Custom("welcome", str() as text):
            name, _, rest = visible(text).partition("\n")
            canvas.gap()
            canvas.text(name, look.strong, first=("◆ ", look.accent))
            canvas.text(rest, look.dim)
        case Custom("btw" | "review" as kind, str() as text):
            bar = ("▎ ", look.accent)
            canvas.line([bar, ("beside the conversation" if kind == "btw" else "review", look.dim)])
            canvas.place(paint_markdown(text, canvas.width - MARGIN, look), text, gutter=bar)
        case Custom() as custom:
            canvas.text(visible(str(custom)), look.dim, first=("· ", look.accent))


def _paint_error(canvas: Canvas, text: str, hint: str) -> None:
    failed, bar = canvas.look.failed, ("▎ ", canvas.look.failed)
    canvas.text(visible(text.strip()), failed, first=("✗ ", failed), gutter=bar, most=20)
    if hint:
        canvas.text(hint, canvas.look.text, gutter=bar)
