"""Panels that ask the user: about a tool call, and what the agent wants to know."""

from swink.app.tui.approval.approvalpanel import ApprovalPanel
from swink.app.tui.approval.askingpanel import AskingPanel, KeyGuard
from swink.app.tui.approval.formpanel import FormPanel

__all__ = ["ApprovalPanel", "AskingPanel", "FormPanel", "KeyGuard"]
