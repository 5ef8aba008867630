"""Somebody's word: on a tool call, and on what the agent asks."""

from swink.tui.approval.answers import KeyGuard
from swink.tui.approval.asking import AskingPanel
from swink.tui.approval.form import FormPanel
from swink.tui.approval.panel import ApprovalPanel

__all__ = ["ApprovalPanel", "AskingPanel", "FormPanel", "KeyGuard"]
