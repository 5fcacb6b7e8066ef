'use strict';

// dw.svc: the local service registry, its HTTP services, and their results.
const { request } = require('./sync-http.js');

/** dw.svc.Result: an object only on success; otherwise the HTTP status and the response text. */
class Result {
  constructor(fields) {
    this.status = fields.status;
    this.ok = fields.status === 'OK';
    this.error = fields.error ?? 0;
    this.errorMessage = fields.errorMessage ?? null;
    this.object = fields.object ?? null;
    this.unavailableReason = fields.unavailableReason ?? null;
    this.mockResult = false;
    this.msg = fields.msg ?? null;
  }

  isOk() { return this.ok; }
  getStatus() { return this.status; }
  getError() { return this.error; }
  getErrorMessage() { return this.errorMessage; }
  getObject() { return this.object; }
  getUnavailableReason() { return this.unavailableReason; }
}

/**
 * dw.svc.HTTPService, for one call. The setting `intercept(path)` may answer in the place of the
 * server: `{ status, text }`, or `{ failure }`.
 */
class HttpService {
  constructor(settings, callbacks, state) {
    this.settings = settings;
    this.callbacks = callbacks;
    this.state = state;
  }

  getConfiguration() {
    const { credential } = this.settings;
    return {
      getCredential: () => ({
        getURL: () => credential.url,
        getUser: () => credential.user,
        getPassword: () => credential.password
      })
    };
  }

  setRequestMethod(method) { this.method = method; return this; }
  setURL(url) { this.url = url; return this; }
  setAuthentication(kind) { this.authentication = kind; return this; }
  addHeader(name, value) { this.headers[name] = value; return this; }

  call(args) {
    const { settings, state } = this;
    if (!settings.enabled) {
      return new Result({ status: 'SERVICE_UNAVAILABLE', unavailableReason: 'DISABLED' });
    }
    if (state.isOpen(settings.breaker)) {
      return new Result({ status: 'SERVICE_UNAVAILABLE', unavailableReason: 'CIRCUIT_BROKEN' });
    }
    this.headers = {};
    this.method = 'POST';
    this.url = settings.credential.url;
    const body = this.callbacks.createRequest(this, args);
    const { method, url, headers } = this;
    state.requests.push({ method, url, headers, body });
    const answer = settings.intercept?.(new URL(url).pathname) ?? request({
      method, url, headers, body, timeoutMs: settings.timeoutMs, ca: settings.ca
    });
    const result = this.resultOf(answer);
    if (!result.ok) state.failures.push(state.now());
    return result;
  }

  resultOf({ status, text, failure }) {
    if (failure !== undefined) {
      const unavailableReason = failure === 'timeout' ? 'TIMEOUT' : null;
      const fields = { status: 'SERVICE_UNAVAILABLE', msg: failure };
      return new Result({ ...fields, unavailableReason });
    }
    if (status >= 400) {
      const kind = status === 503 ? 'SERVICE_UNAVAILABLE' : 'ERROR';
      return new Result({ status: kind, error: status, errorMessage: text });
    }
    const client = { getText: () => text, getStatusCode: () => status, text, statusCode: status };
    this.logMessages(client);
    try {
      return new Result({ status: 'OK', object: this.callbacks.parseResponse(this, client) });
    } catch (error) {
      return new Result({ status: 'ERROR', msg: error.message });
    }
  }

  /** What the communication log would have. */
  logMessages(client) {
    const { getRequestLogMessage, getResponseLogMessage, filterLogMessage } = this.callbacks;
    const messages = [getRequestLogMessage?.({}), getResponseLogMessage?.(client)];
    for (const message of messages.filter(Boolean)) {
      this.state.communicationLog.push(filterLogMessage(message));
    }
  }
}

/** The calls and failures of one service. */
class ServiceState {
  constructor(now) {
    this.now = now;
    this.requests = [];
    this.failures = [];
    this.communicationLog = [];
  }

  /** The platform stops calling after so many failures within the interval. */
  isOpen({ enabled, calls, millis }) {
    const since = this.now() - millis;
    return enabled && this.failures.filter((at) => at > since).length >= calls;
  }
}

/** dw.svc.LocalServiceRegistry over these settings. */
function makeRegistry(settings, now) {
  const states = {};
  for (const id of Object.keys(settings)) states[id] = new ServiceState(now);
  const createService = (id, callbacks) => {
    if (!settings[id]) throw new Error(`no service with the ID ${id} is configured`);
    return new HttpService(settings[id], callbacks, states[id]);
  };
  return { registry: { createService }, states };
}

module.exports = { makeRegistry };
