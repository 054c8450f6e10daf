/** Sales of tills, returns that wait for their sale, and limits (ADR till-sales). Units: ../schema.ts. */

export interface TillSaleRow {
  /** Identity of the sale, 16 bytes in hex; also the `cti` of its receipt (policy/till-sale.ts). */
  sale_key: string
  tenant: string
  store_id: string
  till_id: string | null
  series: string | null
  sale_id: string
  state: 'open' | 'paid' | 'void'
  version: number
  /** Hash of the content; null for a void that arrived before its sale. */
  content: string | null
  /** Null for an open sale, and for a void before its sale. */
  purchase_id: string | null
  /** JSON of the answer, for repetitions; null before payment. */
  result: string | null
  /** Agent that recorded the sale; null: the cloud. */
  agent_id: string | null
  /** When an agent or the cloud stored it. */
  stored_ms: number
  /** End of an open sale; when a void without a sale becomes an exception. Else null. */
  due_ms: number | null
}

/** Hash of a printed code, of which a store may have several sales. */
export interface ReceiptCodeRow {
  store_id: string
  code: string
  sale_key: string
  stored_ms: number
}

/** A return that arrived. */
export interface TillReturnRow {
  return_key: string
  tenant: string
  store_id: string
  sale_key: string
  /** JSON of the return, while it waits for its sale. */
  body: string
  content: string
  /** JSON of the answer; null while the return waits for its sale. */
  result: string | null
  stored_ms: number
  /** When a return without a sale becomes an exception; null once it was applied. */
  due_ms: number | null
}

/** Sales of a till since `since_ms` are on hold. */
export interface TillRevocationRow {
  store_id: string
  till_id: string
  tenant: string
  since_ms: number
  revoked_ms: number
}

/** What a till sold in an hour, for the limits of the policy. */
export interface TillHourRow {
  store_id: string
  till_id: string
  /** Hours since 1970. */
  hour: number
  sales: number
  value_cent: number
}
