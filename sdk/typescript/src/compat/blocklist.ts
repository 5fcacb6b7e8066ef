/** The blocklist of addresses. Changes need a key of the role `admin`. */
import type { Catraca } from "../client.js";
import { CatracaError } from "../errors.js";
import type { AddedEntries, ListPage } from "../types.js";

export interface BlocklistEntry {
  ip_address: string;
  reason: string | null;
  blocked_at: string;
  /** Null: permanent. */
  expires_at: string | null;
}

type Client = Pick<Catraca, "request">;

/** Adds or replaces the entry of an address or a range; without `expiresAt` it is permanent. */
export async function addToBlocklist(
  client: Client,
  ip: string,
  options: { reason?: string; expiresAt?: Date } = {},
): Promise<void> {
  const { reason, expiresAt } = options;
  const body = { range: ip, reason, until: expiresAt?.toISOString() };
  await client.request<AddedEntries>("POST", "/v1/blocklist", body);
}

/** False if there was no entry. */
export async function removeFromBlocklist(client: Client, ip: string): Promise<boolean> {
  try {
    await client.request("DELETE", "/v1/blocklist", { range: ip });
    return true;
  } catch (error) {
    if (error instanceof CatracaError && error.httpStatus === 404) return false;
    throw error;
  }
}

/** All entries about addresses. */
export async function listBlocklist(client: Client): Promise<BlocklistEntry[]> {
  const entries: BlocklistEntry[] = [];
  let after = "";
  for (;;) {
    const page = await client.request<ListPage>("GET", `/v1/blocklist${after}`);
    for (const { range, reason, at, until } of page.entries) {
      if (range == null) continue;
      entries.push({ ip_address: range, reason, blocked_at: at, expires_at: until });
    }
    if (page.next === null) return entries;
    after = `?after=${encodeURIComponent(page.next)}`;
  }
}
