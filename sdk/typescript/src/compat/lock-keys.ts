/**
 * Keys of locks as text. Each part is percent-encoded, so a part with a colon cannot be taken for
 * two parts.
 */
export type LockTarget =
  | { kind: "appointment"; tenant: string; calendar: string; start: number; end: number }
  | { kind: string; tenant: string | undefined; name: string };

export function appointmentKey(
  tenantId: string,
  barbershopId: string,
  employeeId: string,
  startAt: Date,
  endAt: Date,
): string {
  const range = `${startAt.getTime()}-${endAt.getTime()}`;
  return `lock:appointment:${join([tenantId, barbershopId, employeeId])}:${range}`;
}

export function paymentKey(tenantId: string, paymentId: string): string {
  return `lock:payment:${join([tenantId, paymentId])}`;
}

export function resourceKey(tenantId: string, resourceType: string, resourceId: string): string {
  return `lock:resource:${join([tenantId, resourceType, resourceId])}`;
}

/** The calendar of an employee. */
export function calendarName(barbershopId: string, employeeId: string): string {
  return join([barbershopId, employeeId]);
}

/** What a key locks: a range of time, a name of a tenant, or any other name. */
export function parseLockKey(key: string): LockTarget {
  const [prefix, kind, tenant, ...rest] = key.split(":");
  const isOurs = prefix === "lock" && kind !== undefined && tenant !== undefined && rest.length > 0;
  if (!isOurs) return { kind: "default", tenant: undefined, name: key };
  const range = /^(\d+)-(\d+)$/.exec(rest[2] ?? "");
  if (kind === "appointment" && range && rest.length === 3) {
    const calendar = `${rest[0]}:${rest[1]}`;
    const [start, end] = [Number(range[1]), Number(range[2])];
    return { kind, tenant: decodeURIComponent(tenant), calendar, start, end };
  }
  return { kind, tenant: decodeURIComponent(tenant), name: rest.join(":") };
}

function join(parts: string[]): string {
  return parts.map(encodeURIComponent).join(":");
}
