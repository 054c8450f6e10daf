import type { KeyUse } from './keys.ts'

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400

/** A kind of signed document. */
export interface DocumentKind {
  readonly typ: string
  readonly use: KeyUse
  /**
   * Maximum `exp − iat`, s. The verifier checks the lifetime, so a faulty issuer cannot create long-lived documents.
   */
  readonly maxLife: number
  /** Maximum length of the compact form, characters; checked before parsing. */
  readonly maxLength: number
}

const TOKEN = 1_024
const BUNDLE = 256 * 1_024

/** All document kinds (ADR signed-documents). */
export const DOCUMENT_KINDS = {
  authorization: { typ: 'pauth+jwt', use: 'token', maxLife: 10 * MINUTE, maxLength: TOKEN },
  policy: { typ: 'policy+jwt', use: 'policy', maxLife: 80 * HOUR, maxLength: BUNDLE },
  keys: { typ: 'keys+jwt', use: 'root', maxLife: 400 * DAY, maxLength: BUNDLE },
  fresh: { typ: 'fresh+jwt', use: 'freshness', maxLife: 80 * HOUR, maxLength: 4_096 },
  deny: { typ: 'deny+jwt', use: 'freshness', maxLife: 80 * HOUR, maxLength: BUNDLE },
  items: { typ: 'items+jwt', use: 'freshness', maxLife: 80 * HOUR, maxLength: BUNDLE },
  time: { typ: 'time+jwt', use: 'freshness', maxLife: MINUTE, maxLength: TOKEN },
  broker: { typ: 'broker+jwt', use: 'freshness', maxLife: HOUR, maxLength: 32 * 1_024 },
  ack: { typ: 'ack+jwt', use: 'freshness', maxLife: HOUR, maxLength: 4_096 },
  command: { typ: 'cmd+jwt', use: 'freshness', maxLife: MINUTE, maxLength: 4_096 },
  events: { typ: 'pevt+jwt', use: 'agent', maxLife: 10 * MINUTE, maxLength: BUNDLE },
  assertion: { typ: 'assert+jwt', use: 'agent', maxLife: MINUTE, maxLength: TOKEN },
  enrolment: { typ: 'enrol+jwt', use: 'agent', maxLife: 5 * MINUTE, maxLength: TOKEN },
  rotation: { typ: 'rotate+jwt', use: 'agent', maxLife: 5 * MINUTE, maxLength: TOKEN },
  homeRequest: { typ: 'ask+jwt', use: 'agent', maxLife: MINUTE, maxLength: 8_192 },
  homeGrant: { typ: 'redeem+jwt', use: 'agent', maxLife: MINUTE, maxLength: 8_192 },
  homeTimeRequest: { typ: 'asktime+jwt', use: 'agent', maxLife: MINUTE, maxLength: TOKEN },
  homeCodeRequest: { typ: 'askcode+jwt', use: 'agent', maxLife: MINUTE, maxLength: TOKEN },
  release: { typ: 'release+jwt', use: 'agent', maxLife: MINUTE, maxLength: 4_096 },
  tillNotice: { typ: 'till+jwt', use: 'agent', maxLife: MINUTE, maxLength: BUNDLE },
  homeTimeResponse: { typ: 'hometime+jwt', use: 'agent', maxLife: MINUTE, maxLength: TOKEN },
} as const satisfies Record<string, DocumentKind>

export type DocumentKindName = keyof typeof DOCUMENT_KINDS
