'use strict';

// dw.object.CustomObjectMgr and dw.system.Transaction: objects of declared types, changed only
// inside a transaction.

function makeCustomObjects(types) {
  const stored = {};
  let depth = 0;

  function need(type) {
    if (!types[type]) throw new Error(`no custom object type ${type}`);
    stored[type] ??= new Map();
    return stored[type];
  }

  function needTransaction() {
    if (depth === 0) throw new Error('custom objects are changed inside a transaction only');
  }

  function makeObject(type, key) {
    const { attributes, key: keyName } = types[type];
    const custom = new Proxy({ [keyName]: key }, {
      set(target, name, value) {
        needTransaction();
        if (!attributes[name]) throw new Error(`${type} has no attribute ${String(name)}`);
        if (attributes[name].type === 'datetime' && !(value instanceof Date)) {
          throw new Error(`${String(name)} is not a date`);
        }
        target[name] = value;
        return true;
      }
    });
    return { custom, type };
  }

  const manager = {
    getCustomObject: (type, key) => need(type).get(key) ?? null,
    createCustomObject(type, key) {
      needTransaction();
      if (need(type).has(key)) throw new Error('there is an object with this key');
      const object = makeObject(type, key);
      stored[type].set(key, object);
      return object;
    },
    remove(object) {
      needTransaction();
      stored[object.type].delete(object.custom[types[object.type].key]);
    },
    getAllCustomObjects(type) {
      const objects = [...need(type).values()];
      return { hasNext: () => objects.length > 0, next: () => objects.shift(), close() {} };
    }
  };

  function checkMandatory() {
    for (const [type, objects] of Object.entries(stored)) {
      for (const { custom } of objects.values()) {
        for (const [name, { mandatory }] of Object.entries(types[type].attributes)) {
          if (mandatory && custom[name] === undefined) throw new Error(`${name} is mandatory`);
        }
      }
    }
  }

  const transaction = {
    wrap(action) {
      depth += 1;
      try {
        const result = action();
        checkMandatory();
        return result;
      } finally {
        depth -= 1;
      }
    }
  };
  return { manager, transaction };
}

module.exports = { makeCustomObjects };
