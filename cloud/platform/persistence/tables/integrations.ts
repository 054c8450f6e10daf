/** Connections to merchants' systems. Units: ../schema.ts. */

export interface IntegrationConnectionRow {
  connection_id: string
  tenant: string
  store_id: string
  side: string
  system: string
  /** Credentials as JSON, sealed for `integration_connection/{connection_id}`; null if there are none. */
  sealed: string | null
  /** Lease of the process that reads the system now. */
  lease_id: string | null
  lease_until_ms: number
  updated_ms: number
}

export interface IntegrationPullRow {
  store_id: string
  side: string
  system: string
  data_type: string
  tenant: string
  /** Hash of the source of the data. */
  source: string
  /** Cursor of the next page; null: start with the first page. If `is_done` is 1, all pages are read. */
  next_cursor: string | null
  is_done: number
  /** JSON: cloud/sales/integrations/connection.ts. */
  counts: string
  started_ms: number
  updated_ms: number
}

export interface ErpRecordRow {
  store_id: string
  data_type: string
  system: string
  external_id: string
  tenant: string
  doc: string
  updated_ms: number
}
