"""Programs that serve agents and models to other programs."""

from swink.serve.agentapp import AgentApp as AgentApp
from swink.serve.agentapp import agent_app as agent_app
from swink.serve.hosting import AgentRequest as AgentRequest
from swink.serve.hosting import Caller as Caller
from swink.serve.hosting import ServeLimits as ServeLimits
from swink.serve.web import WebRequest as WebRequest
