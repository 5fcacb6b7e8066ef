'use strict';

// A worker that sends one request at a time, for callers that wait for it.
const { parentPort, workerData } = require('node:worker_threads');
const http = require('node:http');
const https = require('node:https');

const { done, port } = workerData;

function send({ method, url, headers, body, timeoutMs, ca }) {
  return new Promise((resolve) => {
    const client = url.startsWith('https:') ? https : http;
    // Node frames the body of a DELETE only with a length.
    const length = body ? { 'Content-Length': Buffer.byteLength(body) } : {};
    const options = { method, headers: { ...headers, ...length }, ca, timeout: timeoutMs };
    const request = client.request(url, { ...options, agent: false });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', (error) => resolve({ failure: error.message }));
    request.on('response', (response) => {
      const chunks = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('error', (error) => resolve({ failure: error.message }));
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status: response.statusCode, headers: response.headers, text });
      });
    });
    request.end(body ?? undefined);
  });
}

parentPort.on('message', (message) => {
  void send(message).then((answer) => {
    port.postMessage(answer);
    Atomics.store(done, 0, 1);
    Atomics.notify(done, 0);
  });
});
