'use strict';

/* global session, customer */

/**
 * Soft bans of a storefront: whether a caller is banned, and how to ban one.
 *
 * The session has a copy of the caller's ban, so that a banned caller costs no request:
 * `isRateLimited`, `rateLimitExpire` (epoch ms) and `rateLimitIdentity`, a JSON text with the
 * identity whose ban it is (`of`), when the service last confirmed it (`at`), and the reason of a
 * ban that the service has not stored yet (`unsent`). After five seconds the service is asked
 * again, so an operator's release arrives. While the service cannot be reached, the copy stands
 * until its end.
 */

var Logger = require('dw/system/Logger');
var catraca = require('*/cartridge/scripts/services/catracaService');

var GATE = 'submit_payment';
/** Ten minutes, as the rule of the payment has it. */
var BAN_MS = 600000;
var CONFIRMED_FOR_MS = 5 * 1000;
var DEFAULT_REASON = 'API rejection';
/** The service refuses longer reasons. */
var REASON_CHARACTERS_MAX = 500;
/** As JSON, where some characters take six: a value of the session has 2,000 at most. */
var REASON_JSON_MAX = 1500;

function log() {
  return Logger.getLogger('catraca');
}

/** The type and the value of an identifier: a session id, or else a customer number. */
function identityOf(id) {
  return (id === session.sessionID ? 'session:' : 'customer:') + id;
}

/** The copy in the session, or null. A copy without its identity key belongs to nobody. */
function readCopy() {
  var privacy = session.privacy;
  if (privacy.isRateLimited !== true) {
    return null;
  }
  var mark = privacy.rateLimitIdentity ? JSON.parse(privacy.rateLimitIdentity) : {};
  return { expire: privacy.rateLimitExpire, at: mark.at, of: mark.of, unsent: mark.unsent };
}

function writeCopy(copy) {
  session.privacy.isRateLimited = true;
  session.privacy.rateLimitExpire = copy.expire;
  session.privacy.rateLimitIdentity =
    JSON.stringify({ of: copy.of, at: copy.at, unsent: copy.unsent });
}

function clearCopy() {
  session.privacy.isRateLimited = false;
  session.privacy.rateLimitExpire = null;
  session.privacy.rateLimitIdentity = null;
}

/**
 * Whether a copy that has not ended denies this caller: it is the caller's own, or of the session,
 * whose ban also holds for a customer who logs in.
 */
function holdsFor(copy, id, now) {
  var isOwn = copy !== null &&
    (copy.of === identityOf(id) || copy.of === 'session:' + session.sessionID);
  return isOwn && copy.expire > now;
}

/** What this request pays with, if the route has said so: modules live as long as their request. */
var instrument = null;

/**
 * Adds a third identity to all calls of this request, so that a guest with a new session is still
 * known by the card.
 * @param {string|null} token - what the payment API calls the card; never its number
 */
function setInstrument(token) {
  instrument = token || null;
}

/**
 * Every identity that is known: logging out must not hide the customer of the copy, and a login
 * must not hide the session.
 */
function subjectOf(id, copy) {
  var subject = { session: session.sessionID };
  if (id !== session.sessionID) {
    subject.customer = id;
  } else if (customer && customer.authenticated && customer.profile) {
    subject.customer = customer.profile.customerNo;
  } else if (copy && copy.of && copy.of.indexOf('customer:') === 0) {
    subject.customer = copy.of.substring('customer:'.length);
  }
  if (instrument !== null) {
    subject.instrument = String(instrument);
  }
  return subject;
}

/** The latest end of some blocks in epoch milliseconds; those of `POST /v1/blocks`. */
function latestEnd(blocks) {
  var latest = 0;
  for (var i = 0; i < blocks.length; i += 1) {
    latest = Math.max(latest, catraca.endOf(blocks[i].until));
  }
  return latest;
}

/** Sends a ban to the service, and a second time if there was no answer. */
function sendBlock(subject, remainingMs, reason) {
  var seconds = Math.ceil(remainingMs / 1000);
  return catraca.block(GATE, subject, seconds, reason) ||
    catraca.block(GATE, subject, seconds, reason);
}

/** A ban that the service does not have yet is sent again; otherwise the service is asked. */
function askService(id, copy, now) {
  var subject = subjectOf(id, copy);
  if (!copy || !copy.unsent) {
    return catraca.peek(GATE, subject);
  }
  var seconds = Math.ceil((copy.expire - now) / 1000);
  var stored = catraca.block(GATE, subject, seconds, copy.unsent);
  if (!stored) {
    return null;
  }
  var until = new Date(latestEnd(stored.blocks)).toISOString();
  return { allowed: false, reason: 'blocked', blocked_until: until };
}

