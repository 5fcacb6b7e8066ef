'use strict';

// RateLimitHelper on the fake platform, against the real server.
const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');

const { Platform } = require('./support/platform.js');
const { credentialOf, startServer } = require('./support/server.js');
const { request } = require('./support/sync-http.js');

const HELPER = '*/cartridge/scripts/helpers/RateLimitHelper';
let server;

before(async () => { server = await startServer(); });
after(() => server.stop());

function platform(options) {
  return new Platform({ services: credentialOf(server, options), ...options });
}

/** A platform whose service cannot be reached. */
function offline() {
  return platform({ url: 'https://127.0.0.1:1' });
}

function call(method, path, body, role = 'support') {
  const headers = {
    Authorization: `Bearer ${server.keys.RefArch[role]}`, 'Content-Type': 'application/json'
  };
  const url = server.url + path;
  const text = body && JSON.stringify(body);
  const answer = request({ method, url, headers, body: text, timeoutMs: 5000, ca: server.ca });
  return JSON.parse(answer.text);
}

function blocksOf(customer) {
  return call('GET', `/v1/blocks?attribute=customer&value=${customer}`).blocks;
}

// covers: 000-20
test('the module has the two functions of the source, with their arguments', () => {
  const helper = platform().require(HELPER);
  assert.equal(helper.isBlocked.length, 1);
  assert.equal(helper.applyBlock.length, 2);
  assert.equal(helper.isBlocked('00000001'), false);
});

// covers: 000-21
test('the copy is three keys of the session, of which one names the identity', () => {
  const store = platform();
  store.login('00000002');
  store.require(HELPER).applyBlock('00000002', 'API Reject 5');
  const { privacy } = store.session;
  const keys = ['isRateLimited', 'rateLimitExpire', 'rateLimitIdentity'];
  assert.deepEqual(Object.keys(privacy).sort(), keys);
  assert.equal(privacy.isRateLimited, true);
  assert.ok(Math.abs(privacy.rateLimitExpire - (Date.now() + 600_000)) < 60_000);
  assert.equal(JSON.parse(privacy.rateLimitIdentity).of, 'customer:00000002');
});

// covers: 000-08, 000-24
test('a ban in the copy denies without a request', () => {
  const store = platform();
  store.login('00000003');
  const helper = store.require(HELPER);
  helper.applyBlock('00000003', 'API Reject 5');
  const before = store.requests().length;
  for (let attempt = 0; attempt < 100; attempt += 1) {
    assert.equal(helper.isBlocked('00000003'), true);
  }
  assert.equal(store.requests().length, before);
});

// covers: B-01
test('a guest who drops the cookies is still banned with the card', () => {
  const store = platform();
  const helper = store.require(HELPER);
  helper.setInstrument('card-7f3a');
  assert.deepEqual(helper.applyBlock(store.session.sessionID, 'API Reject 5'), { durable: true });
  const other = platform();
  const anew = other.require(HELPER);
  assert.notEqual(other.session.sessionID, store.session.sessionID);
  assert.equal(anew.isBlocked(other.session.sessionID), false, 'no instrument is known yet');
  anew.setInstrument('card-7f3a');
  assert.equal(anew.isBlocked(other.session.sessionID), true);
  const third = platform();
  third.require(HELPER).setInstrument('card-9b01');
  assert.equal(third.require(HELPER).isBlocked(third.session.sessionID), false);
});

// covers: 000-09, 000-26
test('another session of the customer is denied at once', () => {
  const store = platform();
  store.login('00000004');
  assert.deepEqual(store.require(HELPER).applyBlock('00000004', 'API Reject 5'), { durable: true });
  store.newSession('another-browser');
  store.login('00000004');
  assert.equal(store.require(HELPER).isBlocked('00000004'), true);
});

// covers: 000-25
test('a ban of the service is copied with its own end', () => {
  const store = platform();
  store.login('00000005');
  store.require(HELPER).applyBlock('00000005', 'API Reject 5');
  const [{ until }] = blocksOf('00000005');
  store.newSession('another-browser-5');
  store.login('00000005');
  assert.equal(store.require(HELPER).isBlocked('00000005'), true);
  assert.equal(store.session.privacy.rateLimitExpire, Date.parse(until));
});

