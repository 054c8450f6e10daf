/** Connections to merchants' systems. Units and forms: ../schema.ts. */

export interface IntegrationConnectionRow {
  connection_id: string
  tenant: string
  store_id: string
  side: string
  system: string
  /** Credentials as JSON, sealed for `integration_connection/{connection_id}`; null when none are kept. */
  sealed: string | null
  /** Who is reading the system now, and until when without a word. */
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
  /** Hash of whose data it is. */
  source: string
  /** null: from the beginning, or nothing more when it is done. */
  next_cursor: string | null
  is_done: number
  /** JSON: cloud/integrations/pull-state.ts. */
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
