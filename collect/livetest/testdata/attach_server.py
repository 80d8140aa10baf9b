"""Runs a threaded server that infers, and keeps an answer if the client asks for that. It handles out-of-memory
errors itself, as frameworks do, and does not use dpsight. Prints the HTTP statuses that the client got."""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda().eval()
answers = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        try:
            with torch.inference_mode():
                answer = model(torch.ones(4096, 512, device="cuda"))
                if self.path == "/keep":
                    answers.append(answer)
                if self.path == "/fail":
                    torch.empty(1 << 40, dtype=torch.uint8, device="cuda")  # PLANTED
            self.send_response(200)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            self.send_response(507)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def ask(path: str) -> int:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=120).status
    except urllib.error.HTTPError as error:
        return error.code


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
statuses = [ask(path) for path in ("/keep", "/keep", "/", "/fail", "/keep")]
server.shutdown()
print(json.dumps(statuses))
