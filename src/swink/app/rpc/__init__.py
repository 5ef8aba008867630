"""`swink rpc`: conversations and runs of an agent for programs in any language, as lines of JSON."""

from swink.app.rpc.codingagent import ClientPerson as ClientPerson
from swink.app.rpc.codingagent import CodingAgents as CodingAgents
from swink.app.rpc.rpcserver import RpcServer as RpcServer
