'use strict';

/* global session */

/**
 * An example route: the payment of a checkout, guarded by soft bans.
 *
 * An answer of the payment API with `reject_id` 5 bans the customer for ten minutes, whatever its
 * status. If the payment API gives no answer, nothing is known: no ban, and no success.
 */

var server = require('server');

var LocalServiceRegistry = require('dw/svc/LocalServiceRegistry');
var RateLimitHelper = require('*/cartridge/scripts/helpers/RateLimitHelper');

var REJECTED = 5;
/** Business rule: 400, or 429. */
var STATUS_OF_REJECTION = 400;

/** What is shown if the end is not known: the caller is on the blocklist, or no store answers. */
var DEFAULT_WAIT_S = 60;
/** The longest wait that is shown; some bans have no end. */
var WAIT_MAX_S = 24 * 60 * 60;

/** Whole seconds that the caller is told to wait. */
function waitToShow() {
  return Math.min(RateLimitHelper.retryAfter() || DEFAULT_WAIT_S, WAIT_MAX_S);
}

function waitInWords(seconds) {
  var minutes = Math.ceil(seconds / 60);
  if (minutes > 120) {
    return Math.ceil(minutes / 60) + ' horas';
  }
  return minutes === 1 ? '1 minuto' : minutes + ' minutos';
}

/** The number of a customer who has logged in, or else the session. */
function identityOf(req) {
  var profile = req.currentCustomer.profile;
  if (profile) {
    return profile.customerNo;
  }
  return session.sessionID;
}

function fail(res, status, message, retryAfter) {
  res.setStatusCode(status);
  var body = { success: false, error: true, errorMessage: message };
  if (retryAfter !== undefined) {
    res.setHttpHeader('Retry-After', String(retryAfter));
    body.retryAfter = retryAfter;
  }
  res.json(body);
}

/** Calls the payment API; null if it gave no answer that can be read. */
function callPaymentApi(form) {
  var service = LocalServiceRegistry.createService('payment.http', {
    createRequest: function (svc) {
      svc.setRequestMethod('POST');
      svc.addHeader('Content-Type', 'application/json');
      return JSON.stringify({ amount: form.amount });
    },
    parseResponse: function (svc, client) {
      return client.getText();
    }
  });
  var result = service.call();
  // The platform parses only successful answers: the body of an error is its message.
  var text = result.isOk() ? result.getObject() : result.getErrorMessage();
  try {
    return { ok: result.isOk(), body: JSON.parse(text) };
  } catch (error) {
    return null;
  }
}

server.post('SubmitPayment', server.middleware.https, function (req, res, next) {
  var id = identityOf(req);

  if (RateLimitHelper.isBlocked(id)) {
    var wait = waitToShow();
    fail(res, 429, 'Houve muitas tentativas sem sucesso. Tente de novo em ' + waitInWords(wait) +
      '.', wait);
    return next();
  }

  var answer = callPaymentApi(req.form);
  if (answer === null || !answer.body) {
    fail(res, 502, 'Não foi possível confirmar o pagamento. ' +
      'Antes de tentar de novo, veja se ele aparece nos seus pedidos.');
    return next();
  }
  if (answer.body.reject_id === REJECTED) {
    RateLimitHelper.applyBlock(id, 'Payment API reject_id: 5');
    var pause = waitToShow();
    fail(res, STATUS_OF_REJECTION, 'O pagamento foi recusado. Para tentar de novo, aguarde ' +
      waitInWords(pause) + '.', pause);
    return next();
  }
  if (!answer.ok) {
    fail(res, 502, 'O pagamento não foi aceito. Confira os dados e tente de novo.');
    return next();
  }
  res.json({ success: true });
  return next();
});

module.exports = server.exports();
