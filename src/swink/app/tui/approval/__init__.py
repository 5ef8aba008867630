"""Somebody's word: on a tool call, and on what the agent asks."""

from swink.app.tui.approval.answers import KeyGuard
from swink.app.tui.approval.approvalpanel import ApprovalPanel
from swink.app.tui.approval.askingpanel import AskingPanel
from swink.app.tui.approval.formpanel import FormPanel

__all__ = ["ApprovalPanel", "AskingPanel", "FormPanel", "KeyGuard"]
