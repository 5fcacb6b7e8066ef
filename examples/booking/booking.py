"""A booking service: looks, holds, books and confirms. Standard library only.

    catraca serve -c examples/booking/catalog.toml
    python3 examples/booking/booking.py 8000 http://127.0.0.1:7878

POST /api/appointments {"employee": "ana", "start_at": "2030-01-07T10:00:00Z", "duration": 30}
answers 201 with the appointment, or 409 if anybody else has any of that time.
"""

import datetime
import http.server
import json
import os
import sys
import threading
import urllib.error
import urllib.request

BOOKINGS = []
WRITING = threading.Lock()


def ask(catraca, call, body):
    """One call to Catraca: its status and its answer."""
    headers = {"Content-Type": "application/json"}
    if "CATRACA_KEY" in os.environ:
        headers["Authorization"] = "Bearer " + os.environ["CATRACA_KEY"]
    request = urllib.request.Request(catraca + call, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def end_of(start_at, minutes):
    start = datetime.datetime.fromisoformat(start_at.replace("Z", "+00:00"))
    return (start + datetime.timedelta(minutes=minutes)).isoformat()


def store(appointment, fence):
    """Where a database would be: it refuses a lower fence than it has seen."""
    with WRITING:
        if any(other["fence"] > fence for other in BOOKINGS if other["id"] == appointment["id"]):
            raise RuntimeError("somebody came later")
        BOOKINGS.append({**appointment, "fence": fence})


def book(catraca, tenant, wanted):
    """One hold takes the place of look, lock and look again: it is the check."""
    end_at = end_of(wanted["start_at"], int(wanted["duration"]))
    slot = {"tenant": tenant, "calendar": wanted["employee"], "start": wanted["start_at"], "end": end_at}
    status, held = ask(catraca, "/v1/slots/hold", slot)
    if status == 409:
        return 409, {"error": "this time is not available", "conflict": True}
    if status != 200:
        return 503, {"error": held.get("detail", "no answer")}
    lease = {"lease_id": held["lease_id"]}
    try:
        if wanted.get("fail"):
            raise RuntimeError("the payment failed")
        appointment = {"id": held["fence"], "employee": wanted["employee"],
                       "start_at": wanted["start_at"], "end_at": end_at}
        store(appointment, held["fence"])
        status, _ = ask(catraca, "/v1/slots/confirm", lease)
        if status != 200:
            raise RuntimeError("the hold was over")
        return 201, appointment
    except Exception as error:  # whatever it is: free the time at once, and tell
        ask(catraca, "/v1/slots/cancel", lease)
        return 500, {"error": str(error)}


class Booking(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        wanted = json.loads(self.rfile.read(length))
        tenant = self.headers.get("X-Tenant-Id", "tenant_1")
        status, answer = book(self.server.catraca, tenant, wanted)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    port, catraca = int(sys.argv[1]), sys.argv[2]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Booking)
    server.catraca = catraca
    print(f"booking on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
