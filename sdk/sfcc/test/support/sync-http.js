'use strict';

// Requests that return when they are answered: the platform's services do, and Node's do not.
const { join } = require('node:path');
const { MessageChannel, Worker, receiveMessageOnPort } = require('node:worker_threads');

let worker;
let answers;
let done;

function start() {
  const channel = new MessageChannel();
  answers = channel.port1;
  done = new Int32Array(new SharedArrayBuffer(4));
  worker = new Worker(join(__dirname, 'http-worker.js'), {
    workerData: { done, port: channel.port2 },
    transferList: [channel.port2]
  });
  worker.unref();
  answers.unref();
}

/** `{ status, headers, text }`, or `{ failure }` if no response arrived. */
function request(options) {
  if (!worker) start();
  Atomics.store(done, 0, 0);
  worker.postMessage(options);
  Atomics.wait(done, 0, 0);
  return receiveMessageOnPort(answers).message;
}

module.exports = { request };
