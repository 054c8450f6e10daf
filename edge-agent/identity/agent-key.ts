import { keyId, newKey, createSigner, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'
import { formerKeys, type Identity, type KeyPair } from './identity.ts'

/**
 *   begun (written down) ──▶ taken by the cloud ──▶ adopted (written down, the former kept) ──▶ used: the cloud refuses the former
 *
 * The agent's own key and how it changes. Each arrow is durable before the next, so that a crash anywhere is healed by going on:
 * the cloud honours the former until the new one was used. A cloud put back to a backup of before honours nothing but the former.
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
  /** The keys before this one, the newest first. */
  readonly former: readonly Signer[]
  /** The cloud honours none but this former one, as after a restore: that signs again, and the present one is offered once more. */
  returnTo(former: Signer): void
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
      const { next, ...rest } = identity
      if (next) change({ ...rest, ...next, former: formerKeys(identity) })
    },
    discard() {
      const { next: _, ...rest } = identity
      change(rest)
    },
    get former() {
      return (identity.former ?? []).map(signerOf)
    },
    returnTo({ kid }) {
      const { x, secret, former = [] } = identity
      const at = former.findIndex((key) => keyId(key.x) === kid)
      const honoured = former[at]
      if (honoured) change({ ...identity, ...honoured, next: { x, secret }, former: former.slice(at + 1) })
    },
  }
}

function signerOf({ x, secret }: KeyPair): Signer {
  return createSigner(x, Buffer.from(secret, 'base64url'))
}
