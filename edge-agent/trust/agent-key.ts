import { newKey, signer, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'
import type { Identity, KeyPair } from './identity.ts'

/**
 *   begun (written down) ──▶ taken by the cloud ──▶ adopted (written down, the former kept) ──▶ used: the former is forgotten
 *
 * The agent's own key and how it changes. Each arrow is durable before the next, so that a crash anywhere is healed by going on:
 * the cloud honours the former until the new one was used.
 */
export interface AgentKey {
  signer(): Signer
  /** A new key that the cloud may not know yet. */
  readonly pending: { readonly x: string; readonly signer: Signer } | undefined
  /** Makes a new key, unless one is pending. */
  begin(random: Randomness): void
  /** The cloud will have it: from now on it signs. */
  adopt(): void
  /** The cloud will not: it is forgotten. */
  discard(): void
  /** The cloud has seen the new one at work. */
  confirm(): void
  /** The cloud knows nothing of the new one, as after a restore: back to the former, and the new one is offered again. False without a former. */
  fallBack(): boolean
}

/** The key of this identity; `keep` writes the identity down, durably. */
export function openAgentKey(first: Identity, keep: (identity: Identity) => void): AgentKey {
  let identity = first
  let signing = signerOf(identity)
  const change = (next: Identity) => {
    keep(next)
    identity = next
    signing = signerOf(identity)
  }
  return {
    signer: () => signing,
    get pending() {
      const { next } = identity
      return next && { x: next.x, signer: signerOf(next) }
    },
    begin(random) {
      if (identity.next) return
      const { x, secret } = newKey(random)
      change({ ...identity, next: { x, secret: secret.toString('base64url') } })
    },
    adopt() {
      const { next, previous: _, ...rest } = identity
      if (next) change({ ...rest, ...next, previous: { x: identity.x, secret: identity.secret } })
    },
    discard() {
      const { next: _, ...rest } = identity
      change(rest)
    },
    confirm() {
      if (!identity.previous) return
      const { previous: _, ...rest } = identity
      change(rest)
    },
    fallBack() {
      const { previous, ...rest } = identity
      if (!previous) return false
      change({ ...rest, ...previous, next: { x: identity.x, secret: identity.secret } })
      return true
    },
  }
}

function signerOf({ x, secret }: KeyPair): Signer {
  return signer(x, Buffer.from(secret, 'base64url'))
}
