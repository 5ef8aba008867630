"""The loop without an Agent: two functions that run a context once and give its events."""

from collections.abc import Sequence

from swink.agent.config import AgentContext, AgentLoopConfig
from swink.agent.engine.ledger import Ledger
from swink.agent.engine.loop import take_turns
from swink.agent.engine.run import Run
from swink.agent.engine.turnsetup import TurnSetup
from swink.agent.eventstream import Buffer, EventStream, Subscribers
from swink.agent.runrequest import check_continue
from swink.agent.session.sessiondiff import SessionDiff
from swink.agent.session.sessionrecorder import SessionRecorder
from swink.messages import Input, Message, as_messages
from swink.messages.history import History, paired
from swink.tools import as_offers


def agent_loop(prompts: Input, context: AgentContext, config: AgentLoopConfig) -> EventStream[None]:
    """Add the prompts to the context and run as `config` says; iterate for the events. The context is not
    changed.
    """
    return _open_stream(paired(as_messages(prompts)), context, config)


def agent_loop_continue(context: AgentContext, config: AgentLoopConfig) -> EventStream[None]:
    """Run as `config` says from where the context stands: after results, a failed reply, a user message."""
    check_continue(context.messages)
    return _open_stream((), context, config)


def _open_stream(
    prompts: Sequence[Message], context: AgentContext, config: AgentLoopConfig
) -> EventStream[None]:
    history = History(context.messages)
    as_offers(context.tools)  # what is no tool is refused before anything starts

    def record(ledger: Ledger) -> SessionRecorder:
        assert config.save is not None
        return SessionRecorder(SessionDiff(config.save, history), ledger)

    def begin(buffer: Buffer) -> Run:
        ledger = Ledger(config, history, buffer.push, config.policies)
        setup = TurnSetup(config, context)
        config.check_key(*setup.routes[0])
        run = Run(setup, ledger, lambda run: buffer.wake(), record=None if config.save is None else record)
        run.start(prompts, take_turns(run))
        return run

    return EventStream(begin, Subscribers(), Run.result)