/** Whether the service had no store to decide with; its decision says nothing about a ban. */
function isUnavailable(decision) {
  return decision.reason === 'unavailable';
}

/** Copies a ban of the service into the session, or removes the copy of a ban that has ended. */
function takeOver(id, decision, now) {
  if (decision.reason !== 'blocked') {
    clearCopy();
    return !decision.allowed;
  }
  writeCopy({ expire: catraca.endOf(decision.blocked_until), of: identityOf(id), at: now });
  return true;
}

/** Lets a copy stand for five more seconds, because the service cannot confirm it. */
function keepCopy(copy, now) {
  writeCopy({ expire: copy.expire, of: copy.of, at: now, unsent: copy.unsent });
}

/**
 * Whether a caller is banned now.
 * @param {string} id - the customer number, or the session id of a guest
 * @returns {boolean} also false if the service gives no answer and the session has no copy
 */
function isBlocked(id) {
  var now = Date.now();
  var copy = readCopy();
  var isOwn = holdsFor(copy, id, now);
  if (isOwn && now >= copy.at && now - copy.at < CONFIRMED_FOR_MS) {
    return true;
  }
  if (copy !== null && !(copy.expire > now)) {
    clearCopy();
  }
  var decision = askService(id, isOwn ? copy : withoutUnsent(copy), now);
  if (decision !== null && !isUnavailable(decision)) {
    return takeOver(id, decision, now);
  }
  if (isOwn) {
    keepCopy(copy, now);
    return true;
  }
  return decision !== null && !decision.allowed;
}

/** A copy that has ended, or is another identity's, only says which identities are known. */
function withoutUnsent(copy) {
  return copy && { of: copy.of };
}

/**
 * A reason that the service accepts. A character of two units that the cut would halve is left out
 * as a whole.
 */
function boundedReason(reason) {
  var text = String(reason || DEFAULT_REASON).substring(0, REASON_CHARACTERS_MAX);
  while (JSON.stringify(text).length > REASON_JSON_MAX) {
    text = text.substring(0, Math.floor(text.length / 2));
  }
  return text.replace(/[\uD800-\uDBFF]$/, '');
}

/**
 * Bans a caller for ten minutes: at once in this session, and through the service everywhere.
 * @param {string} id - the customer number, or the session id of a guest
 * @param {string} [reason] - for operators
 * @returns {{durable: boolean}} false: only this session is banned, and the ban is sent again
 */
function applyBlock(id, reason) {
  var now = Date.now();
  var why = boundedReason(reason);
  var subject = subjectOf(id, readCopy());
  var copy = { expire: now + BAN_MS, of: identityOf(id), at: now, unsent: why };
  writeCopy(copy);
  var stored = sendBlock(subject, BAN_MS, why);
  if (!stored) {
    log().error('a ban until {0} is not stored, and holds in one session only ({1})',
      new Date(copy.expire).toISOString(), why);
    return { durable: false };
  }
  var end = latestEnd(stored.blocks);
  writeCopy({ expire: end, of: copy.of, at: now });
  // The id of the block finds the identifier in the service; the log has no identifier.
  log().warn('banned until {0} ({1}), block {2}', new Date(end).toISOString(), why,
    stored.blocks[0] ? stored.blocks[0].id : null);
  return { durable: stored.durable === true };
}

/**
 * Reports what an upstream answered, so that the ban rules of the catalog decide; needs a key of
 * the role `check` only.
 * @param {string} id - the customer number, or the session id of a guest
 * @param {{status: number, body: Object}} outcome - of any status, also of an error
 * @returns {boolean|null} whether the caller is banned now; null if the service gave no answer
 */
function reportOutcome(id, outcome) {
  var copy = readCopy();
  var subject = subjectOf(id, copy);
  var decision = catraca.check(GATE, subject);
  if (decision === null || isUnavailable(decision)) {
    return null;
  }
  if (decision.ticket) {
    if (catraca.settle(decision.ticket, outcome) === null) {
      return null;
    }
  }
  var now = Date.now();
  if (holdsFor(copy, id, now) && copy.unsent) {
    return isBlocked(id);
  }
  // The copy is a former answer: only the service knows what the outcome meant.
  var answer = catraca.peek(GATE, subject);
  if (answer === null || isUnavailable(answer)) {
    return null;
  }
  return takeOver(id, answer, now);
}

/** Whole seconds until the ban in the session's copy ends; 0 without one. */
function retryAfter() {
  var copy = readCopy();
  return copy ? Math.max(0, Math.ceil((copy.expire - Date.now()) / 1000)) : 0;
}

module.exports = {
  isBlocked: isBlocked,
  applyBlock: applyBlock,
  reportOutcome: reportOutcome,
  setInstrument: setInstrument,
  retryAfter: retryAfter
};
