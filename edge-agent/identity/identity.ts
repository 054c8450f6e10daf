import { join } from 'node:path'
import { exportJWK, importPKCS8 } from 'jose'
import { z } from 'zod'
import type { SecretFiles } from '../../policy/platform.ts'

/**
 *   untag edge enrol ─▶ agent.json: ids, own key, root ─▶ read at each start        key renewed (agent-key.ts) ─▶ written again
 *
 * The identity file of this agent.
 */

/** A key changes every 30 days, or when somebody asks for it: with so many a backup may be some months old. */
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
  /** Begun, and not known to the cloud for sure. */
  next: z.strictObject(KeyPair).optional(),
  /** Those before, the newest first: a cloud that was put back may know no later one. */
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
  return new Error(`${fileIn(dataDir)} is damaged: enrol this agent anew with untag edge enrol --replace`)
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

/** The same for whoever can do without it. */
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
