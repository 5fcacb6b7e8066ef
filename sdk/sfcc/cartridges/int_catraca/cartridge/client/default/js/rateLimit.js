'use strict';

/**
 * What a page does with a denied or failed request: show the message of the response, and disable
 * the button for as long as the server says. Works with XMLHttpRequest and with jQuery's jqXHR.
 *
 * A response is a denial if its status is 429, or if it has a `retryAfter`. Any other response
 * with an `errorMessage` is shown too, but leaves the button as it is.
 */

var DEFAULT_MESSAGE = 'O serviço não está disponível no momento. Tente de novo em instantes.';
var WAIT_LABEL = 'Espere um momento';
var DEFAULT_WAIT_S = 60;
/** setTimeout cannot wait longer. */
var WAIT_MAX_S = 2147483;

/** The JSON body, or an empty object: a 429 may have no body, or that of a proxy. */
function bodyOf(xhr) {
  try {
    return JSON.parse(xhr.responseText) || {};
  } catch (error) {
    return {};
  }
}

/** Whole seconds from the body or the header; undefined if neither has them. */
function waitOf(xhr, body) {
  if (typeof body.retryAfter === 'number' && body.retryAfter >= 0) {
    return body.retryAfter;
  }
  var header = xhr.getResponseHeader('Retry-After');
  return header !== null && /^\d+$/.test(header) ? Number(header) : undefined;
}

/** Disables the button for some seconds, and gives it its label back afterwards; once at a time. */
function pauseButton(button, seconds) {
  if (button.textContent === WAIT_LABEL) {
    return;
  }
  var label = button.textContent;
  button.disabled = true;
  button.textContent = WAIT_LABEL;
  window.setTimeout(function () {
    button.disabled = false;
    button.textContent = label;
  }, Math.min(seconds, WAIT_MAX_S) * 1000);
}

/**
 * Shows a response that is not a success.
 * @param {XMLHttpRequest} xhr - the finished request
 * @param {HTMLButtonElement} button - the submit button
 * @param {function(string)} showMessage - shows a text to the user
 * @returns {boolean} whether it was a denial
 */
function showDenial(xhr, button, showMessage) {
  var body = bodyOf(xhr);
  var wait = waitOf(xhr, body);
  var isDenial = xhr.status === 429 || typeof body.retryAfter === 'number';
  showMessage(body.errorMessage || DEFAULT_MESSAGE);
  if (isDenial) {
    pauseButton(button, wait === undefined ? DEFAULT_WAIT_S : wait);
  }
  return isDenial;
}

/**
 * Submits a payment.
 * @param {string} url - of CheckoutServices-SubmitPayment
 * @param {string} data - the encoded form
 * @param {{button: HTMLButtonElement, showMessage: function(string), onSuccess: function(Object)}} page
 */
function submitPayment(url, data, page) {
  var xhr = new XMLHttpRequest();
  xhr.open('POST', url);
  xhr.setRequestHeader('Content-Type', 'application/x-www-form-urlencoded');
  xhr.onload = function () {
    if (xhr.status >= 200 && xhr.status < 300 && bodyOf(xhr).success === true) {
      page.onSuccess(bodyOf(xhr));
      return;
    }
    showDenial(xhr, page.button, page.showMessage);
  };
  xhr.onerror = function () {
    page.showMessage(DEFAULT_MESSAGE);
  };
  xhr.send(data);
}

module.exports = { showDenial: showDenial, submitPayment: submitPayment };
