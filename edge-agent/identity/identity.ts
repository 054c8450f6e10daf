import { join } from 'node:path'
import { exportJWK, importPKCS8 } from 'jose'
import { z } from 'zod'
import type { SecretFiles } from '../../policy/platform.ts'

/**
 *   untag edge enrol ─▶ agent.json: ids, own key, root ─▶ read at each start        key renewed (agent-key.ts) ─▶ written again
 *
 * The identity file of this agent.
 */

/** How many former keys the agent stores. At one renewal every 30 days, a backup of the cloud may be about three months old. */
const FORMER_KEYS = 3

const KeyPair = { x: z.string().length(43), secret: z.string() }
/** A key of the agent: the public half, and the secret half as PKCS #8 in base64url. */
export interface KeyPair {
  x: string
  secret: string
}

/** Who the agent is: written once, at enrolment, readable by its owner alone. */
export const Identity = z.strictObject({
  agentId: z.string(),
  storeId: z.string(),
  /** Account and mode: the issuer of everything it may believe. */
  tenant: z.string(),
  ledgerId: z.string(),
  generation: z.int().min(1),
  /** The API root it enrolled at. */
  cloud: z.string(),
  mqttUrl: z.string(),
  /** The root's public key: everything is believed through it. */
  rootX: z.string().length(43),
  /** Its own key; the secret half is PKCS #8 in base64url. */
  ...KeyPair,
  /** Renewal pending: the cloud has perhaps not accepted this key. */
  next: z.strictObject(KeyPair).optional(),
  /** Former keys, newest first, for a cloud that was restored from a backup. */
  former: z.array(z.strictObject(KeyPair)).max(FORMER_KEYS).optional(),
})
export type Identity = z.infer<typeof Identity>

function fileIn(dataDir: string): string {
  return join(dataDir, 'agent.json')
}

/** The identity in a data directory; undefined before enrolment. Throws when the file is damaged. */
export function readIdentity(dataDir: string, files: SecretFiles): Identity | undefined {
  const identity = findIdentity(dataDir, files)
  if (identity === 'damaged') throw damaged(dataDir)
  return identity
}

function damaged(dataDir: string): Error {
  return new Error(`${fileIn(dataDir)} is damaged: re-enrol this agent with untag edge enrol --replace`)
}

/** Throws if a secret key is no key, or does not belong to its public key: the cloud would refuse everything that it signs. */
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

/** As `readIdentity`, but returns `damaged` or undefined in place of an error. */
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

/** The keys before the next one, when this identity's own has been followed by it. */
export function formerKeys({ x, secret, former = [] }: Identity): KeyPair[] {
  return [{ x, secret }, ...former].slice(0, FORMER_KEYS)
}

/** Keeps the identity in one file that only this user reads. */
export function writeIdentity(dataDir: string, identity: Identity, files: SecretFiles): void {
  files.write(fileIn(dataDir), JSON.stringify(identity, null, 2))
}