// covers: 000-23
test('a copy that has ended is cleared, and the service is asked once', () => {
  const store = platform();
  const { privacy, sessionID } = store.session;
  privacy.isRateLimited = true;
  privacy.rateLimitExpire = Date.now() - 1;
  privacy.rateLimitIdentity = JSON.stringify({ of: `session:${sessionID}`, at: Date.now() - 9 });
  assert.equal(store.require(HELPER).isBlocked(sessionID), false);
  assert.equal(privacy.isRateLimited, false);
  assert.equal(store.requests().length, 1);
});

test('a copy ends at its instant, and not a millisecond later', () => {
  let now = 1_900_000_000_000;
  const store = new Platform({
    services: credentialOf(server, { url: 'https://127.0.0.1:1' }), now: () => now
  });
  const helper = store.require(HELPER);
  helper.applyBlock(store.session.sessionID);
  now += 599_999;
  assert.equal(helper.isBlocked(store.session.sessionID), true);
  assert.equal(helper.retryAfter(), 1);
  now += 1;
  assert.equal(helper.isBlocked(store.session.sessionID), false);
  assert.equal(helper.retryAfter(), 0);
});

// covers: B-02, X-18
test("an operator's release arrives after five seconds", () => {
  const store = platform();
  store.login('00000006');
  const helper = store.require(HELPER);
  helper.applyBlock('00000006', 'API Reject 5');
  const [{ id }] = blocksOf('00000006');
  call('DELETE', `/v1/blocks/${id}`, { why: 'the customer called' });
  store.advance(4_000);
  assert.equal(helper.isBlocked('00000006'), true);
  store.advance(1_500);
  assert.equal(helper.isBlocked('00000006'), false);
  assert.equal(store.session.privacy.isRateLimited, false);
});

// covers: 000-31, 000-36, B-03
test('a ban that the service does not get holds in the session, and is sent again', () => {
  const store = platform();
  store.login('00000007');
  const working = store.settings['catraca.http'].credential.url;
  store.settings['catraca.http'].credential.url = 'https://127.0.0.1:1';
  const helper = store.require(HELPER);
  assert.deepEqual(helper.applyBlock('00000007', 'API Reject 5'), { durable: false });
  assert.match(store.logged('error').at(-1).text, /not stored/);
  store.advance(300_000);
  assert.equal(helper.isBlocked('00000007'), true);
  assert.deepEqual(blocksOf('00000007'), []);

  store.settings['catraca.http'].credential.url = working;
  store.advance(6_000);
  assert.equal(helper.isBlocked('00000007'), true);
  const [block] = blocksOf('00000007');
  assert.equal(block.reason, 'API Reject 5');
  const left = Date.parse(block.until) - Date.now();
  assert.ok(left > 280_000 && left <= 295_000, `${left} ms are left`);
});

test('a copy stands to its end while the service cannot be reached', () => {
  const store = platform();
  store.login('00000008');
  const helper = store.require(HELPER);
  helper.applyBlock('00000008', 'API Reject 5');
  store.settings['catraca.http'].credential.url = 'https://127.0.0.1:1';
  for (let minute = 1; minute <= 9; minute += 1) {
    store.advance(60_000);
    assert.equal(helper.isBlocked('00000008'), true);
  }
  store.advance(60_001);
  assert.equal(helper.isBlocked('00000008'), false);
});

// covers: B-06
test('the copy of one identity does not answer for another', () => {
  const store = platform();
  store.login('00000009');
  const helper = store.require(HELPER);
  helper.applyBlock('00000009', 'API Reject 5');
  const [{ id, members }] = blocksOf('00000009');
  const session = [id, ...members.map((member) => member.id)];
  assert.equal(session.length, 2, 'customer and session are one ban');

  // Logged out in the same browser: the session's own ban denies.
  store.logout();
  assert.equal(store.require(HELPER).isBlocked(store.session.sessionID), true);
  assert.equal(store.requests().length, 2, 'the service was asked about the session');

  // The copy is the session's. Another customer in another browser is asked about, and is free.
  const { privacy } = store.session;
  store.newSession('fresh');
  store.session.privacy = privacy;
  store.login('00000010');
  assert.equal(store.require(HELPER).isBlocked('00000010'), false);
});

