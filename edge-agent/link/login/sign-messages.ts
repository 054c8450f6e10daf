import {
  CLOUD_AUDIENCE,
  type AssertionClaims,
  type EventBatchClaims,
} from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { createSigner, type Signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { JournalRow } from '../../../policy/journal.ts'
import type { Identity } from '../../identity/identity.ts'
import { messageTimes } from '../../trust/time/cloud-contact.ts'

/** Signs the messages of the agent to the cloud. */
export interface MessageSigner {
  /**
   * Signs a challenge of the cloud, for a login or as password for the broker. `by`: the signing key; by default the
   * current key.
   */
  assertion(challenge: string, nowMs: number, by?: Signer): string
  batch(after: string, rows: readonly JournalRow[], nowMs: number): string
}

/** State of the ledger for the handshake. */
export interface LedgerState {
  readonly generation: number
  /** Last row of the journal. */
  readonly head?: { seq: number; hash: string }
  /** True if the agent found that its ledger was restored. */
  readonly restored?: boolean
  /** Set while the agent sends rows again, after a restore of the cloud or a false acknowledgement. */
  readonly resync?: { cloudGeneration: number; oldest: number } | undefined
}

/** Signs each message with the key that is current when the message is signed. */
export function messageSigner(
  identity: Identity,
  view: LedgerState = { generation: identity.generation },
  keyNow?: () => Signer,
): MessageSigner {
  const own = keyNow ?? (() => createSigner(identity.x, Buffer.from(identity.secret, 'base64url')))
  const ledger = () => ({ ledger: identity.ledgerId, generation: view.generation })
  return {
    assertion(challenge, nowMs, by = own()) {
      const claims: AssertionClaims = {
        aud: CLOUD_AUDIENCE,
        ...messageTimes(nowMs, 60),
        iss: identity.agentId,
        challenge,
        ...ledger(),
        ...(view.head && { seq: view.head.seq, head: view.head.hash }),
        ...(view.restored && { restored: true as const }),
      }
      return signDocument(DOCUMENT_KINDS.assertion, claims, by)
    },
    batch(after, rows, nowMs) {
      const claims: EventBatchClaims = {
        aud: CLOUD_AUDIENCE,
        ...messageTimes(nowMs, 300),
        iss: identity.agentId,
        ...ledger(),
        seqFrom: rows[0]?.seq ?? 0,
        seqTo: rows.at(-1)?.seq ?? 0,
        after,
        events: [...rows],
        ...(view.resync && { resync: view.resync }),
      }
      return signDocument(DOCUMENT_KINDS.events, claims, own())
    },
  }
}
