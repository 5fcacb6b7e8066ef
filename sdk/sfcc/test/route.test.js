'use strict';

// The example route: guard, payment API, ban and responses.
const assert = require('node:assert/strict');
const { after, before, test } = require('node:test');

const { startPaymentApi } = require('./support/payment.js');
const { Platform } = require('./support/platform.js');
const { credentialOf, startServer } = require('./support/server.js');
const { request } = require('./support/sync-http.js');

let server;
let payment;

before(async () => {
  server = await startServer();
  payment = await startPaymentApi();
});
after(async () => {
  await payment.stop();
  await server.stop();
});

function store(sessionID, more = {}) {
  const services = { ...credentialOf(server), ...payment.service, ...more };
  const platform = new Platform({ services });
  platform.newSession(sessionID);
  return platform;
}

// covers: 000-45
test('a success passes, and changes nothing', () => {
  const shop = store('route-1');
  for (let run = 0; run < 3; run += 1) {
    assert.deepEqual(shop.submitPayment({ amount: 20 }), {
      status: 200, headers: {}, body: { success: true }
    });
  }
});

// covers: 000-05, 000-06, 000-39, 000-40, 000-43, 000-44, X-32
test('a rejection answers 400 and bans; the guard answers 429 without a call', () => {
  const shop = store('route-2');
  shop.login('00020001');
  const rejected = shop.submitPayment({ amount: 500 });
  assert.equal(rejected.status, 400);
  assert.deepEqual(rejected.body, {
    success: false,
    error: true,
    errorMessage: 'O pagamento foi recusado. Para tentar de novo, aguarde 10 minutos.',
    retryAfter: rejected.body.retryAfter
  });
  assert.ok(rejected.body.retryAfter > 590 && rejected.body.retryAfter <= 601);

  const before = payment.calls();
  const denied = shop.submitPayment({ amount: 20 });
  assert.equal(denied.status, 429);
  assert.equal(denied.body.errorMessage,
    'Houve muitas tentativas sem sucesso. Tente de novo em 10 minutos.');
  assert.equal(denied.headers['Retry-After'], String(denied.body.retryAfter));
  assert.deepEqual(Object.keys(denied.body), ['success', 'error', 'errorMessage', 'retryAfter']);
  assert.equal(payment.calls(), before);
});

// covers: B-11
test('the text says how long it really is', () => {
  const shop = store('route-3');
  shop.submitPayment({ amount: 500 });
  shop.advance(4 * 60_000);
  shop.settings['catraca.http'].credential.url = 'https://127.0.0.1:1';
  assert.match(shop.submitPayment({ amount: 20 }).body.errorMessage, /em 6 minutos\.$/);
});

// covers: B-05
test('a rejection that comes with an error status bans too', () => {
  const shop = store('route-4');
  assert.equal(shop.submitPayment({ amount: 501 }).status, 400);
  assert.equal(shop.submitPayment({ amount: 20 }).status, 429);
});

// covers: 000-41
test('the text "5" is not the number 5', () => {
  const shop = store('route-5');
  assert.deepEqual(shop.submitPayment({ amount: 502 }).body, { success: true });
  assert.equal(shop.submitPayment({ amount: 20 }).status, 200);
});

// covers: B-04
test('a payment API without an answer is neither a ban nor a success', () => {
  const shop = store('route-6');
  const failed = shop.submitPayment({ amount: 503 });
  assert.deepEqual([failed.status, failed.body.success], [502, false]);
  assert.equal(failed.body.errorMessage, 'Não foi possível confirmar o pagamento. ' +
    'Antes de tentar de novo, veja se ele aparece nos seus pedidos.');
  const away = { credential: { url: 'http://127.0.0.1:1/pay' } };
  const unreachable = store('route-7', { 'payment.http': away }).submitPayment({ amount: 20 });
  assert.deepEqual([unreachable.status, unreachable.body.success], [502, false]);
  assert.equal(shop.submitPayment({ amount: 20 }).status, 200);
});

// covers: B-11
test('a denial without an end, or without a known one, has a wait that can be shown', () => {
  const shop = store('route-11');
  shop.login('00020003');
  const act = (path, body) => operatorCall(server, path, body);
  act('/v1/blocks', {
    policy: 'submit_payment', subject: { customer: '00020003' }, for: 'forever', reason: 'fraud'
  });
  const endless = shop.submitPayment({ amount: 20 });
  assert.equal(endless.status, 429);
  assert.equal(endless.body.retryAfter, 86_400);
  assert.match(endless.body.errorMessage, /em 24 horas\.$/);

  act('/v1/blocklist', { attribute: 'customer', value: '00020004', namespace: 'RefArch' });
  const listed = store('route-12');
  listed.login('00020004');
  const denied = listed.submitPayment({ amount: 20 });
  assert.deepEqual([denied.status, denied.body.retryAfter], [429, 60]);
  assert.match(denied.body.errorMessage, /em 1 minuto\.$/);
});

/** An act of an operator of the site. */
function operatorCall({ url, keys, ca }, path, fields) {
  const headers = {
    Authorization: `Bearer ${keys.RefArch.admin}`, 'Content-Type': 'application/json'
  };
  const body = JSON.stringify(fields);
  const answer = request({ method: 'POST', url: url + path, headers, body, timeoutMs: 5000, ca });
  assert.ok(answer.status < 300, answer.text);
}

// covers: 000-37
test('the route accepts POST over TLS only', () => {
  const shop = store('route-8');
  const before = payment.calls();
  assert.notEqual(shop.submitPayment({ amount: 20 }, { https: false }).status, 200);
  assert.equal(shop.submitPayment({ amount: 20 }, { method: 'GET' }).status, 405);
  assert.equal(payment.calls(), before);
});

// covers: 000-38
test('the identity is the customer number, or else the session id, with its type', () => {
  const guest = store('route-9');
  guest.submitPayment({ amount: 20 });
  const subjects = (shop) => shop.requests().map((sent) => JSON.parse(sent.body).subject);
  assert.deepEqual(subjects(guest), [{ session: 'route-9' }]);
  const customer = store('route-10');
  customer.login('00020002');
  customer.submitPayment({ amount: 20 });
  assert.deepEqual(subjects(customer), [{ session: 'route-10', customer: '00020002' }]);
});
