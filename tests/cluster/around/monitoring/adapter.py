"""A stand-in of the Prometheus adapter: external metrics by the rules of its configuration, asked of Prometheus each time.

/rules/rules.json: `rules.external` of components/autoscale-queue/prometheus-adapter.yaml, with <<.LabelMatchers>> as its template.
"""

from __future__ import annotations

import datetime
import json
import ssl
import sys
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GROUP = "external.metrics.k8s.io"
PROMETHEUS = "http://prometheus-operated.monitoring.svc.cluster.local:9090/api/v1/query"


class Adapter(BaseHTTPRequestHandler):
    """The two kinds of requests that the API server and an autoscaler make."""

    rules = json.loads(Path("/rules/rules.json").read_text("utf-8"))

    def do_GET(self) -> None:
        """Answer a list of metrics, or the value of one."""
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.strip("/").split("/")
        if parts == ["apis", GROUP, "v1beta1"]:
            self._say(200, self._listed())
        elif parts[:4] == ["apis", GROUP, "v1beta1", "namespaces"] and len(parts) == 6:
            selector = urllib.parse.parse_qs(url.query).get("labelSelector", [""])[0]
            self._value(parts[4], parts[5], selector)
        else:
            self._say(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404})

    def _listed(self) -> dict[str, object]:
        names = [rule["name"]["as"] for rule in self.rules]
        found = [
            {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
            for name in names
        ]
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": found}

    def _value(self, namespace: str, name: str, selector: str) -> None:
        (rule,) = [one for one in self.rules if one["name"]["as"] == name]
        matchers = [f'namespace="{namespace}"']
        matchers += ['{}="{}"'.format(*one.split("=", 1)) for one in selector.split(",") if one]
        query = rule["metricsQuery"].replace("<<.LabelMatchers>>", ",".join(matchers))
        with urllib.request.urlopen(f"{PROMETHEUS}?{urllib.parse.urlencode({'query': query})}", timeout=10) as answer:
            found = json.load(answer)["data"]["result"]
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        items = [
            {
                "metricName": name,
                "metricLabels": {},
                "timestamp": now,
                "value": f"{round(float(one['value'][1]) * 1000)}m",
            }
            for one in found
        ]
        sys.stderr.write(f"{query} is {[one['value'] for one in items]}\n")
        self._say(200, {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/v1beta1", "items": items})

    def _say(self, status: int, body: dict[str, object]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main() -> None:
    """Serve until the end."""
    server = ThreadingHTTPServer(("", 6443), Adapter)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
