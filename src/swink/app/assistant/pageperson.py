"""Asking the person who has the page of a served assistant: over the events of the run that asks.

Permissions → Question        its call was asked about in the events: the page's answer to it
            → Question, once  about no call of the model's own: asked like one, with a name in words
            → DomainQuestion  likewise; a yes holds for the session
"""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from swink.agent.policy import Answer, Approved, Rejected
from swink.app.assistant.person import (
    ABSENT,
    ByRule,
    DomainQuestion,
    Once,
    Question,
    Refuse,
    Reply,
    domain_reply,
)
from swink.app.assistant.rules import CallRule, parse_rule
from swink.errors import MisuseError
from swink.messages.redact.shown import escape_invisible
from swink.serve.hosting import current_run
from swink.serve.wire import Refused


async def ask_on_page(question: Question) -> Reply:
    """What the person says to a question about a call."""
    if (run := current_run()) is None:
        return Refuse(question.notice, by=ABSENT)
    request = question.request
    if question.is_once or question.offers:
        shown = {**request.shown, "note": question.notice or question.offers}
        return _reply(await run.ask_about(question.title or f"{request.name}?", shown))
    if question.notice:
        run.notify(question.notice)
    kept: list[CallRule] = []
    if question.suggested:
        run.offer_rules(request.call_id, [str(rule) for rule in question.suggested], partial(_take, kept))
    reply = _reply(await run.ask_client(request.call_id))
    return ByRule(tuple(kept)) if kept and isinstance(reply, Once) and reply.arguments is None else reply


async def ask_domain_on_page(question: DomainQuestion) -> Reply:
    """What the person says to a host that commands want to reach."""
    if (run := current_run()) is None:
        return Refuse(by=ABSENT)
    commands = "\n".join(map(escape_invisible, question.commands))
    shown = {"host": str(question.wish), "for": commands, "note": "A yes holds for this session."}
    reply = _reply(await run.ask_about("network", shown))
    return domain_reply(question, "a") if isinstance(reply, Once) else reply


def _take(kept: list[CallRule], texts: Sequence[str]) -> None:
    """Take the rules that a person wants kept, as they are written; `Refused` for what allows nothing."""
    try:
        rules = [parse_rule(text) for text in texts]
    except MisuseError as error:
        raise Refused(400, str(error)) from None
    if any(rule.verdict != "allow" for rule in rules):
        raise Refused(400, "a call is allowed by rules that allow; refuse it instead")
    kept[:] = rules


def _reply(answer: Answer) -> Reply:
    match answer:
        case True:
            return Once()
        case Approved(arguments, note):
            return replace(Once(), arguments=arguments, note=note)
        case Rejected(reason):
            return Refuse(reason or "")
        case False:
            return Refuse()
        case _:
            return Refuse(by=ABSENT)
