import type { z } from 'zod'
import type { VendorClient } from './vendor-client.ts'

/** Names of supported systems (ADR webhooks). */

export const POS_SYSTEMS = ['shopify', 'square', 'lightspeed', 'clover', 'sumup', 'generic', 'custom'] as const
export const ERP_SYSTEMS = ['odoo', 'erpnext', 'businesscentral', 'sapb1', 'generic', 'custom'] as const
export type SystemName = (typeof POS_SYSTEMS)[number] | (typeof ERP_SYSTEMS)[number]

/** Till or ERP. A store can have several connections on each side. */
export type Side = 'pos' | 'erp'

/** Data types that are read from a system. */
export const DATA_TYPES = { pos: ['articles'], erp: ['stock', 'orders', 'suppliers'] } as const
export type DataType = 'articles' | 'stock' | 'orders' | 'suppliers'

/** `custom` is a synonym of `generic`. */
export function canonical(system: SystemName): string {
  return system === 'custom' ? 'generic' : system
}

/** A line of a sale or refund. */
export interface TransactionLine {
  readonly name: string
  readonly ean: string | undefined
  readonly quantity: number
  readonly unitCent: number
  readonly vat: number | undefined
  /** Deposits and refunded amounts have no EAN. */
  readonly kind: 'goods' | 'deposit' | 'amount'
  /** In a refund: the line of the sale of which some pieces came back. */
  readonly sold?: TransactionLine
}

/**
 * A merchant's till or ERP system; connectors/ has one file for each. All connectors pass the same tests
 * (test/cloud/sales/integrations/connectors.test.ts).
 */
export interface Connector<C = unknown> {
  readonly name: string
  readonly sides: readonly Side[]
  /** Strict schema of the credentials: texts, and `mapping` if the system has one. */
  readonly credentials: z.ZodType<C>
  /** Description of the credentials for the API documentation. */
  readonly needs: string
  /** Address of the system. All requests must have the same origin as this address. */
  addressOf(credentials: C): string
  /** Identifies the data source (address, shop, branch). Cursors of another source are invalid. */
  sourceOf(credentials: C): string
  /** Reason why the system accepts no records; absent if it accepts records. */
  readonly takesNoRecords?: string
  connect(credentials: C, client: VendorClient, side: Side): Connection
}

export interface Connection {
  readonly pull: Partial<Record<DataType, Pull>>
  /** Absent if the system accepts no records. */
  readonly push?: Push
}

/** Reads the page at `cursor`; null means the first page. The records have our field names (mapping.ts). */
export type Pull = (cursor: string | null) => Promise<Page>

export interface Page {
  readonly records: readonly unknown[]
  /** Cursor of the next page; null on the last page. */
  readonly next: string | null
}

export type PushedRecord = Readonly<Record<string, unknown>>

export interface Push {
  /** Accepted data types; undefined if the system accepts all. */
  readonly dataTypes: readonly string[] | undefined
  /** Maximum number of records per request. */
  readonly batch: number
  /** Writes a batch. Each attempt of the same batch uses the same idempotency `key`. */
  send(dataType: string, records: readonly PushedRecord[], key: string): Promise<PushFault[]>
}

/** A record that the system rejected; `index` is its index in the batch. */
export interface PushFault {
  readonly index: number
  readonly field: string
  readonly code: string
  readonly message: string
}

/** Declares a connector and hides the type of its credentials. */
export function connector<C>(declared: Connector<C>): Connector {
  return declared as unknown as Connector
}
