/** Signing keys and signed documents. Units: ../schema.ts. */

export interface SigningKeyRow {
  kid: string
  iss: string
  key_use: string
  x: string
  sealed: string
  state: string
  created_ms: number
  /** Time of the last change of `state`. */
  changed_ms: number
}

export interface SealedSecretRow {
  name: string
  sealed: string
}

export interface SignedDocumentRow {
  kind: string
  aud: string
  epoch: number
  ver: number
  hash: string
  jws: string
  iat: number
}