/** Lets the service answer from here on what `intercept` returns, or again what the server does. */
function intercept(store, answer) {
  store.settings['catraca.http'].intercept = answer;
}

const LOST = { failure: 'connection refused' };
const UNAVAILABLE = { status: 200, text: '{"allowed":false,"reason":"unavailable"}' };

// covers: B-03
test("a guest's ban that is not stored is stored for the customer after a login", () => {
  const store = platform();
  intercept(store, () => LOST);
  const { sessionID } = store.session;
  const banned = store.require(HELPER).applyBlock(sessionID, 'API Reject 5');
  assert.deepEqual(banned, { durable: false });
  store.login('00000020');
  assert.equal(store.require(HELPER).isBlocked('00000020'), true);
  store.advance(6_000);
  assert.equal(store.require(HELPER).isBlocked('00000020'), true);

  intercept(store, null);
  store.advance(6_000);
  assert.equal(store.require(HELPER).isBlocked('00000020'), true);
  const [block] = blocksOf('00000020');
  assert.equal(block.reason, 'API Reject 5');
  assert.equal(block.members.length, 1, 'the session is banned too');
});

// covers: B-03
test("a guest's stored ban stands after a login while the service cannot be reached", () => {
  const store = platform();
  store.require(HELPER).applyBlock(store.session.sessionID, 'API Reject 5');
  intercept(store, () => LOST);
  store.advance(6_000);
  store.login('00000021');
  assert.equal(store.require(HELPER).isBlocked('00000021'), true);
});

test('a decision without a store denies, and neither makes nor ends a copy', () => {
  const store = platform();
  store.login('00000022');
  const helper = store.require(HELPER);
  intercept(store, () => UNAVAILABLE);
  assert.equal(helper.isBlocked('00000022'), true);
  assert.notEqual(store.session.privacy.isRateLimited, true);

  intercept(store, null);
  helper.applyBlock('00000022', 'API Reject 5');
  const { rateLimitExpire } = store.session.privacy;
  store.advance(6_000);
  intercept(store, () => UNAVAILABLE);
  assert.equal(helper.isBlocked('00000022'), true);
  assert.equal(store.session.privacy.rateLimitExpire, rateLimitExpire);
  intercept(store, () => LOST);
  store.advance(6_000);
  assert.equal(helper.isBlocked('00000022'), true);
});

test('a long reason is shortened, so that the ban is stored', () => {
  const store = platform();
  store.login('00000023');
  const banned = store.require(HELPER).applyBlock('00000023', 'é'.repeat(800));
  assert.deepEqual(banned, { durable: true });
  assert.equal(blocksOf('00000023')[0].reason, 'é'.repeat(500));
  store.login('00000024');
  const halved = store.require(HELPER).applyBlock('00000024', `${'é'.repeat(499)}😀`);
  assert.deepEqual(halved, { durable: true });
});

// covers: 000-37
test('a service URL without TLS is refused, and no request is sent', () => {
  const store = platform({ url: server.url.replace('https:', 'http:') });
  const helper = store.require(HELPER);
  assert.equal(helper.isBlocked(store.session.sessionID), false);
  assert.deepEqual(helper.applyBlock(store.session.sessionID), { durable: false });
  assert.equal(store.requests().length, 0);
  assert.match(store.logged('error')[0].text, /must be https/);
});

test('no answer is neither a ban nor a copy', () => {
  const store = offline();
  assert.equal(store.require(HELPER).isBlocked(store.session.sessionID), false);
  assert.notEqual(store.session.privacy.isRateLimited, true);
  assert.equal(store.logged('error').length, 1);
});

