"""Panels that ask the user: about a tool call, a host, and what the agent wants to know."""

from swink.app.tui.approval.approvalpanel import ApprovalPanel as ApprovalPanel
from swink.app.tui.approval.askingpanel import AskingPanel as AskingPanel
from swink.app.tui.approval.askingpanel import KeyGuard as KeyGuard
from swink.app.tui.approval.domainpanel import DomainPanel as DomainPanel
from swink.app.tui.approval.formpanel import FormPanel as FormPanel
