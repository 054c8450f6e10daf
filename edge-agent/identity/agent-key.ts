import { keyId, newKey, createSigner, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'
import { formerKeys, type Identity, type KeyPair } from './identity.ts'

/**
 *   pending (stored) ──▶ accepted by the cloud ──▶ adopted (stored with the former) ──▶ used: the cloud rejects the former
 *
 * The agent's own key and its renewal. Each step is durable before the next, so the agent resumes after a crash. The cloud accepts the
 * former key until the agent has used the new one. A cloud restored from a backup may accept only a former key.
 */
export interface AgentKey {
  signer(): Signer
  /** A new key that the cloud has perhaps not received yet. */
  readonly pending: { readonly x: string; readonly signer: Signer } | undefined
  /** Makes a new key, unless one is pending. */
  begin(random: Randomness): void
  /** Makes the pending key the current one, after the cloud has accepted it. */
  adopt(): void
  /** Deletes the pending key, after the cloud has refused it. */
  discard(): void
  /** The keys before this one, the newest first. */
  readonly former: readonly Signer[]
  /** Makes a former key current and the present one pending again, because a restored cloud accepts only that former key. */
  returnTo(former: Signer): void
}

/** Opens the key of this identity; `keep` must store the identity durably. */
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
