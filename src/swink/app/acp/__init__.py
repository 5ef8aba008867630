"""The coding agent with an editor's face: the Agent Client Protocol (ACP), version 1, on two pipes.

connection       JSON-RPC: requests of both sides, answers, errors, cancellation
parameters       what an editor sends, decoded
editorserver     the methods: which sessions there are, and who may use them
editorsession    one session: its agent, its turns, its mode
narrator         what happens in a run, as updates
questions        calls, hosts, forms and trust, put to the person in the editor
"""

from swink.app.acp.connection import Connection as Connection
from swink.app.acp.editorserver import EditorServer as EditorServer
from swink.app.acp.editorserver import OpenedConversation as OpenedConversation
