'use strict';

const { join } = require('node:path');
const { Worker } = require('node:worker_threads');

/** A payment API: amounts 500 and 501 are rejected with 5, 501 with an error status. */
async function startPaymentApi() {
  const calls = new SharedArrayBuffer(4);
  const worker = new Worker(join(__dirname, 'payment-worker.js'), { workerData: { calls } });
  const port = await new Promise((resolve) => worker.once('message', resolve));
  const url = `http://127.0.0.1:${port}/pay`;
  return {
    calls: () => Atomics.load(new Int32Array(calls), 0),
    service: { 'payment.http': { credential: { url }, timeoutMs: 5000 } },
    stop: () => worker.terminate()
  };
}

module.exports = { startPaymentApi };
