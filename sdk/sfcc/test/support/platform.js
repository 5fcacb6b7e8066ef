'use strict';

// The parts of the commerce platform that the cartridge uses: sessions, customers, services,
// custom objects, logs and controllers. Each module is loaded anew for each platform, with the
// platform's globals.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');
const { compileFunction } = require('node:vm');

const { makeCustomObjects } = require('./custom-objects.js');
const { readServices, readTypes } = require('./import-xml.js');
const { makeRegistry } = require('./services.js');

const ROOT = join(__dirname, '..', '..');
const CARTRIDGE = join(ROOT, 'cartridges', 'int_catraca');

/** Every platform begins with a session of its own, because tests share a server. */
let sessions = 0;

/** What the platform permits in a value of a session. */
const SESSION_VALUE_MAX = 2000;

/** session.privacy accepts primitive values only, and texts of a bounded length. */
function makePrivacy() {
  return new Proxy({}, {
    set(target, name, value) {
      if (value !== null && !['string', 'number', 'boolean'].includes(typeof value)) {
        throw new Error(`session.privacy.${String(name)}: not a primitive value`);
      }
      if (typeof value === 'string' && value.length > SESSION_VALUE_MAX) {
        throw new Error(`session.privacy.${String(name)}: ${value.length} characters`);
      }
      target[name] = value;
      return true;
    }
  });
}

/** What ECMAScript 5 reads: the platform's engine reads a fraction of three digits only. */
const ES5_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{3})?)?Z$/;

function parseEs5(text) {
  return ES5_INSTANT.test(text) ? Date.parse(text) : NaN;
}

/** A Date of ECMAScript 5 whose `now` the test moves; null is the real clock. */
function makeDate(clock) {
  return class extends Date {
    constructor(...args) {
      const [first] = args;
      if (args.length === 0) super(clock.now());
      else if (typeof first === 'string') super(parseEs5(first));
      else super(...args);
    }

    static now() { return clock.now(); }

    static parse(text) { return parseEs5(text); }
  };
}

class Platform {
  /** `services`: changes of the imported settings, and services of other cartridges. */
  constructor({ services = {}, site = 'RefArch', now } = {}) {
    this.clock = { offsetMs: 0, now: now ?? (() => Date.now() + this.clock.offsetMs) };
    this.logs = [];
    this.site = site;
    const settings = readServices();
    for (const [id, change] of Object.entries(services)) {
      settings[id] = { ...settings['catraca.http'], ...settings[id], ...change };
    }
    const { registry, states } = makeRegistry(settings, () => this.clock.now());
    this.registry = registry;
    this.services = states;
    this.settings = settings;
    const { manager, transaction } = makeCustomObjects(readTypes());
    this.customObjects = manager;
    this.transaction = transaction;
    sessions += 1;
    this.newSession(`session-${sessions}`);
  }

  /** Another browser, or one whose cookies are gone. */
  newSession(sessionID) {
    this.session = { sessionID, privacy: makePrivacy() };
    this.customer = { authenticated: false, profile: null };
    this.modules = new Map();
  }

  login(customerNo) {
    this.customer = { authenticated: true, profile: { customerNo } };
    this.modules = new Map();
  }

  /** The platform clears `session.privacy` at a logout. */
  logout() {
    this.session.privacy = makePrivacy();
    this.customer = { authenticated: false, profile: null };
    this.modules = new Map();
  }

  advance(ms) { this.clock.offsetMs += ms; }

  /** Requests that the service `id` has sent. */
  requests(id = 'catraca.http') { return this.services[id].requests; }

  logged(level) { return this.logs.filter((entry) => entry.level === level); }

  require(name) {
    const builtIn = this.builtIn(name);
    if (builtIn) return builtIn;
    const path = name.startsWith('*/') ? join(CARTRIDGE, name.slice(2)) : join(ROOT, name);
    return this.load(path.endsWith('.js') ? path : `${path}.js`);
  }

  builtIn(name) {
    const write = (level) => (format, ...values) => {
      const text = format.replace(/\{(\d+)\}/g, (_, index) => String(values[index]));
      this.logs.push({ level, text });
    };
    const logger = { info: write('info'), warn: write('warn'), error: write('error') };
    switch (name) {
      case 'dw/svc/LocalServiceRegistry': return this.registry;
      case 'dw/system/Logger': return { getLogger: () => logger };
      case 'dw/system/Site': return { getCurrent: () => ({ getID: () => this.site }) };
      case 'dw/system/Status': return Status;
      case 'dw/system/Transaction': return this.transaction;
      case 'dw/object/CustomObjectMgr': return this.customObjects;
      case 'server': return this.server();
      default: return undefined;
    }
  }

  load(path) {
    if (this.modules.has(path)) return this.modules.get(path).exports;
    const module = { exports: {} };
    this.modules.set(path, module);
    const names = ['require', 'module', 'exports', 'session', 'customer', 'Date'];
    const run = compileFunction(readFileSync(path, 'utf8'), names, { filename: path });
    const load = (name) => this.require(name);
    run(load, module, module.exports, this.session, this.customer, makeDate(this.clock));
    return module.exports;
  }

  /** The `server` module of the storefront reference architecture. */
  server() {
    const routes = {};
    const https = (req, res, next) => (req.https ? next() : next(new Error('not https')));
    const post = (name, ...steps) => { routes[name] = { method: 'POST', steps }; };
    return { post, middleware: { https }, exports: () => routes };
  }

  /** Calls a route of the example controller. */
  submitPayment(form, { https = true, method = 'POST' } = {}) {
    const routes = this.require('example/controllers/CheckoutServices');
    const route = routes.SubmitPayment;
    if (method !== route.method) return { status: 405, headers: {}, body: null };
    const { profile } = this.customer;
    const req = { https, form, currentCustomer: profile ? { profile } : {} };
    const answer = { status: 200, headers: {}, body: null };
    const res = {
      setStatusCode: (status) => { answer.status = status; },
      setHttpHeader: (name, value) => { answer.headers[name] = value; },
      json: (body) => { answer.body = body; }
    };
    let failure = null;
    for (const step of route.steps) {
      if (failure) break;
      step(req, res, (error) => { failure = error ?? null; });
    }
    return failure ? { status: 500, headers: {}, body: null } : answer;
  }
}

/** dw.system.Status. */
class Status {
  constructor(status, code, message) {
    Object.assign(this, { status, code, message });
  }
}
Status.OK = 0;
Status.ERROR = 1;

module.exports = { CARTRIDGE, Platform, ROOT };
