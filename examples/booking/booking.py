"""A booking service: holds, books and confirms. Standard library only.

    catraca serve -c examples/booking/catalog.toml
    python3 examples/booking/booking.py 8000 http://127.0.0.1:7878

POST /api/appointments {"employee": "ana", "start_at": "2030-01-07T10:00:00Z", "duration": 30}
answers 201 with the appointment, or 409 if another request has any of that time.
"""

import datetime
import http.client
import http.server
import json
import os
import sys
import threading
import urllib.error
import urllib.request

BOOKINGS = []
WRITING = threading.Lock()
ATTEMPTS = 3


class Unavailable(Exception):
    """Catraca gave no answer that can be read."""


def ask(catraca, call, body):
    """One call to Catraca: its status and its answer."""
    headers = {"Content-Type": "application/json"}
    if "CATRACA_KEY" in os.environ:
        headers["Authorization"] = "Bearer " + os.environ["CATRACA_KEY"]
    request = urllib.request.Request(catraca + call, json.dumps(body).encode(), headers)
    try:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)
    except (OSError, ValueError, http.client.HTTPException) as failure:
        raise Unavailable(str(failure)) from failure


def end(catraca, call, lease):
    """Confirms or cancels a hold. What was stored stays stored, and what failed stays failed: a
    call that fails is a line for operators. Both calls may be repeated."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            status, answer = ask(catraca, call, lease)
            failure = f"{status} {answer.get('detail', '')}"
            if status == 200:
                return
        except Unavailable as unavailable:
            status, failure = 503, unavailable
        if status < 500:
            break
    print(f"{call} failed (attempt {attempt}): {failure}", file=sys.stderr, flush=True)


def end_of(start_at, minutes):
    start = datetime.datetime.fromisoformat(start_at.replace("Z", "+00:00"))
    return (start + datetime.timedelta(minutes=minutes)).isoformat()


def store(appointment, fence):
    """Where a database would be: it refuses a lower fence than it has seen."""
    with WRITING:
        if any(other["fence"] > fence for other in BOOKINGS if other["id"] == appointment["id"]):
            raise RuntimeError("a later holder has stored this appointment")
        BOOKINGS.append({**appointment, "fence": fence})


def book(catraca, tenant, wanted):
    """One hold takes the place of look, lock and look again: it is the check."""
    end_at = end_of(wanted["start_at"], int(wanted["duration"]))
    slot = {"tenant": tenant, "calendar": wanted["employee"], "start": wanted["start_at"], "end": end_at}
    try:
        status, held = ask(catraca, "/v1/slots/hold", slot)
    except Unavailable as unavailable:
        return 503, {"error": str(unavailable)}
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
    except Exception as error:  # nothing was stored: free the time at once
        end(catraca, "/v1/slots/cancel", lease)
        return 500, {"error": str(error)}
    end(catraca, "/v1/slots/confirm", lease)
    return 201, appointment


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
