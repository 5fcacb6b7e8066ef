// Books an employee's time. Two requests for one time: one gets 201, the other 409.
import type { NextRequest } from "next/server";

import { bookTimeSlot } from "@catraca/client/booking";

const appointments: object[] = [];

export async function POST(request: NextRequest) {
  const { employee, start_at, duration, fail } = await request.json();
  const start = new Date(start_at);
  const end = new Date(start.getTime() + duration * 60_000);
  const tenant = request.headers.get("x-tenant-id") ?? "none";
  // glue: begin
  const slot = { tenant, calendar: employee, start, end };
  return bookTimeSlot(slot, ({ fence }) => create(fence));
  // glue: end

  /** Where your database would be; it stores the fence and refuses a lower one. */
  async function create(fence: number) {
    if (fail) throw new Error("the payment failed");
    const appointment = { employee, start_at, duration, fence };
    appointments.push(appointment);
    return appointment;
  }
}
