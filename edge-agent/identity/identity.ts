import { join } from 'node:path'
import { exportJWK, importPKCS8 } from 'jose'
import { z } from 'zod'
import { PREDECESSORS_LIMIT } from '../../policy/documents/agent-messages.ts'
import { CA_LIMIT } from '../../policy/documents/broker-document.ts'
import type { SecretFiles, Randomness } from '../../policy/platform.ts'
import { createHash } from 'node:crypto'
import { keyId, newKey, createSigner, type Signer } from '../../policy/documents/keys.ts'

/** Kinds of secrets of the local API: `pair` for a program, `browser` for a cookie, `link` for a one-time link. */
export type SecretKind = 'pair' | 'browser' | 'link'

/** A new random secret, such as `untag_pair_…`. */
export function newSecret(kind: SecretKind, random: Randomness): string {
  return `untag_${kind}_${Buffer.from(random.bytes(24)).toString('base64url')}`
}

/**
 * Returns the SHA-256 hash in base64url, which the agent stores in place of a secret. One round of hashing suffices,
 * because secrets are random.
 */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/**
 * Returns the address that pairs a browser. The code is in the fragment, which browsers do not send to the server.
 * Therefore link previews cannot use up the code, and request logs do not contain the code.
 */
export function pairingUrl(agentUrl: string, code: string): string {
  return `${agentUrl}/pair#${code}`
}

/**
 * The identity file of this agent, `agent.json`, with its ids, its key and the root key. `untag edge enrol` writes this
 * file, and each renewal of the key writes the file again (`AgentKey`).
 */

/**
 * Maximum former keys. The agent renews its key every 30 days, so three former keys suffice for a backup of the cloud
 * that is about three months old.
 */
const FORMER_KEYS = 3

const KeyPair = { x: z.string().length(43), secret: z.string() }
/** A key of the agent. `x`: public key in base64url; `secret`: private key, PKCS #8 in base64url. */
export interface KeyPair {
  x: string
  secret: string
}

/** Content of the identity file. Only the owner of the file can read it. */
export const Identity = z.strictObject({
  agentId: z.string(),
  storeId: z.string(),
  /** Account and mode. The agent accepts only key sets for this tenant. */
  tenant: z.string(),
  ledgerId: z.string(),
  generation: z.int().min(1),
  /** Base URL of the cloud's API. */
  cloud: z.string(),
  mqttUrl: z.string(),
  /** Certificates of a private CA of the cloud and its broker, PEM. Absent: only the public CAs. */
  ca: z.string().max(CA_LIMIT).optional(),
  /** Public root key. The root key verifies the key sets, and the keys in them verify all other documents. */
  rootX: z.string().length(43),
  /** Current key of the agent. */
  ...KeyPair,
  /** Pending key, which the cloud may not have accepted yet. */
  next: z.strictObject(KeyPair).optional(),
  /** Former keys, newest first, for a cloud that was restored from a backup. */
  former: z.array(z.strictObject(KeyPair)).max(FORMER_KEYS).optional(),
  /** Agents whose ledger this agent continues, newest first, for a cloud that was restored from a backup. */
  predecessors: z
    .array(z.strictObject({ agentId: z.string(), ...KeyPair }))
    .max(PREDECESSORS_LIMIT)
    .optional(),
})
export type Identity = z.infer<typeof Identity>

function fileIn(dataDir: string): string {
  return join(dataDir, 'agent.json')
}

/** Reads the identity in a data directory. Returns undefined before enrolment; throws if the file is damaged. */
export function readIdentity(dataDir: string, files: SecretFiles): Identity | undefined {
  const identity = findIdentity(dataDir, files)
  if (identity === 'damaged') throw damaged(dataDir)
  return identity
}

function damaged(dataDir: string): Error {
  return new Error(`${fileIn(dataDir)} is damaged: re-enrol this agent with untag edge enrol --replace`)
}

/**
 * Throws if a private key is invalid or does not match its public key. The cloud would reject each signature of such a
 * key.
 */
export async function assertKeyPairs(dataDir: string, identity: Identity): Promise<void> {
  const { x, secret, next, former = [] } = identity
  for (const pair of [{ x, secret }, ...(next ? [next] : []), ...former])
    if (!(await isKeyPair(pair))) throw damaged(dataDir)
}

async function isKeyPair({ x, secret }: KeyPair): Promise<boolean> {
  const base64 = Buffer.from(secret, 'base64url').toString('base64')
  const pem = `-----BEGIN PRIVATE KEY-----\n${base64}\n-----END PRIVATE KEY-----`
  try {
    return (await exportJWK(await importPKCS8(pem, 'EdDSA', { extractable: true }))).x === x
  } catch {
    return false
  }
}

/** Like `readIdentity`, but returns `damaged` instead of throwing. */
export function findIdentity(dataDir: string, files: SecretFiles): Identity | 'damaged' | undefined {
  const text = files.read(fileIn(dataDir))
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  return Identity.safeParse(value).data ?? 'damaged'
}

/** Returns the former keys to store when a new key replaces the current one. */
function formerKeys({ x, secret, former = [] }: Identity): KeyPair[] {
  return [{ x, secret }, ...former].slice(0, FORMER_KEYS)
}

/** Writes the identity file, which only the user of this process can read. */
export function writeIdentity(dataDir: string, identity: Identity, files: SecretFiles): void {
  files.write(fileIn(dataDir), JSON.stringify(identity, null, 2))
}

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
