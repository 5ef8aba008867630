"""A collector: takes OTLP over HTTP and prints, a line each, the spans and metrics it was sent."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


def show(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        if self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        show(
                            span=span.name,
                            id=span.span_id.hex(),
                            parent=span.parent_span_id.hex(),
                            trace=span.trace_id.hex(),
                            ended=span.end_time_unix_nano >= span.start_time_unix_nano > 0,
                            attributes=sorted(item.key for item in span.attributes),
                            scope=scope.scope.name,
                        )
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        points = metric.histogram.data_points
                        show(
                            metric=metric.name,
                            unit=metric.unit,
                            count=sum(point.count for point in points),
                            bounds=list(points[0].explicit_bounds)[:3],
                        )
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


server = HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_address[1], flush=True)
sys.stdin.close()
server.serve_forever()
