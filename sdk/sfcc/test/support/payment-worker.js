'use strict';

// A payment API in a thread of its own, because callers of services block theirs.
const { createServer } = require('node:http');
const { parentPort, workerData } = require('node:worker_threads');

const calls = new Int32Array(workerData.calls);
const ANSWERS = {
  20: [200, '{"reject_id":0}'],
  500: [200, '{"reject_id":5}'],
  501: [402, '{"reject_id":5}'],
  502: [200, '{"reject_id":"5"}'],
  503: [503, 'out of order']
};

const server = createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => { body += chunk; });
  request.on('end', () => {
    Atomics.add(calls, 0, 1);
    const [status, text] = ANSWERS[JSON.parse(body).amount];
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(text);
  });
});
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
