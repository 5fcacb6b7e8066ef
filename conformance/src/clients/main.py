"""Calls a server with the client that openapi-python-client has generated, and checks every response."""

import importlib
import os
import pkgutil

import catraca_client
from catraca_client import AuthenticatedClient
from catraca_client.api.decide import check, check_batch, settle
from catraca_client.api.locks_and_slots import acquire_lock, release_lock
from catraca_client.models import (
    AcquireLock,
    Check,
    Decision,
    EndedLease,
    EndLease,
    GrantedLease,
    Outcome,
    Problem,
    Reason,
    Settle,
    Settlement,
    SettlementState,
    Subject,
)

ADDRESS = "198.51.100.2"


def expect(what: str, is_true: bool, found: object) -> None:
    if not is_true:
        raise SystemExit(f"python: {what}: {found}")


def subject(**attributes: str) -> Subject:
    return Subject.from_dict(attributes)


def import_all() -> None:
    for module in pkgutil.walk_packages(catraca_client.__path__, "catraca_client."):
        importlib.import_module(module.name)


def main() -> None:
    import_all()
    client = AuthenticatedClient(
        base_url=os.environ["CATRACA_URL"], token=os.environ["CATRACA_KEY"]
    )

    allowed = check.sync(
        client=client, body=Check(gate="login", subject=subject(ip=ADDRESS), cost=2)
    )
    expect("check: decision", isinstance(allowed, Decision), allowed)
    expect("check: allowed", allowed.allowed is True, allowed)
    expect("check: reason", allowed.reason is Reason.OK, allowed)
    expect("check: remaining", allowed.remaining == 0, allowed)

    denied = check.sync(client=client, body=Check(gate="login", subject=subject(ip=ADDRESS)))
    expect("denial: decision", isinstance(denied, Decision), denied)
    expect("denial: denied", denied.allowed is False, denied)
    expect("denial: reason", denied.reason is Reason.OVER_LIMIT, denied)
    expect("denial: retry", 0 < denied.retry_after_ms <= 60_000, denied)

    batch = check_batch.sync(
        client=client,
        body=[
            Check(gate="login", subject=subject(ip=ADDRESS)),
            Check(gate="nowhere", subject=subject(ip=ADDRESS)),
        ],
    )
    expect("batch: results", isinstance(batch, list) and len(batch) == 2, batch)
    expect("batch: decision", isinstance(batch[0], Decision), batch)
    expect("batch: reason", batch[0].reason is Reason.OVER_LIMIT, batch)
    expect("batch: problem", isinstance(batch[1], Problem), batch)
    expect("batch: code", batch[1].code == "unknown-gate", batch)

    lookup = check.sync(
        client=client, body=Check(gate="lookups", subject=subject(participant="python"))
    )
    expect("ticket: decision", isinstance(lookup, Decision), lookup)
    settled = settle.sync(
        client=client, body=Settle(ticket=lookup.ticket, outcome=Outcome(status=404))
    )
    expect("settle: settlement", isinstance(settled, Settlement), settled)
    expect("settle: state", settled.state is SettlementState.SETTLED, settled)
    expect("settle: charge", settled.policies[0].charged == 20, settled)

    lease = acquire_lock.sync(client=client, body=AcquireLock(key="order-python"))
    expect("acquire: lease", isinstance(lease, GrantedLease), lease)
    expect("acquire: fence", lease.fence > 1 << 32, lease)
    released = release_lock.sync(client=client, body=EndLease(lease_id=lease.lease_id))
    expect("release: result", isinstance(released, EndedLease), released)
    expect("release: released", released.released is True, released)

    refused = check.sync_detailed(client=client, body=Check(gate=""))
    expect("problem: status", refused.status_code == 400, refused)
    expect("problem: body", isinstance(refused.parsed, Problem), refused)
    expect("problem: code", refused.parsed.code == "bad-name", refused)

    print("python: 8 calls as expected")


main()
