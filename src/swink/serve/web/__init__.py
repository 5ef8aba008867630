"""One HTTP exchange of a served application: routes, bodies, refusals, streams, and the checks before."""

from swink.serve.web.eventsource import last_event_id as last_event_id
from swink.serve.web.eventsource import send_events as send_events
from swink.serve.web.exchange import ClientGone as ClientGone
from swink.serve.web.exchange import Exchange as Exchange
from swink.serve.web.exchange import StreamWriter as StreamWriter
from swink.serve.web.request import WebRequest as WebRequest
from swink.serve.web.route import Door as Door
from swink.serve.web.route import Route as Route
from swink.serve.web.route import Router as Router
from swink.serve.wire import Refused as Refused
