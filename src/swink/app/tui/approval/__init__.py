"""Somebody's word: on a tool call, and on what the agent asks."""

from swink.app.tui.approval.answers import KeyGuard
from swink.app.tui.approval.asking import AskingPanel
from swink.app.tui.approval.form import FormPanel
from swink.app.tui.approval.panel import ApprovalPanel

__all__ = ["ApprovalPanel", "AskingPanel", "FormPanel", "KeyGuard"]
