"""Groups: which calls of a reply run at the same time, and which after others."""

from swink.agent.config import Partition, ToolExecution
from swink.agent.engine.turnstate import Call

BAD_PARTITION = "error: the tool execution policy gave an invalid partition; no call was run"


def groups_of(mode: ToolExecution, calls: list[Call]) -> list[list[Call]] | None:
    """Calls in the groups they run in; None if a partition is not a permutation of them."""
    if mode == "sequential":
        return [[call] for call in calls]
    if mode == "priority":
        ranked: dict[int, list[Call]] = {}
        for call in calls:
            ranked.setdefault(0 if call.tool is None else call.tool.priority, []).append(call)
        return [ranked[priority] for priority in sorted(ranked, reverse=True)]
    if mode != "concurrent" and callable(mode):
        return _partitioned(calls, mode)
    for call in calls:
        if call.tool is not None and call.tool.sequential:
            return _parted(calls)
    return [calls]


def _parted(calls: list[Call]) -> list[list[Call]]:
    """Calls in groups; one that has to run alone is a group of its own."""
    groups: list[list[Call]] = []
    for call in calls:
        if groups and not _is_alone(call) and not _is_alone(groups[-1][-1]):
            groups[-1].append(call)
        else:
            groups.append([call])
    return groups


def _partitioned(calls: list[Call], partition: Partition) -> list[list[Call]] | None:
    try:
        groups = [list(group) for group in partition([call.as_it_will_run for call in calls])]
        valid = sorted(index for group in groups for index in group) == list(range(len(calls)))
    except TypeError:
        return None
    return [[calls[index] for index in group] for group in groups] if valid else None


def _is_alone(call: Call) -> bool:
    return call.tool is not None and call.tool.sequential
