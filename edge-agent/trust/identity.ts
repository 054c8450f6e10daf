import { join } from 'node:path'
import { z } from 'zod'
import type { SecretFiles } from '../../policy/platform.ts'

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
  /** The former, until there is another: a cloud that was put back may know no later one. */
  previous: z.strictObject(KeyPair).optional(),
})
export type Identity = z.infer<typeof Identity>

function fileIn(dataDir: string): string {
  return join(dataDir, 'agent.json')
}

/** The identity in a data directory; undefined before enrolment. Throws when the file is damaged. */
export function readIdentity(dataDir: string, files: SecretFiles): Identity | undefined {
  const file = fileIn(dataDir)
  const text = files.read(file)
  if (text === undefined) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const identity = Identity.safeParse(value)
  if (!identity.success) throw new Error(`${file} is damaged: enrol this agent anew`)
  return identity.data
}

/** Keeps the identity in one file that only this user reads. */
export function writeIdentity(dataDir: string, identity: Identity, files: SecretFiles): void {
  files.write(fileIn(dataDir), JSON.stringify(identity, null, 2))
}
