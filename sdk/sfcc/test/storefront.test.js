'use strict';

// The storefront script in Chromium, against the example route and the real server.
const assert = require('node:assert/strict');
const { readFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');
const { after, before, test } = require('node:test');

const { chromium } = require('playwright-core');

const { startPaymentApi } = require('./support/payment.js');
const { CARTRIDGE, Platform } = require('./support/platform.js');
const { credentialOf, startServer } = require('./support/server.js');

const ROUTE = '/CheckoutServices-SubmitPayment';
const JQUERY = readFileSync(require.resolve('jquery/dist/jquery.min.js'), 'utf8');
const SCRIPT = readFileSync(join(CARTRIDGE, 'cartridge/client/default/js/rateLimit.js'), 'utf8');
const PAGE = `<!doctype html><meta charset="utf-8"><title>loja</title>
<script src="jquery.js"></script><p id="message"></p><button class="submit-button">Pagar</button>
<script>var module = {};</script><script>${SCRIPT}</script>
<script>
  var paid = 0;
  function pay(amount) {
    module.exports.submitPayment('CheckoutServices-SubmitPayment', 'amount=' + amount, {
      button: document.querySelector('.submit-button'),
      showMessage: function (text) { document.querySelector('#message').textContent = text; },
      onSuccess: function () { paid += 1; }
    });
  }
  // As a storefront with jQuery does.
  function payWithJquery(amount) {
    $.ajax({
      url: 'CheckoutServices-SubmitPayment',
      method: 'POST',
      data: { amount: amount },
      success: function () { paid += 1; },
      error: function (jqXHR) {
        module.exports.showDenial(jqXHR, $('.submit-button')[0], function (text) {
          $('#message').text(text);
        });
      }
    });
  }
</script>`;

let server;
let payment;
let browser;
const sites = [];

before(async () => {
  server = await startServer();
  payment = await startPaymentApi();
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  const args = ['--disable-background-networking', '--disable-dev-shm-usage', '--disable-gpu'];
  browser = await chromium.launch({ executablePath, args, chromiumSandbox: false });
});
after(async () => {
  await browser.close();
  for (const site of sites) site.close();
  await payment.stop();
  await server.stop();
});

/** A site whose route is `answer(form)`; the page with a clock that the test moves. */
async function openPage(answer) {
  const seen = [];
  const site = createServer((incoming, outgoing) => {
    if (incoming.url !== ROUTE) {
      const files = { '/': ['text/html', PAGE], '/jquery.js': ['text/javascript', JQUERY] };
      const [type, text] = files[incoming.url] ?? ['text/html', ''];
      outgoing.setHeader('Content-Type', type);
      outgoing.end(text);
      return;
    }
    let text = '';
    incoming.on('data', (chunk) => { text += chunk; });
    incoming.on('end', () => {
      seen.push(incoming.method);
      const { status, headers, body } = answer(Object.fromEntries(new URLSearchParams(text)));
      const type = body === null ? {} : { 'Content-Type': 'application/json' };
      outgoing.writeHead(status, { ...type, ...headers });
      outgoing.end(body === null ? '' : JSON.stringify(body));
    });
  });
  sites.push(site);
  await new Promise((resolve) => site.listen(0, '127.0.0.1', resolve));
  const page = await browser.newPage();
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.clock.install();
  await page.goto(`http://127.0.0.1:${site.address().port}/`);
  const payBy = (name) => async (amount) => {
    const done = page.waitForResponse((response) => response.url().endsWith(ROUTE));
    await page.evaluate(([call, value]) => globalThis[call](value), [name, amount]);
    await (await done).finished();
  };
  const pay = payBy('pay');
  const payWithJquery = payBy('payWithJquery');
  const button = page.locator('.submit-button');
  const message = () => page.locator('#message').textContent();
  return { page, pay, payWithJquery, button, message, errors, seen };
}

// covers: 000-46, 000-48, 000-49, B-10
test('a banned customer reads the message and gets the button back after the wait', async () => {
  const services = { ...credentialOf(server), ...payment.service };
  const shop = new Platform({ services });
  const { page, pay, button, message, errors, seen } =
    await openPage((form) => shop.submitPayment(form));
  await pay(20);
  await page.waitForFunction(() => globalThis.paid === 1);
  await pay(500);
  await page.waitForFunction(() => document.querySelector('.submit-button').disabled);
  assert.match(await message(), /^O pagamento foi recusado/);
  await page.clock.fastForward(700_000);
  assert.equal(await button.isDisabled(), false);

  await pay(20);
  await page.waitForFunction(() => document.querySelector('.submit-button').disabled);
  assert.match(await message(), /^Houve muitas tentativas sem sucesso/);
  assert.equal(await button.textContent(), 'Espere um momento');
  await page.clock.fastForward(500_000);
  assert.equal(await button.isDisabled(), true);
  await page.clock.fastForward(200_000);
  assert.equal(await button.isDisabled(), false);
  assert.equal(await button.textContent(), 'Pagar');
  assert.deepEqual([errors, seen], [[], ['POST', 'POST', 'POST']]);
});

// covers: 000-47, B-10
test('a 429 without a body shows the default text, and its header says how long', async () => {
  const answer = () => ({ status: 429, headers: { 'Retry-After': '30' }, body: null });
  const { page, pay, button, message, errors } = await openPage(answer);
  await pay(20);
  await page.waitForFunction(() => document.querySelector('.submit-button').disabled);
  assert.match(await message(), /não está disponível/);
  await page.clock.fastForward(29_000);
  assert.equal(await button.isDisabled(), true);
  await page.clock.fastForward(1_500);
  assert.equal(await button.isDisabled(), false);
  assert.deepEqual(errors, []);
});

test('a second denial during the wait leaves the label of the button alone', async () => {
  const answer = () => ({ status: 429, headers: { 'Retry-After': '30' }, body: null });
  const { page, pay, button, seen } = await openPage(answer);
  await pay(20);
  await page.waitForFunction(() => document.querySelector('.submit-button').disabled);
  await page.evaluate(() => { document.querySelector('#message').textContent = ''; });
  await pay(20);
  await page.waitForFunction(() => document.querySelector('#message').textContent !== '');
  assert.equal(seen.length, 2);
  await page.clock.fastForward(61_000);
  assert.equal(await button.isDisabled(), false);
  assert.equal(await button.textContent(), 'Pagar');
});

// covers: 000-46, B-10
test('an error that is no denial is shown, and leaves the button as it is', async () => {
  const body = { success: false, error: true, errorMessage: 'Falta o CEP.' };
  const { page, pay, button, message } =
    await openPage(() => ({ status: 400, headers: {}, body }));
  await pay(20);
  await page.waitForFunction(() => document.querySelector('#message').textContent !== '');
  assert.equal(await message(), 'Falta o CEP.');
  assert.equal(await button.isDisabled(), false);
});

// covers: 000-46, 000-47, B-10
test('with jQuery, a denial shows its message, or the default text if it has no body', async () => {
  const services = { ...credentialOf(server), ...payment.service };
  const shop = new Platform({ services });
  let withBody = true;
  const bodiless = () => ({ status: 429, headers: { 'Retry-After': '30' }, body: null });
  const { page, payWithJquery, button, message, errors } =
    await openPage((form) => (withBody ? shop.submitPayment(form) : bodiless()));
  const isWaiting = () => document.querySelector('.submit-button').disabled;
  await payWithJquery(20);
  await page.waitForFunction(() => globalThis.paid === 1);
  await payWithJquery(500);
  await page.waitForFunction(isWaiting);
  assert.match(await message(), /^O pagamento foi recusado/);
  await page.clock.fastForward(700_000);
  assert.equal(await button.isDisabled(), false);
  withBody = false;
  await payWithJquery(20);
  await page.waitForFunction(isWaiting);
  assert.match(await message(), /não está disponível/);
  await page.clock.fastForward(29_000);
  assert.equal(await button.isDisabled(), true);
  await page.clock.fastForward(1_500);
  assert.equal(await button.isDisabled(), false);
  assert.deepEqual(errors, []);
});
