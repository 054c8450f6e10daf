import { keyId, newKey, createSigner, type Signer } from '../../policy/documents/keys.ts'
import type { Randomness } from '../../policy/platform.ts'
import { formerKeys, type Identity, type KeyPair } from './identity.ts'

/**
 * The agent's own key and its renewal. The agent stores a pending key, offers it to the cloud, and adopts it when the
 * cloud has accepted it. Each step is durable before the next, so the agent resumes after a crash.
 *
 * The cloud accepts the former key until the agent has used the new one. A cloud that was restored from a backup may
 * accept only a former key.
 */
export interface AgentKey {
  signer(): Signer
  /** A new key that the cloud may not have accepted yet. */
  readonly pending: { readonly x: string; readonly signer: Signer } | undefined
  /** Makes a new key, unless a key is pending. */
  begin(random: Randomness): void
  /** Makes the pending key the current one, after the cloud has accepted it. */
  adopt(): void
  /** Deletes the pending key, after the cloud has refused it. */
  discard(): void
  /** Former keys, newest first. */
  readonly former: readonly Signer[]
  /**
   * Makes a former key current, because a restored cloud accepts only that key. The current key becomes pending again.
   */
  returnTo(former: Signer): void
}

/** Opens the key of this identity. `keep` must store the changed identity durably. */
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
      const accepted = former[at]
      if (accepted) change({ ...identity, ...accepted, next: { x, secret }, former: former.slice(at + 1) })
    },
  }
}

function signerOf({ x, secret }: KeyPair): Signer {
  return createSigner(x, Buffer.from(secret, 'base64url'))
}
