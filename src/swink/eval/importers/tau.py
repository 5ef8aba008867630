"""τ-bench: a user with an errand, tools that work on a database, and the state they leave it in."""

from swink.eval.case import Case
from swink.tool import Tool


def domain_tools(case: Case) -> list[Tool]:
    """The tools of the case's domain, with a database of their own; none for other cases."""
    return []
