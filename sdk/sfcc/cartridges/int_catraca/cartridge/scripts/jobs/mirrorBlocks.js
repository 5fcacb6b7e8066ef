'use strict';

/**
 * A job step that shows the active bans in Business Manager as custom objects of the type
 * RateLimitTracking: blockedID, unblockTime and reason.
 *
 * The objects only show the bans. The service decides: deleting an object releases no customer.
 * `catraca blocks release` releases one, and the next run of the job removes its object.
 */

var CustomObjectMgr = require('dw/object/CustomObjectMgr');
var Logger = require('dw/system/Logger');
var Status = require('dw/system/Status');
var Transaction = require('dw/system/Transaction');
var catraca = require('*/cartridge/scripts/services/catracaService');

var TYPE = 'RateLimitTracking';
var GATE = 'submit_payment';
/** The platform limits the number of custom objects; the service has the whole list. */
var OBJECTS_MAX = 1000;

/** One row per identity, with the latest end if an identity has several blocks. */
function addRow(rows, subject, block) {
  var id = subject.customer || subject.session;
  var end = catraca.endOf(block.until);
  if (!id || (rows[id] && rows[id].end >= end)) {
    return;
  }
  rows[id] = { end: end, reason: block.reason };
}

/** The active bans by identifier, or null if the service gave no answer. */
function activeRows() {
  var rows = {};
  var after = null;
  do {
    var page = catraca.listBlocks(GATE, after);
    if (page === null) {
      return null;
    }
    page.blocks.forEach(function (block) {
      addRow(rows, block.subject, block);
      block.members.forEach(function (member) {
        addRow(rows, member.subject, { until: member.until, reason: block.reason });
      });
    });
    after = page.next;
  } while (after && Object.keys(rows).length < OBJECTS_MAX);
  return rows;
}

function removeEnded(rows) {
  var objects = CustomObjectMgr.getAllCustomObjects(TYPE);
  try {
    while (objects.hasNext()) {
      var object = objects.next();
      if (!rows[object.custom.blockedID]) {
        CustomObjectMgr.remove(object);
      }
    }
  } finally {
    objects.close();
  }
}

function execute() {
  var rows = activeRows();
  if (rows === null) {
    return new Status(Status.ERROR, 'ERROR', 'the service gave no answer; nothing was changed');
  }
  var ids = Object.keys(rows).slice(0, OBJECTS_MAX);
  Transaction.wrap(function () {
    removeEnded(rows);
    ids.forEach(function (id) {
      var object = CustomObjectMgr.getCustomObject(TYPE, id) ||
        CustomObjectMgr.createCustomObject(TYPE, id);
      object.custom.unblockTime = new Date(rows[id].end);
      object.custom.reason = rows[id].reason;
    });
  });
  Logger.getLogger('catraca').info('{0} bans are shown as custom objects', ids.length);
  return new Status(Status.OK);
}

module.exports = { execute: execute };
