'use strict';

// What the cartridge keeps in a session, and how many calls a payment takes.
const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');

const { Platform } = require('./support/platform.js');
const { credentialOf, startServer } = require('./support/server.js');

const HELPER = '*/cartridge/scripts/helpers/RateLimitHelper';

let server;

before(async () => { server = await startServer(); });
after(() => server.stop());

function platform(more = {}) {
  return new Platform({ services: { ...credentialOf(server), ...more } });
}

test('a value of a session with more than 2,000 characters is refused, as the platform does', () => {
  const { session } = platform();
  session.privacy.text = 'x'.repeat(2_000);
  assert.throws(() => { session.privacy.text = 'x'.repeat(2_001); }, /2001 characters/);
});

test('a ban that is not stored fits in the session with any reason', () => {
  const away = { 'catraca.http': { credential: { url: 'https://127.0.0.1:1', password: 'k' } } };
  const customerNo = '0'.repeat(100);
  for (const reason of ['\u0001', '"', '\n', 'ç', '\u{1f600}']) {
    const store = platform(away);
    store.login(customerNo);
    const helper = store.require(HELPER);
    assert.deepEqual(helper.applyBlock(customerNo, reason.repeat(2_000)), { durable: false });
    assert.equal(helper.isBlocked(customerNo), true);
    store.advance(6_000);
    assert.equal(helper.isBlocked(customerNo), true, 'sent again, without an answer');
  }
});

test('a payment takes one call, two with a ban, and four with a report', () => {
  const callsOf = (pay) => {
    const store = platform();
    const id = store.session.sessionID;
    const helper = store.require(HELPER);
    assert.equal(helper.isBlocked(id), false);
    pay(helper, id);
    return store.requests().map(({ url }) => new URL(url).pathname);
  };
  assert.deepEqual(callsOf(() => {}), ['/v1/peek']);
  const ban = (helper, id) => helper.applyBlock(id, 'API Reject 5');
  assert.deepEqual(callsOf(ban), ['/v1/peek', '/v1/blocks']);
  const report = (helper, id) => helper.reportOutcome(id, { status: 200, body: {} });
  assert.deepEqual(callsOf(report), ['/v1/peek', '/v1/check', '/v1/settle', '/v1/peek']);
});
