/** Guards for Deno, Supabase edge functions, Workers, Bun and service workers. */
export { clientAddress } from "../guard/address.js";
export type { AddressSource } from "../guard/address.js";
export { guard, guarded } from "../guard/web.js";
export type { WebGuardOptions } from "../guard/web.js";