//
test('a thousand denials do not open the circuit breaker, five failures do', () => {
  const store = platform();
  store.login('00000011');
  store.require(HELPER).applyBlock('00000011');
  for (let visit = 0; visit < 1000; visit += 1) {
    store.session.privacy.isRateLimited = false;
    assert.equal(store.require(HELPER).isBlocked('00000011'), true);
  }
  assert.equal(store.requests().length, 1001);

  const broken = offline();
  for (let visit = 0; visit < 20; visit += 1) broken.require(HELPER).isBlocked('a-session');
  assert.equal(broken.requests().length, 5);
});

// covers: 000-15
test('a ban on one site is none on another', () => {
  const store = platform();
  store.login('00000012');
  store.require(HELPER).applyBlock('00000012');
  const outlet = platform({ site: 'Outlet' });
  outlet.login('00000012');
  assert.equal(outlet.require(HELPER).isBlocked('00000012'), false);
});

// covers: 000-06, B-05
test('the rules of the catalog decide about a reported outcome, of any status', () => {
  const store = platform({ role: 'check' });
  store.newSession('reports');
  const helper = store.require(HELPER);
  const report = (status, body) => helper.reportOutcome('reports', { status, body });
  assert.equal(report(200, { reject_id: 4 }), false);
  assert.equal(report(200, { reject_id: '5' }), false);
  assert.equal(report(402, { reject_id: 5 }), true);
  assert.equal(helper.isBlocked('reports'), true);
  assert.equal(offline().require(HELPER).reportOutcome('x', { status: 200, body: {} }), null);
});

test('a report is unknown if the service fails at any of its calls', () => {
  const failures = [
    ['/v1/check', LOST], ['/v1/check', UNAVAILABLE], ['/v1/settle', LOST],
    ['/v1/peek', LOST], ['/v1/peek', UNAVAILABLE]
  ];
  for (const [path, answer] of failures) {
    const store = platform({ role: 'check' });
    intercept(store, (asked) => (asked === path ? answer : null));
    const { sessionID } = store.session;
    const banned = store.require(HELPER).reportOutcome(sessionID, { status: 200, body: {} });
    assert.equal(banned, null, `${path} ${JSON.stringify(answer)}`);
  }
});

test('a report does not drop a ban that is not stored', () => {
  const store = platform();
  const { sessionID } = store.session;
  const helper = store.require(HELPER);
  intercept(store, () => LOST);
  helper.applyBlock(sessionID, 'API Reject 5');
  intercept(store, null);
  assert.equal(helper.reportOutcome(sessionID, { status: 200, body: {} }), true);
  store.advance(6_000);
  assert.equal(helper.isBlocked(sessionID), true);
  assert.equal(call('GET', `/v1/blocks?attribute=session&value=${sessionID}`).blocks.length, 1);
});

// covers: 000-35, B-14
test('logs have the end and the reason of a ban, and no identifier', () => {
  const store = platform();
  store.newSession('secret-session');
  store.login('00000013');
  store.require(HELPER).applyBlock('00000013', 'Payment API reject_id: 5');
  const [warning] = store.logged('warn');
  assert.match(warning.text, /^banned until \d{4}-.*Z \(Payment API reject_id: 5\), block [0-9a-f]+$/);
  const everything = JSON.stringify([store.logs, store.services['catraca.http'].communicationLog]);
  assert.doesNotMatch(everything, /00000013|secret-session/);
});

// covers: 000-10
test('a denial from the copy takes less than 50 microseconds', (context) => {
  const store = platform();
  store.login('00000014');
  const helper = store.require(HELPER);
  helper.applyBlock('00000014');
  const before = store.requests().length;
  const times = [];
  for (let run = 0; run < 20_000; run += 1) {
    const start = process.hrtime.bigint();
    helper.isBlocked('00000014');
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  times.sort((one, other) => one - other);
  const [median, p99] = [times[10_000], times[19_800]];
  context.diagnostic(`median ${median.toFixed(2)} µs, p99 ${p99.toFixed(2)} µs`);
  assert.ok(median < 50, `${median} µs`);
  // A pause, such as a garbage collection, is among the slowest hundredth.
  assert.ok(p99 < 50, `p99 ${p99} µs`);
  assert.equal(store.requests().length, before);
});
