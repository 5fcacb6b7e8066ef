/**
 * Notices that all checks have one address, which is then a proxy's and not the client's: all
 * clients would share one counter.
 */
import type { Warning } from "./settings.js";
import type { Subject } from "./types.js";

const CHECKS = 100;

export class AddressWatch {
  #address: string | undefined;
  #checks = 0;
  #differs = false;

  /** Whether this is the hundredth check, and each of them had the same address. */
  note(subject: Subject): boolean {
    if (this.#differs || subject.ip === undefined) return false;
    const address = String(subject.ip);
    this.#address ??= address;
    this.#differs = address !== this.#address;
    this.#checks += 1;
    return !this.#differs && this.#checks === CHECKS;
  }

  /** A warning if all checks until now, and at least a hundred, had the same address. */
  warnings(): Warning[] {
    if (this.#differs || this.#checks < CHECKS) return [];
    const detail =
      `the first ${this.#checks} checks all had the address ${this.#address}: all clients share ` +
      "one counter; configure the framework's trusted proxies, or `address` of the guard";
    return [{ code: "same-address", detail }];
  }
}
