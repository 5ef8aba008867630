"""Somebody's word on a tool call."""

from swink.tui.approval.panel import ApprovalPanel, Question, Questions

__all__ = ["ApprovalPanel", "Question", "Questions"]
