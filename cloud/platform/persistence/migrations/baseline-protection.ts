/** Edge agents, their devices and operators, and the receipt homes of stores. */
export const AGENTS: readonly string[] = [
  // `online_only_until_ms`: After a rollback of the agent's ledger, each claim needs the cloud until this time; null:
  // no rollback. `fork_ms`: Time at which a fork of the agent's ledger was detected. `state`: The last state that the
  // agent reported: JSON of `AgentState`; long, so it is one of the last columns. `policy_version`, `faults`: from this
  // state; the version of its policy document, and JSON of its devices that do not work; null: none. `online`: 1 while
  // the agent is connected to the broker, 0 after that; null if the agent was never connected. `resync`: `awaited` or
  // `due` while this agent must send its journal again to a restored cloud, else null. `replaces`: Predecessor, which
  // the cloud revokes at the first login of this agent. This column is null after that login. `replaced_by`: Successor
  // that continues the ledger of this agent. `ahead_ms`: Last arrival of a row from the future; null: none.
  // `till_until_ms`: When the policy ceased to name the agent in `tillSales.agents`; null: never.
  `CREATE TABLE agent (
    agent_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    x text NOT NULL UNIQUE, ledger_id text NOT NULL UNIQUE, generation bigint NOT NULL, last_seq bigint NOT NULL,
    head_hash text NOT NULL, deny_seq bigint NOT NULL, enrolled_ms bigint NOT NULL, last_seen_ms bigint NOT NULL,
    revoked_ms bigint, item_seq bigint NOT NULL DEFAULT 0, online_only_until_ms bigint, fork_ms bigint,
    policy_version bigint, faults text, next_x text,
    home_url text, resync text, replaces text, replaced_by text, online bigint, ahead_ms bigint, till_until_ms bigint,
    state text, device_states text)`,
  `CREATE INDEX agent_by_store ON agent (store_id)`,
  `CREATE UNIQUE INDEX agent_by_next_key ON agent (next_x) WHERE next_x IS NOT NULL`,
  `CREATE INDEX agent_by_tenant ON agent (tenant, agent_id)`,
  // One row per time in which the cloud did not hear from an agent for long (watch/incidents.ts). `began_ms`: its last
  // contact. `ended_ms`: null while it lasts.
  `CREATE TABLE agent_outage (
    outage_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, agent_id text NOT NULL, began_ms bigint NOT NULL,
    ended_ms bigint)`,
  `CREATE INDEX agent_outage_by_store ON agent_outage (store_id, began_ms)`,
  // Two processes watch, and each time is stored once.
  `CREATE UNIQUE INDEX agent_outage_open ON agent_outage (agent_id) WHERE ended_ms IS NULL`,
  // A former signing key of an agent.
  `CREATE TABLE agent_former_key (
    agent_id text NOT NULL, x text NOT NULL, retired_ms bigint NOT NULL, PRIMARY KEY (agent_id, x))`,
  `CREATE INDEX agent_former_key_by_age ON agent_former_key (retired_ms)`,
  `CREATE TABLE enrolment_code (
    code_hash text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, made_by text NOT NULL, name text NOT NULL,
    expires_ms bigint NOT NULL, tries bigint NOT NULL, agent_id text)`,
  `CREATE INDEX enrolment_code_by_tenant ON enrolment_code (tenant) WHERE agent_id IS NULL`,
  `CREATE INDEX enrolment_code_by_expiry ON enrolment_code (expires_ms)`,
  // The one-time code of a store with which one of its agents registers a device. A new code replaces the former one.
  // `device_id`: Device that was registered with the code; null if the code is unused.
  `CREATE TABLE setup_code (
    store_id text PRIMARY KEY REFERENCES store (store_id), tenant text NOT NULL, code_hash text NOT NULL,
    made_by text NOT NULL, expires_ms bigint NOT NULL, device_id text)`,
  `CREATE TABLE agent_challenge (challenge_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  `CREATE TABLE agent_session (token_hash text PRIMARY KEY, agent_id text NOT NULL, expires_ms bigint NOT NULL)`,
  // `till_id`: The till beside it, whose sales alone release here. `moving_to`: Agent that gets the device when the
  // present agent has given up the device's tokens; null: the device does not move.
  `CREATE TABLE device (
    device_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), agent_id text,
    device_type text NOT NULL, name text, zone_id text, lane_id text, gate_id text, till_id text, firmware_version text,
    capabilities text NOT NULL, technologies text NOT NULL, workflow_type text, registered_ms bigint NOT NULL,
    last_seen_ms bigint, revoked_ms bigint, moving_to text)`,
  `CREATE INDEX device_by_store ON device (store_id, device_id)`,
  `CREATE INDEX device_by_tenant ON device (tenant, device_id)`,
  `CREATE INDEX device_by_type ON device (tenant, device_type, device_id)`,
  `CREATE INDEX device_moving ON device (tenant, store_id) WHERE moving_to IS NOT NULL`,
  // `verifiers`: JSON of the verifiers that are published under the present store key. `sealed`: Base verifiers,
  // sealed. Null after the operator was removed.
  `CREATE TABLE operator (
    operator_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), name text NOT NULL,
    verifiers text NOT NULL, created_ms bigint NOT NULL, removed_ms bigint, sealed text)`,
  `CREATE INDEX operator_by_store ON operator (store_id)`,
  // The key under which the verifiers of a store are published (policy/operator-verifiers.ts).
  `CREATE TABLE store_key (
    store_id text PRIMARY KEY REFERENCES store (store_id), key_id text NOT NULL, sealed text NOT NULL)`,
  // The receipt home of each former epoch. The present home is in the store's policy. `agent_id`: The agent, or
  // `cloud`.
  `CREATE TABLE former_home (
    store_id text NOT NULL, home_epoch bigint NOT NULL, agent_id text NOT NULL, PRIMARY KEY (store_id, home_epoch))`,
  // The latest move of the receipt home. The new home must have received the deny list up to `deny_seq` before it
  // honours older receipts. `denied_after`: Used rights of the receipts after this one are still to be denied; null:
  // all are denied.
  `CREATE TABLE home_move (
    store_id text PRIMARY KEY REFERENCES store (store_id), moved_s bigint NOT NULL, deny_seq bigint NOT NULL, denied_after text)`,
  `CREATE INDEX home_move_denying ON home_move (store_id) WHERE denied_after IS NOT NULL`,
  // Agents that may have unreported redemptions of older receipts. The policy version `policy_ver` names the new
  // receipt home. `policy_ver`: Policy version that names the new receipt home.
  `CREATE TABLE home_move_wait (
    store_id text NOT NULL REFERENCES store (store_id), agent_id text NOT NULL REFERENCES agent (agent_id),
    policy_ver bigint NOT NULL, PRIMARY KEY (store_id, agent_id))`,
]

/** Protected items, authorizations, the rights of units, redemptions, and the journals and events of agents. */
export const PROTECTION: readonly string[] = [
  // `tag_id_folded`: `tag_id` in the form in which it is compared. `expiry`: Last day on which the unit may be sold,
  // `YYYY-MM-DD`. `serial`: Serial of GS1 (application identifier 21), which is printed on the goods or part of the
  // EPC. `item_seq`: Sequence number of the item's last change. A store numbers the changes of all its items.
  `CREATE TABLE protected_item (
    item_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL REFERENCES store (store_id), epc text, tag_uid text,
    tag_id text, tag_id_folded text, tag_technology text, protection_technology text, serial_number text, product_id text, ean text, brand text,
    category text, price_cent bigint, lot text, expiry text, serial text, item_status text NOT NULL, purchase_id text, line_id text, unit_no bigint,
    rev bigint NOT NULL, created_ms bigint NOT NULL, updated_ms bigint NOT NULL, item_seq bigint NOT NULL DEFAULT 0,
    UNIQUE (tenant, epc), UNIQUE (tenant, tag_uid), UNIQUE (tenant, tag_id_folded))`,
  `CREATE INDEX protected_item_by_product ON protected_item (store_id, product_id, item_status, item_id)`,
  `CREATE INDEX protected_item_by_ean ON protected_item (tenant, ean, item_id)`,
  `CREATE INDEX protected_item_by_seq ON protected_item (store_id, item_seq)`,
  // One row per change of an item's status, with the item's identifiers at that time. Rows never change. `rev`: The
  // item's revision after the change. `from_status`: null: the item was registered. `reason`: Reason that the caller
  // of `updateItemStatus` sent. `reported_ms`: When an agent stored the report of a till that moved the item; null:
  // `at_ms`. `position`: Position of the transaction that stored the row (positions.ts).
  `CREATE TABLE item_move (
    item_id text NOT NULL, rev bigint NOT NULL, tenant text NOT NULL, store_id text NOT NULL, from_status text,
    to_status text NOT NULL, epc text, tag_uid text, tag_id text, ean text, purchase_id text, line_id text, at_ms bigint NOT NULL,
    reason text, operator_id text, reported_ms bigint, position bigint NOT NULL DEFAULT 0, PRIMARY KEY (item_id, rev))`,
  `CREATE INDEX item_move_by_store ON item_move (store_id, at_ms, item_id, rev)`,
  `CREATE INDEX item_move_by_purchase ON item_move (purchase_id) WHERE purchase_id IS NOT NULL`,
  // Finds the newest move of an item that no till reported.
  `CREATE INDEX item_move_by_others ON item_move (item_id, store_id, rev) WHERE reported_ms IS NULL`,
  `CREATE INDEX item_move_by_position ON item_move (store_id, position, item_id, rev)`,
  // Last sequence number of item changes in a store. `floor`: Rows of `item_gone` below this number have been
  // deleted.
  `CREATE TABLE item_head (
    store_id text PRIMARY KEY REFERENCES store (store_id), seq bigint NOT NULL, floor bigint NOT NULL)`,
  // An identifier that an item no longer has.
  `CREATE TABLE item_gone (
    store_id text NOT NULL, kind text NOT NULL, name text NOT NULL, seq bigint NOT NULL, gone_ms bigint NOT NULL,
    PRIMARY KEY (store_id, kind, name))`,
  `CREATE INDEX item_gone_by_seq ON item_gone (store_id, seq)`,
  `CREATE INDEX item_gone_by_age ON item_gone (gone_ms)`,
  // Products whose facts changed. The items in the store after `after_item` must be published again.
  `CREATE TABLE item_refresh (
    store_id text NOT NULL, product_id text NOT NULL, tenant text NOT NULL, queued_ms bigint NOT NULL,
    after_item text NOT NULL, PRIMARY KEY (store_id, product_id))`,
  `CREATE INDEX item_refresh_by_tenant ON item_refresh (tenant, queued_ms, store_id, product_id)`,
  // A recall of goods (protection/items/recalls.ts). `stores`: Number of rows of `recall_store`; null: all
  // stores of the account.
  // `publish_after`: The items after this one must be published again; null: all are published. `receipts_after`: The
  // receipts of purchases after this one must be published; null: all are published, or there are none. `items`:
  // Items that matched when the recall began, and those of them that were sold; counted while they are published.
  `CREATE TABLE product_recall (
    recall_id text PRIMARY KEY, tenant text NOT NULL, stores bigint, product_id text NOT NULL, ean text NOT NULL, lot text,
    expiry text, serial text, reason text NOT NULL, started_ms bigint NOT NULL, started_by text NOT NULL, ended_ms bigint,
    ended_by text, publish_after text, receipts_after text, items bigint NOT NULL, sold_items bigint NOT NULL)`,
  `CREATE INDEX product_recall_by_tenant ON product_recall (tenant, recall_id)`,
  `CREATE INDEX product_recall_by_end ON product_recall (tenant, ended_ms)`,
  `CREATE TABLE recall_store (recall_id text NOT NULL, store_id text NOT NULL, PRIMARY KEY (recall_id, store_id))`,
  `CREATE INDEX product_recall_unpublished ON product_recall (tenant, recall_id) WHERE publish_after IS NOT NULL`,
  `CREATE INDEX product_recall_with_receipts ON product_recall (tenant, recall_id) WHERE receipts_after IS NOT NULL`,
  // `void_asked_ms`: Time at which the cloud first requested that the agent gives up the authorization.
  // `scan_source`: How the device read the goods.
  // `exchanges`: Times that an agent exchanged the token.
  `CREATE TABLE protection_authorization (
    nonce text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, device_id text NOT NULL, agent_id text,
    ledger text NOT NULL, action text NOT NULL, right_class text NOT NULL, count bigint NOT NULL, purchase_id text, item_id text,
    ith_kind text, ith_id text, event_id text NOT NULL, risk_class bigint NOT NULL, policy_version bigint NOT NULL,
    key_version bigint NOT NULL, iat bigint NOT NULL, exp bigint NOT NULL, revoked_ms bigint, voided_ms bigint, operator_id text,
    void_asked_ms bigint, scan_source text, exchanges bigint NOT NULL)`,
  `CREATE INDEX authorization_by_end ON protection_authorization (tenant, exp, nonce)`,
  `CREATE INDEX authorization_by_device ON protection_authorization (device_id, exp)`,
  `CREATE INDEX authorization_by_purchase ON protection_authorization (purchase_id)`,
  `CREATE INDEX authorization_by_item ON protection_authorization (item_id) WHERE item_id IS NOT NULL`,
  `CREATE INDEX authorization_by_operator ON protection_authorization (operator_id, exp) WHERE operator_id IS NOT NULL`,
  `CREATE INDEX authorization_void_asked ON protection_authorization (agent_id) WHERE void_asked_ms IS NOT NULL AND voided_ms IS NULL`,
  `CREATE INDEX authorization_without_purchase ON protection_authorization (iat) WHERE purchase_id IS NULL`,
  // Tokens that must still be revoked. `scope`: JSON of a `TokenScope`. `until_s`: Tokens that were issued later stay
  // valid, s. `after_exp`: The last token that was looked at.
  `CREATE TABLE token_revocation (
    revocation_id text PRIMARY KEY, tenant text NOT NULL, scope text NOT NULL, reason text NOT NULL, until_s bigint NOT NULL,
    after_exp bigint NOT NULL, after_nonce text NOT NULL)`,
  `CREATE INDEX token_revocation_by_tenant ON token_revocation (tenant, revocation_id)`,
  `CREATE TABLE authorization_unit (
    nonce text NOT NULL, ordinal bigint NOT NULL, line_id text NOT NULL, unit_no bigint NOT NULL, PRIMARY KEY (nonce, ordinal))`,
  // Rows are deleted after an hour, because the policy limits approvals per hour.
  `CREATE TABLE operator_approval (
    nonce text PRIMARY KEY, store_id text NOT NULL, operator_id text NOT NULL, at_ms bigint NOT NULL)`,
  `CREATE INDEX operator_approval_by_operator ON operator_approval (store_id, operator_id, at_ms)`,
  `CREATE INDEX operator_approval_by_age ON operator_approval (at_ms)`,
  // One row per right, so that a right has at most one live lease. `returned_by`: Id of the refund, cancellation or
  // item move that returned the goods. The right then stays used permanently. `was_given`: 1 if a receipt home ever
  // delegated this right to another agent; `delegated_right` contains the outcome. `denied`: 1 if the deny list names
  // the used right (receipt-home/deny-used-rights.ts).
  `CREATE TABLE unit_right (
    line_id text NOT NULL, unit_no bigint NOT NULL, right_class text NOT NULL, purchase_id text NOT NULL, state text NOT NULL,
    nonce text, device_id text, until_ms bigint, redemption_id text, outcome text, failures bigint NOT NULL, returned_by text,
    was_given bigint NOT NULL DEFAULT 0, denied bigint NOT NULL DEFAULT 0, PRIMARY KEY (line_id, unit_no, right_class))`,
  `CREATE INDEX unit_right_to_deny ON unit_right (purchase_id) WHERE state = 'used' AND denied = 0`,
  `CREATE INDEX unit_right_by_purchase ON unit_right (purchase_id)`,
  // A right that a receipt home delegated to another agent. `agent_id`: Agent that received the right. `state`:
  // `delegated`, or the outcome that the agent reported to the receipt home: `unknown` or `failed`. `until_s`: Expiry
  // of the receipt plus clock guard, s since 1970. `home_agent_id`: Agent that was the receipt home at the
  // delegation, and the home epoch at that time.
  `CREATE TABLE delegated_right (
    line_id text NOT NULL, unit_no bigint NOT NULL, right_class text NOT NULL, redemption_id text NOT NULL,
    purchase_id text NOT NULL, store_id text NOT NULL, agent_id text NOT NULL, state text NOT NULL, until_s bigint NOT NULL,
    home_agent_id text NOT NULL, home_epoch bigint NOT NULL, PRIMARY KEY (line_id, unit_no, right_class, redemption_id))`,
  `CREATE INDEX delegated_right_by_redemption ON delegated_right (redemption_id)`,
  `CREATE INDEX delegated_right_by_end ON delegated_right (until_s)`,
  // `line_id`: Line and unit of the used right; null if it used no right. `resolved_by`: Operator who resolved the
  // outcome; `reported` is then the outcome that the device reported.
  `CREATE TABLE redemption (
    nonce text NOT NULL, step bigint NOT NULL, redemption_id text NOT NULL, tenant text NOT NULL, source text NOT NULL,
    agent_id text, device_id text NOT NULL, at_ms bigint NOT NULL, event_id text NOT NULL, outcome text, line_id text,
    unit_no bigint, right_class text, resolved_by text, reported text, PRIMARY KEY (nonce, step, redemption_id))`,
  `CREATE INDEX redemption_by_id ON redemption (redemption_id)`,
  `CREATE INDEX redemption_by_unit ON redemption (line_id, unit_no, right_class)`,
  // `about`: Identity of the receipt, or nonce of the token, that an unapplied row is about.
  `CREATE TABLE journal_row (
    ledger_id text NOT NULL, generation bigint NOT NULL, seq bigint NOT NULL, agent_id text NOT NULL, hash text NOT NULL,
    body text NOT NULL, applied bigint NOT NULL, received_ms bigint NOT NULL, about text, PRIMARY KEY (ledger_id, generation, seq))`,
  // Finds what waits for a receipt or token.
  `CREATE INDEX journal_row_about ON journal_row (about) WHERE applied = 0 AND about IS NOT NULL`,
  `CREATE INDEX journal_row_unapplied ON journal_row (agent_id, generation, seq) WHERE applied = 0`,
  // `position`: Position of the transaction that stored the row (positions.ts).
  `CREATE TABLE protection_event (
    event_id text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, type text NOT NULL, device_id text, purchase_id text,
    occurred_ms bigint NOT NULL, processed_ms bigint NOT NULL, body text NOT NULL, position bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (event_id, tenant))`,
  `CREATE INDEX protection_event_by_store ON protection_event (store_id, processed_ms, event_id)`,
  `CREATE INDEX protection_event_by_position ON protection_event (store_id, position, event_id)`,
  `CREATE INDEX protection_event_by_type ON protection_event (store_id, type, position, event_id)`,
  `CREATE INDEX protection_event_by_device ON protection_event (store_id, device_id, position, event_id)
    WHERE device_id IS NOT NULL`,
  `CREATE INDEX protection_event_by_purchase ON protection_event (store_id, purchase_id, position, event_id)
    WHERE purchase_id IS NOT NULL`,
  // `earlier`: Earlier dispositions of the alarm as JSON, the latest first; null if there were none.
  `CREATE TABLE alarm_disposition (
    event_id text NOT NULL, tenant text NOT NULL, store_id text NOT NULL, disposition text NOT NULL, operator_id text NOT NULL,
    recovered_cent bigint, disposed_ms bigint NOT NULL, earlier text, PRIMARY KEY (event_id, tenant))`,
  `CREATE INDEX alarm_disposition_by_store ON alarm_disposition (store_id, disposed_ms, event_id)`,
  `CREATE INDEX alarm_disposition_by_tenant ON alarm_disposition (tenant, disposed_ms, event_id)`,
  // Inputs of past decisions (JSON), to simulate another policy. They contain prices and brands, but no data about
  // customers. `event_id`: Id of the event of this decision. `reason`: null: granted. `facts`: JSON of
  // DecisionFacts[]: one for each evaluated unit.
  `CREATE TABLE protection_decision (
    event_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, at_ms bigint NOT NULL, reason text,
    facts text NOT NULL)`,
  `CREATE INDEX protection_decision_by_store ON protection_decision (store_id, at_ms, event_id)`,
  `CREATE INDEX protection_decision_by_age ON protection_decision (at_ms)`,
  // `event_id`: Id of the last event about the exception.
  `CREATE TABLE protection_exception (
    exception_id text PRIMARY KEY, tenant text NOT NULL, store_id text NOT NULL, kind text NOT NULL, subject text NOT NULL,
    device_id text, purchase_id text, detail text NOT NULL, raised_ms bigint NOT NULL, acknowledged_ms bigint, note text,
    event_id text, times bigint NOT NULL DEFAULT 1, last_ms bigint, acknowledged_by text, UNIQUE (store_id, kind, subject))`,
  `CREATE INDEX protection_exception_by_store ON protection_exception (store_id, exception_id)`,
  `CREATE INDEX protection_exception_by_tenant ON protection_exception (tenant, exception_id)`,
  `CREATE INDEX protection_exception_by_tenant_kind ON protection_exception (tenant, kind, exception_id)`,
  `CREATE INDEX protection_exception_by_store_kind ON protection_exception (store_id, kind, exception_id)`,
  `CREATE INDEX protection_exception_open ON protection_exception (tenant, exception_id) WHERE acknowledged_ms IS NULL`,
  `CREATE INDEX protection_exception_open_in_store ON protection_exception (store_id, exception_id) WHERE acknowledged_ms IS NULL`,
  `CREATE INDEX protection_exception_open_kind ON protection_exception (tenant, kind, exception_id) WHERE acknowledged_ms IS NULL`,
  `CREATE INDEX protection_exception_open_kind_in_store ON protection_exception (store_id, kind, exception_id)
    WHERE acknowledged_ms IS NULL`,
  // Finds the exception of an alarm among many open ones.
  `CREATE INDEX protection_exception_by_event ON protection_exception (store_id, event_id) WHERE event_id IS NOT NULL`,
  // Finds those that the watch of agents raised, in all accounts.
  `CREATE INDEX protection_exception_watched ON protection_exception (kind, exception_id) WHERE acknowledged_ms IS NULL
    AND kind IN ('agent_silent', 'device_not_ready', 'policy_not_arrived', 'disk_low', 'key_set_not_renewed', 'api_key_ending')`,
  `CREATE INDEX alarm_open ON protection_exception (store_id, last_ms, exception_id)
    WHERE acknowledged_ms IS NULL AND kind IN ('gate_alarm', 'gate_bulk_alarm')`,
  `CREATE INDEX alarm_acknowledged ON protection_exception (store_id, acknowledged_ms, exception_id)
    WHERE acknowledged_ms IS NOT NULL AND kind IN ('gate_alarm', 'gate_bulk_alarm')`,
  `CREATE INDEX alarm_open_of_tenant ON protection_exception (tenant, last_ms, exception_id)
    WHERE acknowledged_ms IS NULL AND kind IN ('gate_alarm', 'gate_bulk_alarm')`,
  `CREATE INDEX alarm_acknowledged_of_tenant ON protection_exception (tenant, acknowledged_ms, exception_id)
    WHERE acknowledged_ms IS NOT NULL AND kind IN ('gate_alarm', 'gate_bulk_alarm')`,
  // `recall_cti`: Receipt of an entry about recalled units; null for other entries.
  `CREATE TABLE deny_entry (
    store_id text NOT NULL, seq bigint NOT NULL, body text NOT NULL, until_s bigint NOT NULL, recall_cti text,
    PRIMARY KEY (store_id, seq))`,
  `CREATE INDEX deny_entry_of_recall ON deny_entry (store_id, recall_cti) WHERE recall_cti IS NOT NULL`,
  `CREATE INDEX deny_entry_by_end ON deny_entry (until_s)`,
]
