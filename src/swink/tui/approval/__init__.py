"""Somebody's word on a tool call."""

from swink.tui.approval.answers import Guard
from swink.tui.approval.panel import ApprovalPanel

__all__ = ["ApprovalPanel", "Guard"]
