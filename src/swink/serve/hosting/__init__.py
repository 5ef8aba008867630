"""What a served application runs, without HTTP: conversations, and runs that live by themselves."""

from swink.serve.hosting.clienttools import ClientTool as ClientTool
from swink.serve.hosting.conversation import Conversation as Conversation
from swink.serve.hosting.eventlog import Numbered as Numbered
from swink.serve.hosting.folderclaims import FolderClaims as FolderClaims
from swink.serve.hosting.host import Host as Host
from swink.serve.hosting.hostedrun import HostedRun as HostedRun
from swink.serve.hosting.hostedrun import current_run as current_run
from swink.serve.hosting.mailbox import RunWord as RunWord
from swink.serve.hosting.servedagent import WhenBusy as WhenBusy
from swink.serve.hosting.terms import LOCAL as LOCAL
from swink.serve.hosting.terms import AgentRequest as AgentRequest
from swink.serve.hosting.terms import Caller as Caller
from swink.serve.hosting.terms import Factory as Factory
from swink.serve.hosting.terms import ServeLimits as ServeLimits
