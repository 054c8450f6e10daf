import { isIP } from 'node:net'
import type { CloudConfig } from '../foundation/config.ts'
import { originOf } from '../foundation/config.ts'
import type { Database, Db } from '../persistence/database.ts'
import { readValue, writeValue } from '../persistence/installation.ts'

const NAME = 'console_url'

/** Address of the console. Passkeys need a name, so that the loopback address becomes localhost. */
export function consoleUrlOf(config: Pick<CloudConfig, 'baseUrl'>): string {
  return consoleUrlAt(originOf(config as CloudConfig))
}

/** Address of the console at an origin. */
export function consoleUrlAt(origin: string): string {
  const url = new URL(origin)
  if (url.hostname === '127.0.0.1' || url.hostname === '[::1]') url.hostname = 'localhost'
  return `${url.origin}/console`
}

/** The site to which passkeys are bound (WebAuthn: relying party). */
export interface PasskeySite {
  readonly id: string
  readonly origin: string
}

/** The site of the console's passkeys; undefined if browsers allow none there: IP addresses, and HTTP off localhost. */
export function passkeySiteOf(config: Pick<CloudConfig, 'baseUrl'>): PasskeySite | undefined {
  const { protocol, hostname, origin } = new URL(consoleUrlOf(config))
  if (isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0) return undefined
  return protocol === 'https:' || hostname === 'localhost' ? { id: hostname, origin } : undefined
}

/** Stores the address of the console, so that the command line can print links. */
export async function storeConsoleUrl(database: Database, config: CloudConfig): Promise<void> {
  const value = consoleUrlOf(config)
  if ((await readConsoleUrl(database.reads)) === value) return
  await database.write((db) => writeValue(db, NAME, value))
}

/** Address of the console; undefined if no cloud has used this database. */
export function readConsoleUrl(db: Db): Promise<string | undefined> {
  return readValue(db, NAME)
}

/** Address of the page that accepts an invitation. */
export function invitationUrl(consoleUrl: string, token: string): string {
  return `${consoleUrl}/invitations/${token}`
}
