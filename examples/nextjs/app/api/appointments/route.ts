// Books an employee's time. Two requests for one time: one gets 201, the other 409.
import type { NextRequest } from "next/server";

// glue: begin
import { LockTakenError } from "@catraca/client";

import { catraca } from "../../../catraca";
// glue: end

const appointments: object[] = [];

export async function POST(request: NextRequest) {
  const { employee, start_at, duration, fail } = await request.json();
  const start = new Date(start_at);
  const end = new Date(start.getTime() + duration * 60_000);
  const tenant = request.headers.get("x-tenant-id") ?? "none";
  // glue: begin
  try {
    const slot = { calendar: employee, start, end };
    const appointment = await catraca.withSlot(slot, ({ fence }) => create(fence), { tenant });
    return Response.json(appointment, { status: 201 });
  } catch (error) {
    if (!(error instanceof LockTakenError)) throw error;
    return Response.json({ error: "this time is taken", conflict: true }, { status: 409 });
  }
  // glue: end

  /** Where your database would be; it stores the fence and refuses a lower one. */
  async function create(fence: number) {
    if (fail) throw new Error("the payment failed");
    const appointment = { employee, start_at, duration, fence };
    appointments.push(appointment);
    return appointment;
  }
}
