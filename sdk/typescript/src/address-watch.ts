/**
 * Notices that all requests seem to come from one address, which is then a proxy's and not the
 * client's: everybody would share one counter.
 */
import type { Warning } from "./settings.js";
import type { Subject } from "./types.js";

const CHECKS = 100;
const PRIVATE = /^(10\.|127\.|169\.254\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|::1$|f[cd]|fe80)/i;

export class AddressWatch {
  #address: string | undefined;
  #left = CHECKS;

  /** A warning at the hundredth check, if each of them had the same private address. */
  note(subject: Subject): Warning | undefined {
    if (this.#left <= 0 || subject.ip === undefined) return undefined;
    const address = String(subject.ip);
    this.#address ??= address;
    if (address !== this.#address || !PRIVATE.test(address)) {
      this.#left = 0;
      return undefined;
    }
    this.#left -= 1;
    return this.#left === 0 ? sameAddress(address) : undefined;
  }
}

function sameAddress(address: string): Warning {
  const detail =
    `the first ${CHECKS} checks all had the address ${address}: all clients share one counter; ` +
    "configure the framework's trusted proxies, or `address` of the guard";
  return { code: "same-address", detail };
}
