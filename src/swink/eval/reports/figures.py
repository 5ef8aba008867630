"""Figures: numbers for people, written the same way in every report."""

from swink.messages.modelspec import format_dollars


def percent(share: float, digits: int = 1) -> str:
    """0.923 as `92.3 %`; a whole is never written for what is a little less."""
    shown = f"{100 * share:.{digits}f}"
    if (share < 1 and float(shown) == 100) or (share > 0 and float(shown) == 0):
        shown = f"{100 * share:.{digits + 2}f}"
    return f"{shown.removesuffix('.' + '0' * digits)} %"


def points(change: float) -> str:
    """A change of a share, in percentage points."""
    return f"{100 * change:+.1f} points"


def dollars(cost: float | None) -> str:
    """A cost in as many digits as it takes to see it."""
    return "unknown" if cost is None else format_dollars(cost, exact=True)


def seconds(duration: float) -> str:
    """A duration in the unit that suits it."""
    if duration < 1:
        return f"{1000 * duration:.0f} ms"
    if duration < 59.95:
        return f"{duration:.1f} s"
    minutes, left = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {left:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
