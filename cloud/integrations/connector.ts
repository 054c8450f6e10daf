import type { z } from 'zod'
import type { DataType, Side } from './systems.ts'
import type { VendorClient } from './vendor-client.ts'

/**
 * What a system of a merchant's is to us. One file a system in connectors/; all of them pass the same tests
 * (test/cloud/integrations/connectors.test.ts).
 */
export interface Connector<C = unknown> {
  readonly name: string
  readonly sides: readonly Side[]
  /** The credentials as it needs them; strict. Texts, and `mapping` where it has one. */
  readonly credentials: z.ZodType<C>
  /** In words, for the documentation of the operation. */
  readonly needs: string
  /** Where it is: everything that is sent to it stays on this origin. */
  addressOf(credentials: C): string
  /** Whose data it is (address, shop, branch): a cursor of another source is worth nothing. */
  sourceOf(credentials: C): string
  /** Why nothing is written to it; absent where something is. */
  readonly takesNoRecords?: string
  connect(credentials: C, client: VendorClient, side: Side): Connection
}

export interface Connection {
  readonly pull: Partial<Record<DataType, Pull>>
  /** Writes records; absent where the system takes none. */
  readonly push?: Push
}

/** One page from `cursor` on (null: from the beginning), under our names (mapping.ts). */
export type Pull = (cursor: string | null) => Promise<Page>

export interface Page {
  readonly records: readonly unknown[]
  /** Where the next page begins; null: there is none. */
  readonly next: string | null
}

export type PushedRecord = Readonly<Record<string, unknown>>

export interface Push {
  /** Types of data that it takes; undefined: any. */
  readonly dataTypes: readonly string[] | undefined
  /** Records of one request at most. */
  readonly batch: number
  /** Writes a batch under a key that is the same whenever the same batch is tried again. */
  send(dataType: string, records: readonly PushedRecord[], key: string): Promise<PushFault[]>
}

/** A record that was not taken; `index` is its place in the batch. */
export interface PushFault {
  readonly index: number
  readonly field: string
  readonly code: string
  readonly message: string
}

/** Declares a connector; the table of connectors no longer knows the type of its credentials. */
export function connector<C>(declared: Connector<C>): Connector {
  return declared as unknown as Connector
}
