-- List entries and facts of one namespace; an empty namespace means all.
ALTER TABLE catraca.lists ADD COLUMN namespace text NOT NULL DEFAULT '';
ALTER TABLE catraca.lists DROP CONSTRAINT lists_list_attribute_value_key;
ALTER TABLE catraca.lists ADD UNIQUE (list, attribute, value, namespace);
ALTER TABLE catraca.facts ADD COLUMN namespace text NOT NULL DEFAULT '';
ALTER TABLE catraca.facts DROP CONSTRAINT facts_pkey;
ALTER TABLE catraca.facts ADD PRIMARY KEY (attribute, value, name, namespace);

-- Address ranges on the blocklist; without expires_at an entry is active until it is removed.
CREATE OR REPLACE VIEW catraca.ip_blocklist AS
SELECT ('00000000-0000-8000-8000-' || lpad(to_hex(id), 12, '0'))::uuid AS id,
       value AS ip_address,
       reason,
       catraca.instant(at) AS blocked_at,
       catraca.instant(until) AS expires_at,
       by,
       nullif(namespace, '') AS namespace
FROM catraca.lists
WHERE list = 'blocklist' AND attribute = '';
