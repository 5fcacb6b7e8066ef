/**
 * The client's address where the framework does not know the connection (edge functions).
 *
 * Each proxy appends the address that it saw, so only the entries that our own proxies wrote can be
 * trusted: they are at the end. A client can write anything before them.
 */
export interface AddressSource {
  /** The header that the proxy sets; `x-forwarded-for` by default. */
  header?: string;
  /** The number of proxies in front that append to it; 1 by default. */
  hops?: number;
}

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;
const IPV6 = /^[0-9a-f:.]*:[0-9a-f:.]*$/i;

/** The address, or undefined if the header does not have it. */
export function clientAddress(headers: Headers, source: AddressSource = {}): string | undefined {
  const list = headers.get(source.header ?? "x-forwarded-for")?.split(",") ?? [];
  const entry = list[list.length - (source.hops ?? 1)];
  return entry === undefined ? undefined : withoutPort(entry.trim());
}

function withoutPort(entry: string): string | undefined {
  const bracketed = /^\[(.*)\](:\d+)?$/.exec(entry)?.[1];
  const address = bracketed ?? entry.replace(/^([\d.]+):\d+$/, "$1");
  return IPV4.test(address) || IPV6.test(address) ? address : undefined;
}
