'use strict';

// The import files, the language of the cartridge, and the job that shows bans as objects.
const assert = require('node:assert/strict');
const { readFileSync, readdirSync } = require('node:fs');
const { join } = require('node:path');
const { after, before, test } = require('node:test');

const { parse } = require('acorn');

const { readServices, readTypes } = require('./support/import-xml.js');
const { CARTRIDGE, Platform, ROOT } = require('./support/platform.js');
const { credentialOf, startServer } = require('./support/server.js');

const HELPER = '*/cartridge/scripts/helpers/RateLimitHelper';
const JOB = '*/cartridge/scripts/jobs/mirrorBlocks';
let server;

before(async () => { server = await startServer(); });
after(() => server.stop());

function scripts(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.js')).map((file) => join(folder, file));
}

test('every script of the cartridge and of the example is ECMAScript 5', () => {
  const files = [...scripts(CARTRIDGE), ...scripts(join(ROOT, 'example'))];
  assert.equal(files.length, 5);
  const es5 = { ecmaVersion: 5, sourceType: 'script' };
  for (const file of files) parse(readFileSync(file, 'utf8'), es5);
  assert.throws(() => parse('const a = () => 1;', es5));
});

// covers: 000-13, 000-16, 000-17, 000-18
test('the import declares the object type of the source, visible to operators', () => {
  assert.deepEqual(readTypes(), {
    RateLimitTracking: {
      key: 'blockedID',
      scope: 'site',
      attributes: {
        reason: { type: 'string', mandatory: false },
        unblockTime: { type: 'datetime', mandatory: true }
      },
      group: ['blockedID', 'unblockTime', 'reason']
    }
  });
});

test('the import declares the service, with TLS, a timeout and a circuit breaker', () => {
  const { 'catraca.http': service } = readServices();
  assert.deepEqual([service.type, service.enabled], ['HTTP', true]);
  assert.match(service.credential.url, /^https:/);
  assert.ok(service.timeoutMs <= 1000);
  assert.equal(service.breaker.enabled, true);
});

// covers: 000-13, 000-51
test('the job shows active bans as objects, and removes those of ended ones', () => {
  const shop = new Platform({ services: credentialOf(server) });
  shop.login('00030001');
  shop.require(HELPER).applyBlock('00030001', 'Payment API reject_id: 5');
  const status = shop.require(JOB).execute();
  assert.equal(status.status, 0, JSON.stringify([status, shop.logs]));

  const shown = shop.customObjects.getCustomObject('RateLimitTracking', '00030001');
  assert.equal(shown.custom.blockedID, '00030001');
  assert.equal(shown.custom.reason, 'Payment API reject_id: 5');
  const [block] = shop.require('*/cartridge/scripts/services/catracaService')
    .listBlocks('submit_payment').blocks;
  assert.equal(shown.custom.unblockTime.getTime(), Date.parse(block.until));
  assert.equal(shop.customObjects.getCustomObject('RateLimitTracking', shop.session.sessionID), null,
    'a session is shown by its pseudonym');

  // Nothing changes while the service gives no answer.
  const { credential } = shop.settings['catraca.http'];
  const working = credential.url;
  credential.url = 'https://127.0.0.1:1';
  assert.equal(shop.require(JOB).execute().status, 1);
  assert.ok(shop.customObjects.getCustomObject('RateLimitTracking', '00030001'));

  credential.url = working;
  release(shop, block.id);
  assert.equal(shop.require(JOB).execute().status, 0);
  assert.equal(shop.customObjects.getCustomObject('RateLimitTracking', '00030001'), null);
});

/** An operator releases a ban; the cartridge itself has no such call. */
function release(shop, id) {
  const { request } = require('./support/sync-http.js');
  const { credential, ca } = shop.settings['catraca.http'];
  const headers = {
    Authorization: `Bearer ${credential.password}`, 'Content-Type': 'application/json'
  };
  const url = `${credential.url}/v1/blocks/${id}`;
  const body = '{"why":"the customer called"}';
  const answer = request({ method: 'DELETE', url, headers, body, timeoutMs: 5000, ca });
  assert.equal(answer.status, 200, answer.text);
}
