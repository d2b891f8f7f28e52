"""A server that takes all requests, in place of a chat or a Pushgateway: prints its address, and notes method, path
and body of each request as a line in a file."""

import http.server
import sys


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        with open(sys.argv[1], "a") as file:
            file.write(f"{self.command} {self.path} {' '.join(body.split())}\n")
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_PUT = do_POST

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
