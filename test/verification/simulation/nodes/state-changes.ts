import type { Database as Connection, Statement } from 'better-sqlite3'

/**
 * Triggers that record each state change of the cloud database. A trigger runs in the transaction of the change, so a
 * rollback or crash undoes both the change and the record.
 */
export const STATE_CHANGE_TRIGGERS = `
  CREATE TABLE world_change (n INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, was TEXT NOT NULL, became TEXT NOT NULL);
  CREATE TRIGGER world_purchase AFTER UPDATE OF status ON purchase WHEN OLD.status <> NEW.status
    BEGIN INSERT INTO world_change (kind, id, was, became) VALUES ('purchase', NEW.purchase_id, OLD.status, NEW.status); END;
  CREATE TRIGGER world_right AFTER UPDATE OF state ON unit_right WHEN OLD.state <> NEW.state
    BEGIN INSERT INTO world_change (kind, id, was, became) VALUES ('right', NEW.line_id || '/' || NEW.unit_no || '/' || NEW.right_class, OLD.state || ':' || CASE WHEN OLD.returned_by IS NULL THEN COALESCE(OLD.outcome, '') ELSE 'returned' END, NEW.state); END;
  CREATE TRIGGER world_item AFTER UPDATE OF item_status ON protected_item WHEN OLD.item_status <> NEW.item_status
    BEGIN INSERT INTO world_change (kind, id, was, became) VALUES ('item', NEW.item_id, OLD.item_status, NEW.item_status); END;
  CREATE TRIGGER world_tag AFTER UPDATE OF security_tag_status ON purchase WHEN COALESCE(OLD.security_tag_status, '') <> COALESCE(NEW.security_tag_status, '')
    BEGIN INSERT INTO world_change (kind, id, was, became) VALUES ('tag', NEW.purchase_id, COALESCE(OLD.security_tag_status, ''), COALESCE(NEW.security_tag_status, '')); END;
`

export interface StateChange {
  n: number
  kind: 'purchase' | 'right' | 'item' | 'tag'
  id: string
  was: string
  became: string
}

/**
 * Allowed state changes. The text for a right is `state:outcome`. A used right with a confirmed
 * outcome never changes.
 */
const ALLOWED: Record<StateChange['kind'], Readonly<Record<string, readonly string[]>>> = {
  purchase: {
    CREATED: ['PENDING_PAYMENT', 'CANCELLED', 'SUCCESS'],
    PENDING_PAYMENT: ['SUCCESS', 'CANCELLED'],
    SUCCESS: ['UNLOADED', 'CANCELLED'],
    UNLOADED: [],
    // If the bank returned the refund, the purchase and its items are paid again (cloud-oracle.ts).
    CANCELLED: ['SUCCESS'],
  },
  right: {
    'free:': ['leased', 'used'],
    'leased:': ['free', 'used'],
    'leased:unknown': ['free', 'used'],
    'used:': ['free', 'leased'],
    'used:unknown': ['free', 'leased'],
    'used:confirmed': [],
    'used:returned': [],
  },
  // This is a copy from the specification, so that the check does not depend on the tested code.
  item: {
    sellable: ['paid', 'reserved_bopis', 'transfer_in_transit', 'exception_hold'],
    paid: ['returned', 'cancelled', 'exception_hold'],
    cancelled: ['paid', 'sellable', 'exception_hold'],
    returned: ['sellable', 'exception_hold'],
    // A restored cloud may have lost a return. In that case staff make the goods sellable again.
    exception_hold: ['paid', 'returned', 'sellable'],
  },
  tag: { '': ['pending'], pending: ['deactivated'], deactivated: [] },
}

/** Describes the change if it is forbidden; returns undefined if it is allowed. */
export function forbiddenChange({ kind, id, was, became }: StateChange): string | undefined {
  if (ALLOWED[kind][was]?.includes(became)) return undefined
  return `${kind} ${id} went from ${was || 'nothing'} to ${became}`
}

/** Statement that selects changes after number `n`, oldest first. */
export function changesAfter(db: Connection): Statement<[number], StateChange> {
  return db.prepare<[number], StateChange>('SELECT n, kind, id, was, became FROM world_change WHERE n > ? ORDER BY n')
}
