'use strict';

// Reads the import files, so that the fakes have the settings that a real import would give.
const { readFileSync } = require('node:fs');
const { join } = require('node:path');

const METADATA = join(__dirname, '..', '..', 'metadata');

function element(text, name) {
  return new RegExp(`<${name}(?: [^>]*)?>([\\s\\S]*?)</${name}>`).exec(text)?.[1].trim();
}

function blocks(text, name, id) {
  const found = {};
  const pattern = new RegExp(`<${name} ${id}="([^"]+)">([\\s\\S]*?)</${name}>`, 'g');
  for (const [, key, content] of text.matchAll(pattern)) found[key] = content;
  return found;
}

/** The services by id, each with its profile and credential. */
function readServices() {
  const text = readFileSync(join(METADATA, 'services.xml'), 'utf8');
  const credentials = blocks(text, 'service-credential', 'service-credential-id');
  const profiles = blocks(text, 'service-profile', 'service-profile-id');
  const services = {};
  for (const [id, content] of Object.entries(blocks(text, 'service', 'service-id'))) {
    const profile = profiles[element(content, 'profile-id')];
    const credential = credentials[element(content, 'credential-id')];
    services[id] = {
      enabled: element(content, 'enabled') === 'true',
      type: element(content, 'service-type'),
      timeoutMs: Number(element(profile, 'timeout-millis')),
      breaker: {
        enabled: element(profile, 'cb-enabled') === 'true',
        calls: Number(element(profile, 'cb-calls')),
        millis: Number(element(profile, 'cb-millis'))
      },
      credential: {
        url: element(credential, 'url'),
        user: element(credential, 'user-id'),
        password: element(credential, 'password')
      }
    };
  }
  return services;
}

/** The custom object types by id. */
function readTypes() {
  const text = readFileSync(join(METADATA, 'meta', 'custom-objecttype-definitions.xml'), 'utf8');
  const types = {};
  for (const [id, content] of Object.entries(blocks(text, 'custom-type', 'type-id'))) {
    const definitions = blocks(content, 'attribute-definition', 'attribute-id');
    const attributes = {};
    for (const [name, definition] of Object.entries(definitions)) {
      const mandatory = element(definition, 'mandatory-flag') === 'true';
      attributes[name] = { type: element(definition, 'type'), mandatory };
    }
    types[id] = {
      key: /<key-definition attribute-id="([^"]+)"/.exec(content)[1],
      scope: element(content, 'storage-scope'),
      attributes,
      group: [...content.matchAll(/<attribute attribute-id="([^"]+)"/g)].map(([, name]) => name)
    };
  }
  return types;
}

module.exports = { readServices, readTypes };
