'use strict';

/**
 * Calls of the Catraca server through the platform's service framework: its timeout and circuit
 * breaker are those of the service profile in Business Manager.
 *
 * A call returns the parsed body, or null if there is no valid answer: null is a failure of the
 * service, never a verdict about a caller. Neither subjects nor keys are logged.
 */

var LocalServiceRegistry = require('dw/svc/LocalServiceRegistry');
var Logger = require('dw/system/Logger');
var Site = require('dw/system/Site');

var SERVICE_ID = 'catraca.http';
/** The end of a block without end: the last instant of the year 9999. */
var NO_END_MS = 253402300799999;

function log() {
  return Logger.getLogger('catraca');
}

/** Configures one request; `call` has checked the URL of the credential. */
function createRequest(service, args) {
  var credential = service.getConfiguration().getCredential();
  service.setAuthentication('NONE');
  service.setRequestMethod(args.method);
  service.setURL(credential.getURL().replace(/\/+$/, '') + args.path);
  service.addHeader('Authorization', 'Bearer ' + credential.getPassword());
  service.addHeader('Catraca-Caller', 'sfcc/' + Site.getCurrent().getID());
  if (!args.body) {
    return null;
  }
  service.addHeader('Content-Type', 'application/json');
  return JSON.stringify(args.body);
}

function parseResponse(service, client) {
  return JSON.parse(client.getText());
}

function createService() {
  return LocalServiceRegistry.createService(SERVICE_ID, {
    createRequest: createRequest,
    parseResponse: parseResponse,
    // Bodies contain customer numbers and session ids, so the communication log has none of them.
    getRequestLogMessage: function () {
      return SERVICE_ID + ' request';
    },
    getResponseLogMessage: function (response) {
      return SERVICE_ID + ' response ' + response.getStatusCode();
    },
    filterLogMessage: function (message) {
      return message;
    }
  });
}

function isEncrypted(service) {
  return /^https:\/\//i.test(String(service.getConfiguration().getCredential().getURL()));
}

function call(method, path, body) {
  var service = createService();
  if (!isEncrypted(service)) {
    log().error('{0}: the URL of the credential must be https; no request was sent', SERVICE_ID);
    return null;
  }
  var result = service.call({ method: method, path: path, body: body });
  if (result.isOk() && result.getObject()) {
    return result.getObject();
  }
  log().error('{0}: no answer to {1} {2} (status {3}, error {4}, {5})', SERVICE_ID, method,
    path.split('?')[0], result.getStatus(), result.getError(), result.getUnavailableReason());
  return null;
}

/** The decision about a subject, without counting it. */
function peek(gate, subject) {
  return call('POST', '/v1/peek', { gate: gate, subject: subject });
}

/** The decision about a subject, with a ticket to settle. */
function check(gate, subject) {
  return call('POST', '/v1/check', { gate: gate, subject: subject });
}

/** Reports the outcome of an admitted check. */
function settle(ticket, outcome) {
  return call('POST', '/v1/settle', { ticket: ticket, outcome: outcome });
}

/** Blocks a subject for so many seconds; needs a key of the role `admin`. */
function block(policy, subject, seconds, reason) {
  var body = { policy: policy, subject: subject, 'for': seconds + 's', reason: reason };
  return call('POST', '/v1/blocks', body);
}

/** A page of active blocks; needs a key of the role `support`. */
function listBlocks(policy, after) {
  var path = '/v1/blocks?limit=100&policy=' + encodeURIComponent(policy);
  return call('GET', after ? path + '&after=' + encodeURIComponent(after) : path, null);
}

/**
 * An instant of an answer in epoch milliseconds. ECMAScript 5 reads three digits of a fraction, and
 * the service sends up to six.
 */
function instantOf(text) {
  return Date.parse(String(text).replace(/(\.\d{3})\d+/, '$1'));
}

/** The end of a block in epoch milliseconds; `until` is null for a block without end. */
function endOf(until) {
  return until ? instantOf(until) : NO_END_MS;
}

module.exports = {
  endOf: endOf,
  peek: peek,
  check: check,
  settle: settle,
  block: block,
  listBlocks: listBlocks
};
