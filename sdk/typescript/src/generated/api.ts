// Generated from docs/openapi.json by `npm run generate`; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description Names to lock, all or none.
         * @example {
         *       "key": "order-7",
         *       "kind": "payment",
         *       "request_id": "2f1c9a4e-6d0b-4b58-9f0e-0c3d5e7a1b22",
         *       "tenant": "t1",
         *       "ttl_ms": 30000
         *     }
         */
        AcquireLock: {
            /** @description The name. */
            key?: string | null;
            /** @description Up to 16 names, in place of `key`. */
            keys?: string[] | null;
            /** @description The kind: `appointment`, `payment`, `resource`, or any other. Default: `default`. */
            kind?: string | null;
            /**
             * Format: int64
             * @description The longest time that renewals can extend the lease to, from its grant.
             */
            max_hold_ms?: number | null;
            /** @description A note, up to 1 KiB. */
            meta?: string | null;
            /** @description The holder's name, shown to other clients and operators. */
            owner_label?: string | null;
            /** @description An id of this request, best a random one: a repeated request with the same id and fields returns the same lease. */
            request_id?: string | null;
            /** @description The tenant, which is part of the name; an API key that fixes `tenant` sets it. */
            tenant?: string | null;
            /**
             * Format: int64
             * @description The lifetime of the lease. Default: that of its kind.
             */
            ttl_ms?: number | null;
            /**
             * Format: int64
             * @description A number of your own, returned with the lease.
             */
            version?: number | null;
            /** @description How `version` is checked. Default: as configured for its kind. */
            version_policy?: components["schemas"]["VersionPolicy"] | null;
            /**
             * Format: int64
             * @description How long to wait if a name is taken. Default: 0.
             */
            wait_ms?: number | null;
        };
        /** @description Requests of a period by action, which is the gate they name. */
        ActionStats: {
            actions: components["schemas"]["ActionTotals"][];
            /**
             * Format: int64
             * @example 950
             */
            allowed: number;
            /**
             * Format: int64
             * @example 20
             */
            blocked: number;
            /**
             * Format: int64
             * @example 30
             */
            denied: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            from: string;
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            to: string;
            /**
             * Format: int64
             * @example 1000
             */
            total: number;
        };
        /** @description Requests of one action. */
        ActionTotals: {
            /** @example login */
            action: string;
            /**
             * Format: int64
             * @example 950
             */
            allowed: number;
            /**
             * Format: int64
             * @example 20
             */
            blocked: number;
            /**
             * Format: int64
             * @example 30
             */
            denied: number;
            /**
             * Format: int64
             * @example 1000
             */
            total: number;
        };
        /** @description The entries that a request added. */
        AddedEntries: {
            /**
             * @description Whether this was a dry run, which changes nothing.
             * @example false
             */
            dry_run: boolean;
            /** @description Whether they are on disk. */
            durable: boolean;
            entries: components["schemas"]["AddedEntry"][];
            /**
             * @description Which list.
             * @example blocklist
             */
            list: string;
            /** @description Other nodes that do not know of it yet; absent if there are none. */
            nodes_behind?: string[];
        };
        /** @description An entry, and the one that it replaced. */
        AddedEntry: {
            attribute?: string | null;
            /** @description The entry about the same range or value and namespace that it replaced; null if there was none. */
            before: components["schemas"]["EntryTerms"] | null;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            /**
             * @description An address range.
             * @example 203.0.113.0/24
             */
            range?: string | null;
            /** @example open proxies */
            reason: string | null;
            /**
             * Format: date-time
             * @description When it ends; null if it lasts until it is removed.
             */
            until: string | null;
            /** @description Its value, or the pseudonym of a private one. */
            value?: string | null;
        };
        /** @description An attribute that the catalog describes. */
        Attribute: {
            /** @example payer */
            attribute: string;
            /** @description Whether its values are shown as pseudonyms only. */
            private: boolean;
        };
        /** @description An act of an operator. */
        AuditEntry: {
            /** @example release */
            act: string;
            after: unknown;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            at: string;
            before: unknown;
            /**
             * @description The name of the operator's key.
             * @example ana
             */
            by: string;
            /**
             * Format: int64
             * @example 41
             */
            id: number;
            /**
             * @description The namespace of the key, the entry, the facts or the locks that it was on; null if it was on none, or for all namespaces.
             * @example default
             */
            namespace: string | null;
            /**
             * @description What it was done to.
             * @example login
             */
            target: string;
            why: string | null;
        };
        /** @description A page of operators' acts, newest first. */
        AuditPage: {
            acts: components["schemas"]["AuditEntry"][];
            /** @description Why the newest entries may be missing; absent if none is. */
            incomplete?: string | null;
            /** @description The `after` of the next page; null on the last. */
            next: string | null;
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
        };
        /** @description Why an operator acts. */
        AuditReason: {
            /**
             * @description For the audit.
             * @example the caller was wronged
             */
            why?: string | null;
        };
        /** @description A rule that bans on an outcome. */
        Ban: {
            /**
             * @description The rate of outcomes that starts the ban; null if the first one does.
             * @example 20 per 1m
             */
            after: string | null;
            /**
             * @description How long the ban lasts.
             * @example 24h
             */
            for: string;
            /** @description The message to a banned caller, if the rule has one. */
            message: string | null;
            /** @example scanning accounts */
            reason: string;
            /**
             * Format: int32
             * @description The status of the response to a banned caller, if the rule sets one.
             * @example 403
             */
            status: number | null;
            /**
             * @description The condition.
             * @example status == 404
             */
            when: string;
        };
        /** @description A block. */
        Block: {
            /** @description The operator, if one started it. */
            by: string | null;
            /**
             * @description The block's id. An extension keeps it; a later block of the same key has another.
             * @example 6495e3a5b8000a3f09c2d4b17
             */
            id: string;
            /**
             * Format: int64
             * @description How many escalating offences are remembered: the next one lasts longer. 0 if there is none.
             * @example 2
             */
            level: number;
            /**
             * @description The mode of the policy: a block denies only under `enforce`. Null if the catalog has no such policy.
             * @example enforce
             */
            mode: string | null;
            /** @example default */
            namespace: string;
            origin: components["schemas"]["Origin"];
            /**
             * @description Why the block denies no request: the catalog in use makes other keys. Null if it does deny.
             * @example the policy counts by other attributes
             */
            orphaned: string | null;
            /** @example login */
            policy: string;
            reason: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            since: string;
            /** @description Whether it is active now. */
            standing: boolean;
            /**
             * @description The subject that is blocked.
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description A block with its history. */
        BlockHistory: {
            /** @description The operator, if one started it. */
            by: string | null;
            /** @description Every act, oldest first. */
            history: components["schemas"]["BlockHistoryEntry"][];
            /**
             * @description The block's id. An extension keeps it; a later block of the same key has another.
             * @example 6495e3a5b8000a3f09c2d4b17
             */
            id: string;
            /** @description Why the newest entries may be missing; absent if none is. */
            incomplete?: string | null;
            /**
             * Format: int64
             * @description How many escalating offences are remembered: the next one lasts longer. 0 if there is none.
             * @example 2
             */
            level: number;
            /** @description The active blocks that the same acts made; a release ends them too. */
            members: components["schemas"]["BlockMember"][];
            /**
             * @description The mode of the policy: a block denies only under `enforce`. Null if the catalog has no such policy.
             * @example enforce
             */
            mode: string | null;
            /** @example default */
            namespace: string;
            origin: components["schemas"]["Origin"];
            /**
             * @description Why the block denies no request: the catalog in use makes other keys. Null if it does deny.
             * @example the policy counts by other attributes
             */
            orphaned: string | null;
            /** @example login */
            policy: string;
            reason: string | null;
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            since: string;
            /** @description Whether it is active now. */
            standing: boolean;
            /**
             * @description The subject that is blocked.
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description An entry of a block's history. */
        BlockHistoryEntry: {
            /**
             * @description `started`, `extended`, `released` or `reset`.
             * @example started
             */
            act: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            at: string;
            by: string | null;
            /**
             * Format: int64
             * @description Later entries have larger ids.
             * @example 12
             */
            id: number;
            /**
             * Format: int64
             * @description The level of the block after this act.
             * @example 1
             */
            level: number;
            origin: components["schemas"]["Origin"];
            reason: string | null;
            /**
             * Format: date-time
             * @description The end of the block after this act; null if it has none.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description A block that the same act made as another one, such as the session of a banned customer. */
        BlockMember: {
            /** @example 6495e3a5b8000a3f09c2d4b17 */
            id: string;
            /**
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description A page of blocks. */
        BlockPage: {
            blocks: components["schemas"]["ListedBlock"][];
            /** @description Why the newest entries may be missing; absent if none is. */
            incomplete?: string | null;
            /** @description The `after` of the next page; null on the last. */
            next: string | null;
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
        };
        /** @description One key that an operator blocked. */
        BlockedKey: {
            /** @description Whether this call changed the end. */
            changed: boolean;
            /**
             * @description The block's id; null while the block is not on disk.
             * @example 6495e3a5b8000a3f09c2d4b17
             */
            id: string | null;
            /** @example default */
            namespace: string;
            /** @description The origin of the block with the later end, if there was a block before. */
            origin: components["schemas"]["Origin"];
            /** @example login */
            policy: string;
            /**
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description The state of a bucket. */
        BucketState: {
            /**
             * Format: int64
             * @description The balance, or 0 if it is negative.
             * @example 0
             */
            available: number;
            /**
             * Format: int64
             * @description Whole tokens; negative is debt.
             * @example -15
             */
            balance: number;
            /** Format: date-time */
            blocked_until: string | null;
            /** @example lookups */
            policy: string;
            /**
             * @description The refill as the catalog writes it.
             * @example 2 per 1m
             */
            refill: string;
            /**
             * Format: int64
             * @description Its period, in microseconds.
             * @example 60000000
             */
            refill_period_us: number;
            /**
             * Format: int64
             * @description Its tokens.
             * @example 2
             */
            refill_tokens: number;
            /**
             * Format: int64
             * @example 3450000
             */
            reset_after_ms: number | null;
            /**
             * Format: int64
             * @description Until one token is available; null if one is, or if none ever will be.
             * @example 480000
             */
            retry_after_ms: number | null;
            /**
             * Format: int64
             * @description Its capacity.
             * @example 100
             */
            size: number;
        };
        /** @description The buckets of a subject. */
        BucketStates: {
            buckets: components["schemas"]["BucketState"][];
        };
        /**
         * @description The subject whose buckets are shown.
         * @example {
         *       "subject": {
         *         "participant": "12345678",
         *         "payer": "52998224725"
         *       }
         *     }
         */
        BucketsOf: {
            /** @description The attributes of the caller. */
            subject: components["schemas"]["Subject"];
        };
        /** @description A range that is held or confirmed, with its buffers. */
        BusyRange: {
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            end: string;
            /**
             * Format: date-time
             * @description When the hold ends; null if it is confirmed.
             * @example 2026-01-31T18:00:00Z
             */
            expires_at: string | null;
            /** Format: int64 */
            fence: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            start: string;
            /** @description `held` or `confirmed`. */
            state: string;
        };
        /** @description The free and the busy ranges of a calendar. They may change at once: only a hold reserves. */
        CalendarView: {
            /** @description Whether the whole range is free. */
            available: boolean;
            busy: components["schemas"]["BusyRange"][];
            free: components["schemas"]["FreeRange"][];
            /**
             * Format: date-time
             * @description The `from` of the next request, if the response could not hold all ranges.
             * @example 2026-01-31T18:00:00Z
             */
            next: string | null;
        };
        /** @description Which program uses which gate, since the start of this node. */
        CallerStats: {
            callers: components["schemas"]["CallerTotals"][];
        };
        /** @description Checks of one gate by one program, as it names itself in the header `Catraca-Caller`. */
        CallerTotals: {
            /**
             * @description `(invalid)` if the header was not a name, and `(other)` beyond 1,000 pairs in a namespace.
             * @example shop/1.4
             */
            caller: string;
            /**
             * Format: int64
             * @example 1000
             */
            checks: number;
            /**
             * Format: int64
             * @example 50
             */
            denied: number;
            /** @example login */
            gate: string;
            /**
             * @description The namespace of its key.
             * @example default
             */
            namespace: string;
        };
        /** @description The catalog in use. */
        CatalogSummary: {
            /**
             * @description Settings that changed since the server started, and take effect at its next start.
             * @example [
             *       "[server] listen"
             *     ]
             */
            after_restart: string[];
            /**
             * Format: int64
             * @description How many entries the catalog's allowlist has.
             * @example 0
             */
            allowlist: number;
            attributes: components["schemas"]["Attribute"][];
            /**
             * Format: int64
             * @description How many entries the catalog's blocklist has.
             * @example 2
             */
            blocklist: number;
            /** @description The policy of gates that the catalog does not name. */
            default: string | null;
            gates: components["schemas"]["Gate"][];
            /**
             * Format: int64
             * @description How many policies there are.
             * @example 1
             */
            policies: number;
            /**
             * @description The catalog's revision.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
            routes: components["schemas"]["Route"][];
            /**
             * @description Sections about the process; their content is not shown.
             * @example [
             *       "auth",
             *       "server"
             *     ]
             */
            sections: string[];
            /** @description Gates that requests named and the catalog does not. */
            unlisted: string[];
        };
        /** @description The facts about one value, before and after a change. */
        ChangedFacts: {
            /**
             * @example {
             *       "category": "A"
             *     }
             */
            after: {
                [key: string]: string;
            };
            /** @example participant */
            attribute: string;
            before: {
                [key: string]: string;
            };
            /** @description Whether it is on disk. */
            durable: boolean;
            /**
             * @description How many facts of single namespaces are ignored from now on, by namespace: they have the same name, and are about another attribute. Empty for facts of one namespace.
             * @example {
             *       "shop": 2
             *     }
             */
            ignored: {
                [key: string]: number;
            };
            /**
             * @description The only namespace in which they apply; null if they apply in all.
             * @example shop
             */
            namespace: string | null;
            /** @description The names of the facts that nothing in the catalog reads: they have no effect, and most likely are misspelt. */
            unread: string[];
        };
        /** @description The mode of a policy before and after a change. */
        ChangedMode: {
            /** @example shadow */
            after: components["schemas"]["Mode"];
            before: components["schemas"]["Mode"];
            /** @description Whether it is on disk. */
            durable: boolean;
            /** @description Other nodes that do not know of it yet; absent if there are none. */
            nodes_behind?: string[];
            /** @description Whether a mode set by an operator is in effect. */
            overridden: boolean;
            /** @example login */
            policy: string;
        };
        /** @description A check. In a batch, a check whose gate, `ref` or cost is out of bounds is a problem in its own position, so the schema states these bounds only in words. */
        Check: {
            /**
             * Format: int64
             * @description Units to charge or to hold, from 0 to 2^40; by default what the policy says, or 1.
             * @example 1
             */
            cost?: number | null;
            /**
             * @description The gate, or a policy as a gate of its own: 1 to 256 bytes.
             * @example login
             */
            gate: string;
            /** @description Whether the allowlist and the blocklist apply; true by default. */
            lists?: boolean | null;
            /** @description A name under which the check is remembered, to settle or credit it later: 1 to 256 bytes. */
            ref?: string | null;
            /** @description The attributes of the caller. */
            subject?: components["schemas"]["Subject"];
        };
        /** @description Why the leases of a tenant are ended. */
        ClearLocks: {
            /**
             * @description For the audit.
             * @example the tenant operation for it
             */
            reason?: string | null;
        };
        /** @description How many leases of a tenant were ended. */
        ClearedLocks: {
            /**
             * Format: int64
             * @description How many leases ended; confirmed slots stay.
             */
            cleared: number;
            /** @description Whether the audit is on disk. */
            durable: boolean;
        };
        /**
         * @description A hold to confirm.
         * @example {
         *       "lease_id": "0123456789abcdef0123456789abcdef"
         *     }
         */
        ConfirmSlot: {
            /** @description The `lease_id` of the hold. */
            lease_id: string;
            /** @description Reacquire the slot if the hold has ended and all of it is still free. Default: false. */
            reacquire_if_free?: boolean;
        };
        /** @description A slot that was confirmed. */
        ConfirmedSlot: {
            /** @description Always true. */
            confirmed: boolean;
            /** @description Whether it is on disk. */
            durable: boolean;
            /**
             * Format: int64
             * @description A new fence if the hold had ended and was reacquired.
             */
            fence: number;
            /** @description The locked names. */
            keys?: string[] | null;
            kind: string;
            /** @description The held range of time. */
            slot?: components["schemas"]["Slot"] | null;
            tenant: string | null;
            /** Format: int64 */
            version: number;
        };
        /** @description The blocks that an operator created. */
        CreatedBlocks: {
            blocks: components["schemas"]["BlockedKey"][];
            /** @description Whether it is on disk. */
            durable: boolean;
            /** @description Other nodes that do not know of it yet; absent if there are none. */
            nodes_behind?: string[];
        };
        /**
         * @description A late event, such as a payment, that returns units to a bucket.
         * @example {
         *       "event": "payment",
         *       "ref": "E1234567820260101000012345678901",
         *       "subject": {
         *         "participant": "12345678",
         *         "payer": "52998224725"
         *       }
         *     }
         */
        Credit: {
            /**
             * @description The event, as named in `credit` of the policy.
             * @example payment
             */
            event: string;
            /** @description The `ref` of the check. */
            ref: string;
            /** @description The subject of the check. */
            subject: components["schemas"]["Subject"];
        };
        /** @description The result of a credit. */
        CreditOutcome: {
            applied: boolean;
            /** @description The amount that each bucket was credited. */
            policies?: components["schemas"]["CreditedBucket"][] | null;
            /** @description Why it was not applied; null if it was. */
            reason: components["schemas"]["CreditRefusal"] | null;
        };
        /**
         * @description Why a credit was not applied.
         *
         *     `unknown`: No check with this reference is stored.
         *
         *     `other_subject`: It belongs to another subject.
         *
         *     `duplicate`: This event was credited before.
         *
         *     `not_settled`: The check is not settled yet.
         *
         *     `not_creditable`: No rule credits this event and outcome.
         * @enum {string}
         */
        CreditRefusal: "unknown" | "other_subject" | "duplicate" | "not_settled" | "not_creditable";
        /** @description The amount that one bucket was credited. */
        CreditedBucket: {
            /**
             * Format: int64
             * @example 1
             */
            amount: number;
            /** @example lookups */
            policy: string;
        };
        /** @description Whether a request may pass. A denial is a decision, not an error. */
        Decision: {
            allowed: boolean;
            /** Format: date-time */
            blocked_until: string | null;
            /** @description True if a cached block decided, without a call to the store; absent otherwise. */
            cached?: boolean;
            /**
             * @description Whether a failure or a lack of memory made this less exact.
             * @example false
             */
            degraded: boolean;
            /**
             * Format: int64
             * @description That policy's limit.
             * @example 10
             */
            limit: number | null;
            /** @description Text for the caller. */
            message: string | null;
            mode: components["schemas"]["Mode"];
            /** @description Every policy of the gate. */
            policies: components["schemas"]["DecisionRow"][];
            /**
             * @description The policy that decided, or the tightest when allowed; null if no limit applies.
             * @example login
             */
            policy: string | null;
            reason: components["schemas"]["Reason"];
            /**
             * Format: int64
             * @description What remains of it; never negative.
             * @example 9
             */
            remaining: number | null;
            /**
             * Format: int64
             * @description Until the full quota is available and no block is active.
             * @example 900000
             */
            reset_after_ms: number | null;
            /**
             * Format: int64
             * @description Until this check would pass; null when allowed, or never.
             */
            retry_after_ms: number | null;
            /**
             * @description The catalog's revision.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
            /**
             * Format: int32
             * @description The status for a gateway to respond with, if a ban rule names one.
             */
            status?: number | null;
            /** @description The ticket to settle this check with; null if there is nothing to settle. */
            ticket: string | null;
            /** @description True if the catalog does not name the gate; absent otherwise. */
            unlisted?: boolean;
        };
        /** @description A decision, or the error in its check. */
        DecisionOrProblem: components["schemas"]["Decision"] | components["schemas"]["Problem"];
        /** @description One policy's part of a decision. */
        DecisionRow: {
            allowed: boolean;
            /** @description The attribute, if the policy counts each attribute on its own. */
            attribute?: string | null;
            /**
             * Format: int64
             * @description A bucket's tokens; negative is debt.
             */
            balance?: number | null;
            /** Format: date-time */
            blocked_until?: string | null;
            /**
             * Format: int64
             * @description What this check was charged, or holds until it is settled.
             * @example 1
             */
            charged: number;
            /**
             * Format: int64
             * @description The escalation level of the active block: how many escalating offences are remembered. The next one lasts longer. Absent without a block, and if none escalated.
             */
            level?: number | null;
            /**
             * Format: int64
             * @example 10
             */
            limit: number | null;
            mode: components["schemas"]["Mode"];
            /** @example login */
            policy: string;
            reason: components["schemas"]["Reason"];
            /**
             * Format: int64
             * @example 9
             */
            remaining: number | null;
            /**
             * Format: int64
             * @example 900000
             */
            reset_after_ms: number | null;
            /** Format: int64 */
            retry_after_ms: number | null;
            /**
             * Format: int64
             * @description The length of the limit's window, or how long an empty bucket takes to fill; absent if nothing is counted.
             * @example 900000
             */
            window_ms?: number | null;
            /** @description The windows in the order of the policy, if it has several; absent otherwise. The numbers of the row are those of the window with the smallest share left. */
            windows?: components["schemas"]["Window"][] | null;
        };
        /** @description A denial, as a gateway forwards it. */
        Denial: {
            /**
             * @description The policy's message.
             * @example Slow down: try again in 1 minute.
             */
            detail: string | null;
            /** @example login */
            policy: string | null;
            /** @example over_limit */
            reason: components["schemas"]["Reason"];
            /**
             * Format: int64
             * @description Whole seconds; null if the request will never pass.
             * @example 60
             */
            retry_after: number | null;
            /**
             * Format: int32
             * @example 429
             */
            status: number;
            /** @example Too Many Requests */
            title: string | null;
            /**
             * Format: uri
             * @example https://iana.org/assignments/http-problem-types#quota-exceeded
             */
            type: string;
            /**
             * @example [
             *       "login"
             *     ]
             */
            "violated-policies": string[];
        };
        /** @description A denial for programs. */
        DenialError: {
            /** @description True in the format `conflict`; absent in `error`. */
            conflict?: boolean | null;
            /**
             * @description In the format `conflict`, the policy's message if it has one.
             * @example Rate limit exceeded
             */
            error: string;
            /**
             * Format: int64
             * @description Whole seconds; null if the request will never pass.
             * @example 60
             */
            retryAfter: number | null;
        };
        /** @description A denial for people. */
        DenialMessage: {
            error: boolean;
            /**
             * @description The policy's message.
             * @example Slow down: try again in 1 minute.
             */
            errorMessage: string;
            /**
             * Format: int64
             * @description Whole seconds; null if the request will never pass.
             * @example 60
             */
            retryAfter: number | null;
            /** @example false */
            success: boolean;
        };
        /**
         * @description A lease to end.
         * @example {
         *       "lease_id": "0123456789abcdef0123456789abcdef"
         *     }
         */
        EndLease: {
            /** @description The `lease_id` of the grant. */
            lease_id: string;
        };
        /** @description A hold that has ended, so that it cannot be confirmed. */
        EndedHold: {
            /** @description Always false. */
            confirmed: boolean;
            /** @description A description for people. */
            error: string;
            /** @description `expired`, `released` or `forced`. */
            state: string;
            /** @description Whether all of it is still free, so that `reacquire_if_free` would confirm it. */
            still_free: boolean;
        };
        /** @description The result of a release or a cancellation. */
        EndedLease: {
            /**
             * @description `released`, `already_released`, `expired` or `not_holder`; only `released` is a change.
             * @enum {string}
             */
            outcome: "released" | "already_released" | "expired" | "not_holder";
            /** @description Whether this call ended it. */
            released: boolean;
        };
        /** @description The target, the reason and the end of an entry. */
        EntryTerms: {
            attribute?: string | null;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            /**
             * @description An address range.
             * @example 203.0.113.0/24
             */
            range?: string | null;
            /** @example open proxies */
            reason: string | null;
            /**
             * Format: date-time
             * @description When it ends; null if it lasts until it is removed.
             */
            until: string | null;
            /** @description Its value, or the pseudonym of a private one. */
            value?: string | null;
        };
        /**
         * @description An entry to remove: a `range`, or an `attribute` and its `value`.
         * @example {
         *       "range": "203.0.113.0/24",
         *       "why": "they have moved"
         *     }
         */
        EntryToRemove: {
            attribute?: string | null;
            /** @description The namespace of the entry; the default is an entry of all, or of that of the key. */
            namespace?: string | null;
            range?: string | null;
            value?: string | null;
            /** @description For the audit. */
            why?: string | null;
        };
        /** @description Numbers of erased rows. */
        ErasedRows: {
            /**
             * Format: int64
             * @example 3
             */
            acts: number;
            /**
             * Format: int64
             * @example 2
             */
            blocks: number;
            /**
             * Format: int64
             * @example 1
             */
            facts: number;
        };
        /** @description What was erased about an identifier, and what was retained. */
        ErasureReport: {
            /** @example payer */
            attribute: string;
            /**
             * @description Why counters are not erased.
             * @example counters are keyed digests without names; each lapses with its window
             */
            counters: string;
            /** @description Whether the audit of this request is on disk. */
            durable: boolean;
            erased: components["schemas"]["ErasedRows"];
            retained: components["schemas"]["RetainedRows"];
        };
        /** @description The attempts of one key of the identifier. */
        ExportedAttempts: {
            /**
             * Format: int64
             * @description All attempts, allowed or not.
             * @example 12
             */
            attempts: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            first_attempt_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            last_attempt_at: string;
            /** @example default */
            namespace: string;
            /** @example login */
            policy: string;
        };
        /** @description A block with its history. */
        ExportedBlock: {
            /** @description The operator, if one started it. */
            by: string | null;
            history: components["schemas"]["BlockHistoryEntry"][];
            /**
             * @description The block's id. An extension keeps it; a later block of the same key has another.
             * @example 6495e3a5b8000a3f09c2d4b17
             */
            id: string;
            /**
             * Format: int64
             * @description How many escalating offences are remembered: the next one lasts longer. 0 if there is none.
             * @example 2
             */
            level: number;
            /**
             * @description The mode of the policy: a block denies only under `enforce`. Null if the catalog has no such policy.
             * @example enforce
             */
            mode: string | null;
            /** @example default */
            namespace: string;
            origin: components["schemas"]["Origin"];
            /**
             * @description Why the block denies no request: the catalog in use makes other keys. Null if it does deny.
             * @example the policy counts by other attributes
             */
            orphaned: string | null;
            /** @example login */
            policy: string;
            reason: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            since: string;
            /** @description Whether it is active now. */
            standing: boolean;
            /**
             * @description The subject that is blocked.
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description An entry of a list about the identifier. */
        ExportedEntry: {
            /** @example blocklist */
            list: string;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            reason: string | null;
            /** Format: date-time */
            until: string | null;
        };
        /** @description A page of the facts that operators set. */
        FactPage: {
            facts: components["schemas"]["StatedFact"][];
            /** @description Why the newest entries may be missing; absent if none is. */
            incomplete?: string | null;
            /** @description The `after` of the next page; null on the last. */
            next: string | null;
        };
        /** @description Which facts to delete, and why. */
        FactsToForget: {
            /** @description The namespace of the facts; the default is those of all, or of that of the key. */
            namespace?: string | null;
            /**
             * @description For the audit.
             * @example the plan has ended
             */
            why?: string | null;
        };
        /** @description How to end a lease, and why. */
        ForceLock: {
            /**
             * Format: int64
             * @description How long its names stay taken, but not longer than the lease would have. Default: 5,000.
             */
            cool_down_ms?: number | null;
            /**
             * @description For the audit; required.
             * @example its holder is gone
             */
            reason: string;
        };
        /** @description A lease that an operator ended. */
        ForcedLock: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            acquired_at: string;
            /** @description Whether the audit is on disk. */
            durable: boolean;
            /**
             * Format: date-time
             * @description Null if it is a confirmed slot.
             * @example 2026-01-31T18:00:00Z
             */
            expires_at: string | null;
            /**
             * Format: int64
             * @description The fence, by which an operator can end the lease.
             * @example 1769860800000000
             */
            fence: number;
            /** @description Always true. */
            forced: boolean;
            /** @description The locked names. */
            keys?: string[] | null;
            kind: string;
            meta: string | null;
            /** @example default */
            namespace: string;
            owner_label: string | null;
            /** @description The held range of time. */
            slot?: components["schemas"]["Slot"] | null;
            /** @description `held` or `confirmed`. */
            state: string;
            tenant: string | null;
            /** Format: int64 */
            version: number;
        };
        /** @description A free range. */
        FreeRange: {
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            end: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            start: string;
        };
        /** @description A gate and its policies in order. */
        Gate: {
            /** @example appointments */
            gate: string;
            /**
             * @example [
             *       "global",
             *       "appointments"
             *     ]
             */
            policies: string[];
        };
        /** @description A lease that was granted. */
        GrantedLease: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            acquired_at: string;
            /** @description Where the lease is stored: `memory` or `fsync`. */
            durability: string;
            /**
             * Format: date-time
             * @description The first instant at which the lease is no longer valid.
             * @example 2026-01-31T12:00:00Z
             */
            expires_at: string;
            /**
             * Format: int64
             * @description The fencing token: send it with every write, and let the resource refuse a lower one.
             * @example 1769860800000000
             */
            fence: number;
            /** @description Always true. */
            granted: boolean;
            /** @description The locked names. */
            keys?: string[] | null;
            kind: string;
            /**
             * @description The proof of holding the lease, sent only here: it allows to renew and to release.
             * @example 0123456789abcdef0123456789abcdef
             */
            lease_id: string;
            /**
             * Format: date-time
             * @description The instant past which it cannot be renewed.
             * @example 2026-01-31T18:00:00Z
             */
            renewable_until: string;
            /** @description The held range of time. */
            slot?: components["schemas"]["Slot"] | null;
            tenant: string | null;
            /**
             * Format: int64
             * @description The remaining lifetime, rounded down; count it from before you sent the request.
             */
            ttl_ms: number;
            /**
             * Format: int64
             * @description The version you sent, or else the fence.
             */
            version: number;
        };
        /** @description Verdicts of the policies of one group: a request counts once in each policy. */
        GroupTotals: {
            /**
             * Format: int64
             * @example 950
             */
            allowed: number;
            /**
             * Format: int64
             * @example 20
             */
            blocked: number;
            /**
             * Format: int64
             * @example 30
             */
            denied: number;
            /** @example payments */
            group: string;
            /**
             * Format: int64
             * @example 1000
             */
            total: number;
        };
        /**
         * @description A range of time to hold in some calendars, all or none.
         * @example {
         *       "calendar": "shop-1/ana",
         *       "end": "2026-01-31T12:30:00Z",
         *       "start": "2026-01-31T12:00:00Z",
         *       "tenant": "t1"
         *     }
         */
        HoldSlot: {
            /**
             * Format: int64
             * @description How long to keep free after the slot.
             */
            buffer_after_ms?: number | null;
            /**
             * Format: int64
             * @description How long to keep free before the slot.
             */
            buffer_before_ms?: number | null;
            /** @description The calendar. */
            calendar?: string | null;
            /** @description Up to 16 calendars, in place of `calendar`. */
            calendars?: string[] | null;
            /** @description The first instant after the slot. */
            end: components["schemas"]["Instant"];
            /** @description The kind of the lease. Default: `appointment`. */
            kind?: string | null;
            /**
             * Format: int64
             * @description The longest time that renewals can extend the lease to, from its grant.
             */
            max_hold_ms?: number | null;
            /** @description A note, up to 1 KiB. */
            meta?: string | null;
            /** @description The holder's name, shown to other clients and operators. */
            owner_label?: string | null;
            /** @description An id of this request, best a random one. */
            request_id?: string | null;
            /** @description The first instant of the slot. */
            start: components["schemas"]["Instant"];
            /** @description The tenant, which is part of the calendar's name; an API key that fixes `tenant` sets it. */
            tenant?: string | null;
            /**
             * Format: int64
             * @description How long it is held. Default: the lifetime of its kind.
             */
            ttl_ms?: number | null;
            /**
             * Format: int64
             * @description A number of your own, returned with the lease.
             */
            version?: number | null;
        };
        /** @description The other holder; without its `lease_id`. */
        Holder: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            acquired_at: string;
            /**
             * Format: date-time
             * @description Null if it is a confirmed slot.
             * @example 2026-01-31T18:00:00Z
             */
            expires_at: string | null;
            owner_label: string | null;
            /** Format: int64 */
            version: number;
        };
        /**
         * @description The subject to inspect.
         * @example {
         *       "subject": {
         *         "customer": "c-4711"
         *       }
         *     }
         */
        InspectRequest: {
            /** @description The namespace; required as soon as there are several, unless the key is bound to one. */
            namespace?: string | null;
            subject: components["schemas"]["Subject"];
        };
        /** @description The list entry that decides for a subject. */
        InspectedEntry: {
            attribute?: string | null;
            /**
             * @description The operator; null for an entry of the catalog, and where `reason` is hidden.
             * @example ana
             */
            by: string | null;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            /**
             * @description An address range.
             * @example 203.0.113.0/24
             */
            range?: string | null;
            /**
             * @description Null if none was given, and for a key that is bound to a namespace if the entry applies in all of them.
             * @example open proxies
             */
            reason: string | null;
            /**
             * Format: date-time
             * @description When an operator added or last changed it; null for an entry of the catalog.
             * @example 2026-01-31T12:00:00Z
             */
            since: string | null;
            /**
             * @description Where it comes from: a file of the `catalog`, or `run-time`.
             * @example run-time
             * @enum {string}
             */
            source: "catalog" | "run-time";
            /**
             * Format: date-time
             * @description When it ends; null if it lasts until it is removed.
             */
            until: string | null;
            /** @description Its value, or the pseudonym of a private one. */
            value?: string | null;
        };
        /** @description One policy that applies to a subject. */
        InspectedPolicy: {
            allowed: boolean;
            /** @description The attempts of this key in the last day, up to a second ago; absent unless the records count those of single keys. */
            attempts?: components["schemas"]["KeyAttempts"] | null;
            /** @description The attribute, if the policy counts each attribute on its own. */
            attribute?: string | null;
            /**
             * Format: int64
             * @description A bucket's tokens; negative is debt.
             */
            balance?: number | null;
            /** Format: date-time */
            blocked_until?: string | null;
            /**
             * Format: int64
             * @description What this check was charged, or holds until it is settled.
             * @example 1
             */
            charged: number;
            /**
             * Format: int64
             * @description The escalation level of the active block: how many escalating offences are remembered. The next one lasts longer. Absent without a block, and if none escalated.
             */
            level?: number | null;
            /**
             * Format: int64
             * @example 10
             */
            limit: number | null;
            /** @description The message for the caller, if the policy would deny it. */
            message?: string | null;
            mode: components["schemas"]["Mode"];
            /** @example login */
            policy: string;
            reason: components["schemas"]["Reason"];
            /**
             * Format: int64
             * @example 9
             */
            remaining: number | null;
            /**
             * Format: int64
             * @example 900000
             */
            reset_after_ms: number | null;
            /** Format: int64 */
            retry_after_ms: number | null;
            /**
             * @description What a request needs to be counted in this row: names with their accepted values. The row is that of a tier with a counter of its own. Absent for the row that the attributes select.
             * @example {
             *       "method": [
             *         "POST"
             *       ]
             *     }
             */
            tier?: {
                [key: string]: string[];
            } | null;
            /**
             * Format: int64
             * @description The length of the limit's window, or how long an empty bucket takes to fill; absent if nothing is counted.
             * @example 900000
             */
            window_ms?: number | null;
            /** @description The windows in the order of the policy, if it has several; absent otherwise. The numbers of the row are those of the window with the smallest share left. */
            windows?: components["schemas"]["Window"][] | null;
        };
        /** @description All there is to know of a subject. */
        Inspection: {
            /** @description The active blocks that name a value of the subject, newest first. */
            blocks: components["schemas"]["Block"][];
            /** @description The last ten blocks that named a value of the subject and have ended, the last one first. */
            ended_blocks: components["schemas"]["Block"][];
            /** @description The facts about the values of the subject. */
            facts: {
                [key: string]: string;
            };
            /** @description Why the newest blocks may be missing; absent if none is. */
            incomplete?: string | null;
            /** @description `allowlisted` or `blocklisted` if a list decides for this subject, before its policies; null otherwise. */
            list: string | null;
            /** @description The entry of that list; null if no list decides. */
            list_entry: components["schemas"]["InspectedEntry"] | null;
            /** @description Whether there are more active blocks: at most 1,000 acts of each value are listed. */
            more_blocks: boolean;
            /** @example default */
            namespace: string;
            /** @description Every policy that applies to these attributes, as a check of cost one would see it. A tier with a counter of its own, which the attributes neither select nor exclude, is a row too. */
            policies: components["schemas"]["InspectedPolicy"][];
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
        };
        /** @description An instant: RFC 3339 with a zone, or milliseconds since the epoch. */
        Instant: string | number;
        /** @description A denial in the formats `message`, `error` and `conflict` of `[server] denial`. */
        JsonDenial: components["schemas"]["DenialMessage"] | components["schemas"]["DenialError"];
        /** @description The attempts of one key. */
        KeyAttempts: {
            /**
             * Format: int64
             * @description All attempts, allowed or not.
             * @example 12
             */
            attempts: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            first_attempt_at: string;
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            last_attempt_at: string;
        };
        /** @description An entry of a list. */
        ListEntry: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            at: string;
            attribute?: string | null;
            by: string | null;
            /**
             * Format: int64
             * @example 3
             */
            id: number;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            /** @description Whether no caller can have the value under the catalog in use. */
            orphaned: boolean;
            /**
             * @description An address range.
             * @example 203.0.113.0/24
             */
            range?: string | null;
            reason: string | null;
            /**
             * Format: date-time
             * @description When it ends; null if it lasts until it is removed.
             */
            until: string | null;
            /** @description Its value, or the pseudonym of a private one. */
            value?: string | null;
        };
        /** @description A page of a list's entries. */
        ListPage: {
            /**
             * Format: int64
             * @description The number of entries in the catalog that apply, which are not listed: only the catalog changes them.
             * @example 2
             */
            catalog_entries: number;
            entries: components["schemas"]["ListEntry"][];
            /** @description Why the newest entries may be missing; absent if none is. */
            incomplete?: string | null;
            /** @description The `after` of the next page; null on the last. */
            next: string | null;
        };
        /** @description A block, or a ban of several identities. */
        ListedBlock: {
            /** @description The operator, if one started it. */
            by: string | null;
            /**
             * @description The block's id. An extension keeps it; a later block of the same key has another.
             * @example 6495e3a5b8000a3f09c2d4b17
             */
            id: string;
            /**
             * Format: int64
             * @description How many escalating offences are remembered: the next one lasts longer. 0 if there is none.
             * @example 2
             */
            level: number;
            /** @description The other active blocks that the same act made; a release ends them too. */
            members: components["schemas"]["BlockMember"][];
            /**
             * @description The mode of the policy: a block denies only under `enforce`. Null if the catalog has no such policy.
             * @example enforce
             */
            mode: string | null;
            /** @example default */
            namespace: string;
            origin: components["schemas"]["Origin"];
            /**
             * @description Why the block denies no request: the catalog in use makes other keys. Null if it does deny.
             * @example the policy counts by other attributes
             */
            orphaned: string | null;
            /** @example login */
            policy: string;
            reason: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            since: string;
            /** @description Whether it is active now. */
            standing: boolean;
            /**
             * @description The subject that is blocked.
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * Format: date-time
             * @description The first instant after the block; null if it has no end.
             * @example 2026-01-31T18:00:00Z
             */
            until: string | null;
        };
        /** @description A lease in an operator's list. */
        ListedLease: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            acquired_at: string;
            /**
             * Format: date-time
             * @description Null if it is a confirmed slot.
             * @example 2026-01-31T18:00:00Z
             */
            expires_at: string | null;
            /**
             * Format: int64
             * @description The fence, by which an operator can end the lease.
             * @example 1769860800000000
             */
            fence: number;
            /** @description The locked names. */
            keys?: string[] | null;
            kind: string;
            meta: string | null;
            /** @example default */
            namespace: string;
            owner_label: string | null;
            /** @description The held range of time. */
            slot?: components["schemas"]["Slot"] | null;
            /** @description `held` or `confirmed`. */
            state: string;
            tenant: string | null;
            /** Format: int64 */
            version: number;
        };
        /** @description A conflict with another holder. */
        LockConflict: {
            /** @description Always true. */
            conflict: boolean;
            /** @description A description for people. */
            error: string;
            /** @description Always false. */
            granted: boolean;
            holder: components["schemas"]["Holder"];
            /**
             * Format: int64
             * @description Until the other lease ends; null if it is a confirmed slot.
             */
            retry_after_ms: number | null;
            /** @description The name or calendar that is taken. */
            taken: string;
            /**
             * Format: int64
             * @description How many requests wait for it already.
             */
            waiters: number;
        };
        /** @description Attempts by outcome, in all and by namespace, tenant and kind. */
        LockCounts: {
            /** Format: int64 */
            active: number;
            /** Format: int64 */
            conflicts: number;
            /** Format: int64 */
            expired: number;
            /** Format: int64 */
            forced: number;
            /** Format: int64 */
            released: number;
            rows: components["schemas"]["LockCountsRow"][];
            /** Format: int64 */
            success: number;
            /** Format: int64 */
            total: number;
            /**
             * Format: int64
             * @description How many requests wait now.
             */
            waiters: number;
        };
        /** @description Attempts of one namespace, tenant and kind by outcome. */
        LockCountsRow: {
            /** Format: int64 */
            active: number;
            /** Format: int64 */
            conflicts: number;
            /** Format: int64 */
            expired: number;
            /** Format: int64 */
            forced: number;
            kind: string;
            /** @example default */
            namespace: string;
            /** Format: int64 */
            released: number;
            /** Format: int64 */
            success: number;
            tenant: string | null;
            /** Format: int64 */
            total: number;
        };
        /** @description A page of active leases. */
        LockPage: {
            locks: components["schemas"]["ListedLease"][];
            /** @description The `after` of the next page; null on the last. A page before the last may be short. */
            next: string | null;
        };
        /**
         * @description Whether a policy is enforced.
         *
         *     `enforce`: Its decisions count.
         *
         *     `shadow`: It is evaluated and reported, but never denies.
         *
         *     `off`: It is not evaluated.
         * @enum {string}
         */
        Mode: "enforce" | "shadow" | "off";
        /**
         * @description A slot to move, and its new range.
         * @example {
         *       "end": "2026-01-31T14:30:00Z",
         *       "lease_id": "0123456789abcdef0123456789abcdef",
         *       "start": "2026-01-31T14:00:00Z"
         *     }
         */
        MoveSlot: {
            /** @description Another calendar. */
            calendar?: string | null;
            /** @description Other calendars, in place of `calendar`. */
            calendars?: string[] | null;
            /** @description The first instant after the slot. */
            end: components["schemas"]["Instant"];
            /** @description The `lease_id` of the hold. */
            lease_id: string;
            /** @description The first instant of the slot. */
            start: components["schemas"]["Instant"];
        };
        /** @description A slot that was moved. */
        MovedSlot: {
            /**
             * Format: int64
             * @description A new fence.
             */
            fence: number;
            /** @description The locked names. */
            keys?: string[] | null;
            kind: string;
            /** @description Always true. */
            moved: boolean;
            /** @description The held range of time. */
            slot?: components["schemas"]["Slot"] | null;
            /** @description `held` or `confirmed`. */
            state: string;
            tenant: string | null;
            /** Format: int64 */
            version: number;
        };
        /** @description The namespaces that exist, or the one of the caller's key. */
        NamespaceList: {
            /**
             * @example [
             *       "default",
             *       "shop"
             *     ]
             */
            namespaces: string[];
        };
        /** @description A block to create. */
        NewBlock: {
            /**
             * @description How long, such as `30m`, `24h` or `forever`.
             * @example 2h
             */
            for: string;
            /** @description The namespace; required of a key that is bound to none, as soon as there are several. */
            namespace?: string | null;
            /** @example login */
            policy: string;
            /**
             * @description Shown with the block.
             * @example scanning accounts
             */
            reason?: string | null;
            /** @description Who to block; every key under which the policy counts this subject is blocked. */
            subject: components["schemas"]["Subject"];
            /** @description For the audit. Default: `reason`. */
            why?: string | null;
        };
        /**
         * @description An entry to add: a `range`, or an `attribute` and its `value`; `for` or `until`, or neither.
         * @example {
         *       "for": "7d",
         *       "range": "203.0.113.0/24",
         *       "reason": "open proxies"
         *     }
         */
        NewEntry: {
            /** @description An attribute other than `ip`. */
            attribute?: string | null;
            /** @description How long, such as `24h`. */
            for?: string | null;
            /** @description The only namespace in which it applies; the default is all, or that of the key. */
            namespace?: string | null;
            /** @description An address range, or one address. */
            range?: string | null;
            /** @description Shown with the entry. */
            reason?: string | null;
            /** @description When it ends. */
            until?: string | null;
            /** @description Its value: 1 to 256 bytes. */
            value?: string | null;
            /** @description For the audit. Default: `reason`. */
            why?: string | null;
        };
        /** @description Facts to set. */
        NewFacts: {
            /**
             * @example {
             *       "category": "A"
             *     }
             */
            facts: {
                [key: string]: string;
            };
            /** @description The only namespace in which they apply; the default is all, or that of the key. */
            namespace?: string | null;
            /** @description For the audit. */
            why?: string | null;
        };
        /** @description The mode to set. */
        NewMode: {
            /**
             * @description Null returns to the catalog's mode; it must be sent explicitly.
             * @example shadow
             * @enum {string|null}
             */
            mode: "enforce" | "shadow" | "off" | null;
            /**
             * @description For the audit.
             * @example too strict since noon
             */
            why?: string | null;
        };
        /** @description The balance of one bucket as the upstream reports it. */
        ObservedBucket: {
            /**
             * Format: int64
             * @description Whole tokens.
             */
            available: number;
            /**
             * Format: int64
             * @description The size of the upstream's bucket. What it has more than ours stays in reserve.
             */
            capacity?: number | null;
            /** @description The policy. Capitals do not matter. */
            policy: string;
        };
        /**
         * @description Why a block started.
         *
         *     `excess`: A limit was exceeded.
         *
         *     `ban`: A ban rule.
         *
         *     `operator`: An operator.
         *
         *     `upstream`: An upstream denied the request.
         * @enum {string}
         */
        Origin: "excess" | "ban" | "operator" | "upstream";
        /** @description A block that denies no request any more. */
        OrphanedBlock: {
            /** @example 6495e3a5b8000a3f09c2d4b17 */
            id: string;
            /** @example default */
            namespace: string;
            /** @example login */
            policy: string;
            /**
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
            /**
             * @description Why.
             * @example the policy counts by other attributes
             */
            why: string;
        };
        /** @description What the upstream responded, as far as prices and ban rules read it. */
        Outcome: {
            /** @description The body of the response, if a ban rule reads it: any JSON. Rules see one that repeats a key, or has a number or a text that cannot be represented, as null with `body_invalid`. */
            body?: unknown;
            /** @description The body of the response as text, instead of `body`, if it may not be JSON. Rules see a text that is not readable as JSON as null with `body_invalid`. */
            body_text?: string | null;
            /**
             * Format: int64
             * @description The amount, for policies whose cost is `reported`.
             */
            cost?: number | null;
            /** @description The headers of the response, if a ban rule reads them. */
            headers?: {
                [key: string]: string;
            };
            /**
             * Format: int32
             * @description The HTTP status of the response.
             * @example 404
             */
            status?: number | null;
        };
        /** @description A policy, summarised. */
        Policy: {
            /** @description Rules that ban on an outcome. */
            bans: components["schemas"]["Ban"][];
            /**
             * @description How long an excess blocks.
             * @example 30m
             */
            block: string | null;
            /**
             * @description The attributes that form the key of a counter.
             * @example [
             *       "ip"
             *     ]
             */
            by?: string[] | null;
            debt: boolean;
            /** @description The attributes that are counted one by one, in place of `by`. */
            each?: string[] | null;
            group: string | null;
            /**
             * @description The limit; null if only its tiers have limits.
             * @example window 10 per 15m
             */
            limit: string | null;
            /** @description The mode in effect. */
            mode: components["schemas"]["Mode"];
            /** @description The policy used instead if a key attribute is missing, or if no tier matches. */
            otherwise: string | null;
            /** @description Whether an operator set the mode. */
            overridden: boolean;
            /** @example login */
            policy: string;
            /** @description Other terms for some callers; the first tier whose condition holds applies. */
            tiers: components["schemas"]["Tier"][];
        };
        /** @description A policy, and the revision of its catalog. */
        PolicyAtRevision: {
            /** @description Rules that ban on an outcome. */
            bans: components["schemas"]["Ban"][];
            /**
             * @description How long an excess blocks.
             * @example 30m
             */
            block: string | null;
            /**
             * @description The attributes that form the key of a counter.
             * @example [
             *       "ip"
             *     ]
             */
            by?: string[] | null;
            debt: boolean;
            /** @description The attributes that are counted one by one, in place of `by`. */
            each?: string[] | null;
            group: string | null;
            /**
             * @description The limit; null if only its tiers have limits.
             * @example window 10 per 15m
             */
            limit: string | null;
            /** @description The mode in effect. */
            mode: components["schemas"]["Mode"];
            /** @description The policy used instead if a key attribute is missing, or if no tier matches. */
            otherwise: string | null;
            /** @description Whether an operator set the mode. */
            overridden: boolean;
            /** @example login */
            policy: string;
            /**
             * @description The catalog's revision.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
            /** @description Other terms for some callers; the first tier whose condition holds applies. */
            tiers: components["schemas"]["Tier"][];
        };
        /** @description Every policy of the catalog in use. */
        PolicyList: {
            policies: components["schemas"]["Policy"][];
            /**
             * @description The catalog's revision.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
        };
        /** @description Requests of a period, and the verdicts of each policy. */
        PolicyStats: {
            /**
             * Format: int64
             * @example 950
             */
            allowed: number;
            /**
             * Format: int64
             * @example 20
             */
            blocked: number;
            /** @description Which program uses which gate, since the start of this node. */
            callers: components["schemas"]["CallerTotals"][];
            /**
             * Format: int64
             * @example 30
             */
            denied: number;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            from: string;
            /** @description The same verdicts by group of the catalog in use; policies without a group are left out. */
            groups: components["schemas"]["GroupTotals"][];
            policies: components["schemas"]["PolicyTotals"][];
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            to: string;
            /**
             * Format: int64
             * @example 1000
             */
            total: number;
            /** @description Gates that checks named since the start and that the catalog does not declare, at most 1,000. They are not known by namespace: a key that is bound to one gets none. */
            unlisted_gates: string[];
        };
        /** @description Verdicts of one policy: a request counts once in each policy that it was checked against. */
        PolicyTotals: {
            /**
             * Format: int64
             * @example 950
             */
            allowed: number;
            /**
             * Format: int64
             * @example 20
             */
            blocked: number;
            /**
             * Format: int64
             * @example 30
             */
            denied: number;
            /** @example login */
            policy: string;
            /**
             * Format: int64
             * @example 1000
             */
            total: number;
        };
        /** @description Everything that the records hold about an identifier. */
        PrivacyExport: {
            /** @description What operators did about this identifier. */
            acts: components["schemas"]["AuditEntry"][];
            /** @description The attempts of its keys, if the records count those of single keys. */
            attempts: components["schemas"]["ExportedAttempts"][];
            /** @example payer */
            attribute: string;
            blocks: components["schemas"]["ExportedBlock"][];
            /**
             * @description Why counters are not included.
             * @example counters are keyed digests without names; each lapses with its window
             */
            counters: string;
            /** @description Whether the audit of this request is on disk. */
            durable: boolean;
            /** @description Facts that apply in all namespaces, by name. */
            facts: {
                [key: string]: string;
            };
            lists: components["schemas"]["ExportedEntry"][];
            /**
             * @description Facts that apply in one namespace only, by namespace.
             * @example {
             *       "shop": {
             *         "plan": "gold"
             *       }
             *     }
             */
            namespace_facts: {
                [key: string]: {
                    [key: string]: string;
                };
            };
            /** @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them. */
            scope?: string | null;
        };
        /** @description The identifier that a privacy request is about. */
        PrivacyRequest: {
            /** @example payer */
            attribute: string;
            /**
             * @description The real value; it is never written to disk or logs.
             * @example 52998224725
             */
            value: string;
            /**
             * @description For the audit.
             * @example their request of this morning
             */
            why?: string | null;
        };
        /** @description An error (RFC 9457). */
        Problem: {
            /** @description A stable code for programs. */
            code: string;
            /**
             * Format: int64
             * @description Column of the body.
             */
            column?: number | null;
            /** @description The error in this request, and how to fix it. */
            detail: string;
            /** @description The invalid entries of a list. */
            errors?: components["schemas"]["WrongEntry"][];
            /**
             * Format: int64
             * @description Line of the body, counted from one.
             */
            line?: number | null;
            /** Format: int32 */
            status: number;
            title: string;
            /**
             * Format: uri-reference
             * @description The page about this error code.
             */
            type: string;
        };
        /** @description The readiness of the server. */
        Readiness: {
            /** @description What works, but slower or of less use than it could; absent if there is nothing to say. */
            notes?: components["schemas"]["ReadinessNote"][];
            /**
             * Format: int64
             * @description The number of policies.
             * @example 12
             */
            policies: number;
            /** @description What an operator should look at. */
            problems: components["schemas"]["ReadinessProblem"][];
            /** @description False while the server stops. */
            ready: boolean;
            /**
             * @description The revision of the current catalog.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
        };
        /** @description A limitation of the deployment that needs no action, with its remedy. */
        ReadinessNote: {
            /**
             * @description `locks`: callers that wait for a lock poll. `dict`: the DICT has buckets that the catalog does not have.
             * @example locks
             */
            what: string;
            /**
             * @description The reason; in detail only for requests with a key.
             * @example ask with a key, or read the log
             */
            why: string;
        };
        /** @description A problem of the server, with its remedy. */
        ReadinessProblem: {
            /**
             * @description The location in the catalog's files.
             * @example shop.toml:7:10
             */
            place?: string | null;
            /**
             * @description `stopping`, `catalog`, `restart`, `records`, `clock`, `facts`, `lists`, `blocks`, `nodes`, `locks`, `store`, `background`, `upstream`, or a pool of memory that has no room: `counters`, `blocks`, `references` or `settled-markers`.
             * @example catalog
             */
            what: string;
            /**
             * @description The reason; in detail only for requests with a key.
             * @example ask with a key, or read the log
             */
            why: string;
        };
        /**
         * @description The reason of a decision, or of one policy's part of it.
         *
         *     `ok`: Within the limit.
         *
         *     `over_limit`: The limit is exceeded.
         *
         *     `blocked`: A block is active.
         *
         *     `blocklisted`: The subject is on the blocklist.
         *
         *     `allowlisted`: The subject is on the allowlist.
         *
         *     `too_costly`: The cost exceeds the whole limit, so it can never pass.
         *
         *     `missing`: An attribute is missing, and the policy denies in that case.
         *
         *     `unavailable`: The store is unavailable, and the policy denies in that case.
         * @enum {string}
         */
        Reason: "ok" | "over_limit" | "blocked" | "blocklisted" | "allowlisted" | "too_costly" | "missing" | "unavailable";
        /**
         * @description The balances of buckets as an upstream reports them: `states` and `observed_at`, or `xml`.
         * @example {
         *       "observed_at": "2026-01-31T12:00:00Z",
         *       "states": [
         *         {
         *           "available": 49500,
         *           "policy": "lookups"
         *         }
         *       ],
         *       "subject": {
         *         "participant": "12345678"
         *       }
         *     }
         */
        ReconcileRequest: {
            /**
             * Format: date-time
             * @description When the upstream read the balances; not in the future.
             */
            observed_at?: string | null;
            states?: components["schemas"]["ObservedBucket"][] | null;
            /** @description Whose buckets. */
            subject: components["schemas"]["Subject"];
            /** @description The answer of the DICT's `listBucketStates` or `getBucketState`, which has the instant too. */
            xml?: string | null;
        };
        /** @description The buckets of a reconciliation. */
        ReconcileResult: {
            buckets: components["schemas"]["ReconciledBucket"][];
            /** @description States for which there is no bucket here. */
            skipped: components["schemas"]["SkippedBucket"][];
        };
        /** @description The balance of a bucket before and after a reconciliation. */
        ReconciledBucket: {
            /**
             * Format: int64
             * @description Tokens after.
             * @example 49500
             */
            after: number;
            /**
             * Format: int64
             * @description Tokens before.
             * @example 50000
             */
            before: number;
            /** @example lookups */
            policy: string;
        };
        /** @description What to release, and why. */
        ReleaseRequest: {
            /** @description Whether only this block ends, and not those that the same act made. */
            only?: boolean;
            /** @description Whether the keys of the ended blocks are reset too: their counters, which may still be full, and their escalation levels. */
            reset_counters?: boolean;
            /**
             * @description For the audit; required from a key of role `support`.
             * @example the caller was wronged
             */
            why?: string | null;
        };
        /** @description A block that an operator released. */
        ReleasedBlock: {
            /** @description The block before the release. */
            block: components["schemas"]["Block"];
            /** @description Whether the counters were reset too. If `reset_counters` was true and this is false, the reset failed, and `note` says why; the release is done. */
            counters_reset: boolean;
            /** @description Whether it is on disk. */
            durable: boolean;
            /** @description Why `until` is unknown; absent if the records could be read after the release. */
            incomplete?: string | null;
            /** @description The blocks that were released with it: the same act had made them. */
            members: components["schemas"]["BlockMember"][];
            /**
             * @description What may block the caller again at the next check; absent if nothing of this block does.
             * @example the counters are unchanged: while the limit is exhausted, the next check is denied and blocks again; release with `reset_counters` to prevent that
             */
            note?: string | null;
            /** @description Always true: for a block that has ended already the call fails with `not-blocked`. */
            released: boolean;
            /** @description The blocks of the same act that are still active, because the store has other ends than the records: release each by its id, or reset its key. */
            remaining: components["schemas"]["BlockMember"][];
            /**
             * Format: date-time
             * @description When it ended; null if the records could not be read after the release.
             * @example 2026-01-31T12:00:00Z
             */
            until: string | null;
        };
        /** @description The result of a reload; the catalog may be unchanged. */
        ReloadResult: {
            /** @description Settings that changed since the server started, and take effect at its next start. */
            after_restart: string[];
            /**
             * @description The revision before.
             * @example 9f2c61d0a7b3e845
             */
            before: string;
            /** @description A description of every change. */
            changes: string[];
            /** @description Whether this was a dry run, which changes nothing. */
            dry_run: boolean;
            /** @description Whether it is on disk. */
            durable: boolean;
            /**
             * Format: date-time
             * @description Since when the revision is in force, if it was in force before this call, such as because the server saw the changed files first; null if this call applied it. The call is in the audit in both cases.
             * @example 2026-01-31T12:00:00Z
             */
            in_force_since: string | null;
            /**
             * Format: int64
             * @description The number of blocks in force that deny no request any more, because the catalog makes other keys; null if the records cannot be read.
             * @example 0
             */
            orphaned: number | null;
            /** @description The first of them. */
            orphaned_blocks: components["schemas"]["OrphanedBlock"][];
            /**
             * Format: int64
             * @description The number of list entries that match no caller any more, or may not: their values are normalised differently, and are known only as pseudonyms, or no caller can have them.
             * @example 0
             */
            orphaned_entries: number | null;
            /**
             * Format: int64
             * @description The number of facts of which the same is true.
             * @example 0
             */
            orphaned_facts: number | null;
            /**
             * @description The revision in use now.
             * @example 9f2c61d0a7b3e845
             */
            revision: string;
        };
        /** @description An entry that a request removed. */
        RemovedEntry: {
            /** @description Always null. */
            after: null;
            /** @description The entry before it was removed. */
            before: components["schemas"]["EntryTerms"];
            /** @description Whether it is on disk. */
            durable: boolean;
            /**
             * @description Which list.
             * @example blocklist
             */
            list: string;
            /** @description Other nodes that do not know of it yet; absent if there are none. */
            nodes_behind?: string[];
        };
        /**
         * @description A lease to renew.
         * @example {
         *       "lease_id": "0123456789abcdef0123456789abcdef"
         *     }
         */
        RenewLock: {
            /** @description The `lease_id` of the grant. */
            lease_id: string;
            /**
             * Format: int64
             * @description The lifetime from now on. Default: that of its kind.
             */
            ttl_ms?: number | null;
        };
        /** @description A lease that was renewed. */
        RenewedLease: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            expires_at: string;
            /**
             * Format: int64
             * @description The same as before.
             */
            fence: number;
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            renewable_until: string;
            /** @description Always true. */
            renewed: boolean;
            /**
             * Format: int64
             * @description The remaining lifetime, rounded down.
             */
            ttl_ms: number;
            /** Format: int64 */
            version: number;
        };
        /**
         * @description What to reset: one key of a policy, or the whole policy.
         * @example {
         *       "policy": "login",
         *       "subject": {
         *         "ip": "198.51.100.7"
         *       },
         *       "why": "a test of ours"
         *     }
         */
        ResetRequest: {
            /** @description The policy's name again; required to reset the whole policy. */
            confirm?: string | null;
            /** @description The namespace of the subject; required of a key that is bound to none, as soon as there are several. A whole policy is reset in all of them, and a call that names one is refused. */
            namespace?: string | null;
            policy: string;
            /** @description The subject whose key is reset; without it, the whole policy is. */
            subject?: components["schemas"]["Subject"] | null;
            /** @description For the audit; required to reset the whole policy. */
            why?: string | null;
        };
        /** @description The result of a reset. */
        ResetResult: {
            /**
             * Format: int64
             * @description The number of blocks that a reset of the whole policy ended; null for one key, and if they could not be counted. They have no effect in either case.
             */
            blocks: number | null;
            /** @description Whether it is on disk. */
            durable: boolean;
            /** @description The blocks of other keys that a reset of one key ended, because the same act had made them; null for a whole policy, and if they could not be looked up. */
            members: components["schemas"]["BlockMember"][] | null;
            /** @example login */
            policy: string;
            /** @description The blocks of the same acts that are still active, because the store has other ends than the records: reset their keys too. */
            remaining: components["schemas"]["BlockMember"][];
            /** @description Always true. */
            reset: boolean;
        };
        /** @description Numbers of rows that are still in effect to protect others; each is deleted when it ends. */
        RetainedRows: {
            /**
             * Format: int64
             * @example 1
             */
            blocks: number;
            /**
             * Format: int64
             * @example 0
             */
            debts: number;
            /**
             * Format: int64
             * @example 0
             */
            lists: number;
        };
        /** @description A route and its gate. */
        Route: {
            /** @example appointments */
            gate: string;
            /** @example POST /api/appointments/** */
            match: string;
        };
        /**
         * @description A test to run.
         * @example {
         *       "action": "test_concurrent_appointments",
         *       "data": {
         *         "duration": 30,
         *         "startAt": "2026-01-31T12:00:00Z"
         *       }
         *     }
         */
        SelfTest: {
            action: components["schemas"]["SelfTestAction"];
            /** @description The input of a test; each test uses a part of it. */
            data?: components["schemas"]["SelfTestData"];
        };
        /**
         * @description The tests.
         *
         *     `test_rate_limit`: Sends six checks against a limit of five.
         *
         *     `test_lock`: Acquires a lock, provokes a conflict, releases it.
         *
         *     `test_concurrent_appointments`: Books one slot sixteen times at once.
         *
         *     `clear_rate_limits`: Resets the counters of the self-test.
         *
         *     `clear_locks`: Ends all leases of the self-test.
         * @enum {string}
         */
        SelfTestAction: "test_rate_limit" | "test_lock" | "test_concurrent_appointments" | "clear_rate_limits" | "clear_locks";
        /** @description The input of a test; each test uses a part of it. */
        SelfTestData: {
            /**
             * Format: int64
             * @description The length of the booking, in minutes. Default: 30.
             */
            duration?: number | null;
            /** @description The name of the lock. */
            resourceId?: string | null;
            /** @description The kind of the lock. */
            resourceType?: string | null;
            /** @description When the booking begins. Default: now. */
            startAt?: components["schemas"]["Instant"] | null;
        };
        /** @description Counts of limits and locks, leases, and settings of the server. */
        SelfTestReport: {
            /** @description The oldest leases in your namespace, or of the tenant that your key fixes. */
            active: components["schemas"]["ListedLease"][];
            /** @description The verdicts of each policy in the last day; null if there are no records to count them in. */
            limits: components["schemas"]["PolicyTotals"][] | null;
            /** @description Lock attempts in your namespace, or of the tenant that your key fixes. */
            locks: components["schemas"]["LockCounts"];
            /** Format: int64 */
            policies: number;
            /** @description The revision of the catalog in use. */
            revision: string;
            /** @description The default lifetime of each kind of lock, in milliseconds. */
            ttl_ms: {
                [key: string]: number;
            };
        };
        /** @description The result of a test. */
        SelfTestResult: {
            /** @example test_lock */
            action: string;
            /** @description Whether the audit is on disk. */
            durable: boolean;
            /** @description Whether the test passed. */
            ok: boolean;
            /** @description What was counted, by name. */
            seen: {
                [key: string]: number;
            };
        };
        /**
         * @description The outcome of an allowed check, which is named by `ticket`, or by `ref` and `subject`.
         * @example {
         *       "outcome": {
         *         "status": 404
         *       },
         *       "ref": "E1234567820260101000012345678901",
         *       "subject": {
         *         "participant": "12345678",
         *         "payer": "52998224725"
         *       }
         *     }
         */
        Settle: {
            /** @description What the upstream responded. */
            outcome: components["schemas"]["Outcome"];
            /** @description The `ref` of the check. */
            ref?: string | null;
            /** @description The subject of the check, if it is named by `ref`. */
            subject?: components["schemas"]["Subject"];
            /** @description The ticket of the decision, unchanged. */
            ticket?: string | null;
        };
        /** @description One policy's part of a settlement. */
        SettledRow: {
            /** @description The attribute, if the policy counts each attribute on its own. */
            attribute?: string | null;
            /**
             * Format: int64
             * @description The available units now; negative is debt, null if nothing is counted.
             * @example -15
             */
            balance: number | null;
            /** @description The origin of the block that this settle started or extended. */
            blocked_by: components["schemas"]["Origin"] | null;
            /** Format: date-time */
            blocked_until: string | null;
            /**
             * Format: int64
             * @description The whole charge of the check.
             * @example 20
             */
            charged: number;
            /** @description The message for the client of that request. */
            message?: string | null;
            /** @example lookups */
            policy: string;
            /** @description The reason of the rule, if it has one. */
            reason: string | null;
            /**
             * Format: int32
             * @description The status for the request that triggered a rule.
             */
            status?: number | null;
        };
        /** @description The result of a settle. */
        Settlement: {
            /** @description True if a ban rule could not read the body, because it is not readable as JSON; absent otherwise. */
            body_invalid?: boolean;
            /** @description True if a ban rule could not read the body, because it is larger than the catalog's `body_bytes_max`; absent otherwise. */
            body_truncated?: boolean;
            /** @description Whether it is on disk; present if the settle left a debt or started a block. */
            durable?: boolean | null;
            /** @description Every policy that was charged. */
            policies: components["schemas"]["SettledRow"][];
            state: components["schemas"]["SettlementState"];
        };
        /**
         * @description The result of a settle.
         *
         *     `settled`: Applied now.
         *
         *     `again`: Applied before, with this result.
         *
         *     `expired`: Not applied: the ticket had expired.
         * @enum {string}
         */
        SettlementState: "settled" | "again" | "expired";
        /** @description A state for which there is no bucket here. */
        SkippedBucket: {
            /**
             * @description The policy, as the upstream names it.
             * @example CLAIMS_READ
             */
            policy: string;
            /**
             * @description Why: no policy has this name, it has no bucket, or the subject lacks an attribute.
             * @example no policy is called `CLAIMS_READ`
             */
            why: string;
        };
        /** @description A range of time in some calendars. */
        Slot: {
            /** Format: int64 */
            buffer_after_ms: number;
            /** Format: int64 */
            buffer_before_ms: number;
            calendars: string[];
            /**
             * Format: date-time
             * @example 2026-01-31T18:00:00Z
             */
            end: string;
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            start: string;
        };
        /** @description A fact that an operator set. */
        StatedFact: {
            /**
             * Format: date-time
             * @description When it was set.
             * @example 2026-01-31T12:00:00Z
             */
            at: string;
            /** @example participant */
            attribute: string;
            /**
             * @description The operator who set it.
             * @example ana
             */
            by: string | null;
            /** @example A */
            fact: string;
            /** @example category */
            name: string;
            /**
             * @description The only namespace in which it applies; null if it applies in all.
             * @example shop
             */
            namespace: string | null;
            /** @description Whether no caller can have the value under the catalog in use. */
            orphaned: boolean;
            /**
             * @description The value, or its pseudonym if the attribute is private.
             * @example 12345678
             */
            value: string;
        };
        /**
         * @description The attributes of a caller. Integers are taken as their digits; attributes that the catalog does not read are ignored.
         * @example {
         *       "ip": "198.51.100.7"
         *     }
         */
        Subject: {
            [key: string]: string | number;
        };
        /** @description The terms of the callers that match a condition. */
        Tier: {
            /**
             * @description How long an excess blocks.
             * @example 30m
             */
            block: string | null;
            /**
             * @description The price of a request.
             * @example the request's cost, or 1
             */
            cost: string;
            /** @example window 100 per 15m */
            limit: string;
            /**
             * @description The attributes and their values; those of private attributes are not shown.
             * @example plan = gold
             */
            when: string;
        };
        /** @description A subject, and how often it was blocked. */
        TopBlockedSubject: {
            /**
             * Format: int64
             * @description The number of blocks.
             * @example 4
             */
            blocks: number;
            /**
             * Format: date-time
             * @description The end of the last block; null if it has none.
             * @example 2026-01-31T18:00:00Z
             */
            last_until: string | null;
            /** @example default */
            namespace: string;
            /** @example login */
            policy: string;
            /**
             * @example {
             *       "ip": "198.51.100.7"
             *     }
             */
            subject: {
                [key: string]: string;
            };
        };
        /** @description The subjects that were blocked most often. */
        TopBlockedSubjects: {
            /**
             * Format: date-time
             * @example 2026-01-31T12:00:00Z
             */
            from: string;
            /**
             * @description `node` if each node has records of its own: these are those of the node that answered. Absent if all nodes share them.
             * @example node
             */
            scope?: string | null;
            subjects: components["schemas"]["TopBlockedSubject"][];
        };
        /** @description The facts about one value. */
        ValueFacts: {
            /** @example participant */
            attribute: string;
            /**
             * @example {
             *       "category": "A"
             *     }
             */
            facts: {
                [key: string]: string;
            };
            /**
             * @description The namespace in which operators set them; null for those of all namespaces.
             * @example shop
             */
            namespace: string | null;
        };
        /**
         * @description How a version is checked.
         *
         *     `opaque`: Not at all: it is only returned.
         *
         *     `monotonic`: Each grant of a name needs a higher version than the one before.
         * @enum {string}
         */
        VersionPolicy: "opaque" | "monotonic";
        /** @description The caller, as this server sees it. */
        Whoami: {
            /**
             * @description The client's address.
             * @example 198.51.100.7
             */
            address: string;
            /**
             * @description The header that may contain the client's address, or `none`.
             * @example x-forwarded-for
             */
            header: string;
            /**
             * @description The namespace of the key.
             * @example default
             */
            namespace: string;
            /**
             * @description The name of the key; `local` while there are no keys.
             * @example ana
             */
            operator: string;
            /**
             * @description The address at the other end of the connection.
             * @example 127.0.0.1
             */
            peer: string;
            /**
             * @description The role of the key: `read`, `check`, `support` or `admin`.
             * @example admin
             */
            role: string;
            /**
             * @description Why this address was chosen.
             * @example the first hop from the right that is not a trusted proxy
             */
            why: string;
        };
        /** @description One of several windows of a policy. */
        Window: {
            /**
             * Format: int64
             * @example 600
             */
            limit: number;
            /**
             * Format: int64
             * @example 599
             */
            remaining: number;
            /**
             * Format: int64
             * @description Until the window is empty and no block is active; null if that never comes.
             * @example 60000
             */
            reset_after_ms: number | null;
            /**
             * Format: int64
             * @description Until the same check would fit in this window; null if it fits, or never will.
             */
            retry_after_ms: number | null;
            /**
             * Format: int64
             * @description The length of the window.
             * @example 60000
             */
            window_ms: number;
        };
        /** @description An invalid entry of a list. */
        WrongEntry: {
            /** @description The error in it. */
            detail: string;
            /**
             * Format: int64
             * @description Its position in the list, counted from one.
             * @example 3
             */
            entry: number;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
