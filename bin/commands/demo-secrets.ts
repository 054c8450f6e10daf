import { join } from 'node:path'
import { z } from 'zod'
import { randomFraction, type Platform, type SecretFiles } from '../../policy/platform.ts'
import { ensureAccount } from '../../cloud/sales/registrations/registrations.ts'
import { createApiKey, hashOfKey } from '../../cloud/platform/accounts/api-keys.ts'
import { acceptAs, invite } from '../../cloud/platform/users/invitations.ts'
import { hashPassword, verifyPassword } from '../../cloud/platform/users/passwords.ts'
import { findUserOfAccount } from '../../cloud/platform/users/user-queries.ts'
import type { Shopper } from '../../simulators/services/shopper.ts'
import type { RunningCloud } from './cloud.ts'

const ACCOUNT = 'demo'
const KEY_NAME = 'npm start'
/** Name of the demonstration's operator, as typed at "Sign in". */
export const OPERATOR_NAME = 'Demo'

/** Secrets that the demonstration prints at every start. The cloud stores only their hashes. */
const DemoSecrets = z.strictObject({
  key: z.string().optional(),
  /** Password of the owner who signs in to the console. */
  password: z.string().optional(),
  /** PIN of the operator, and the operator's store. */
  operator: z.strictObject({ storeId: z.string(), pin: z.string() }).optional(),
  /** True if the sandbox contains the week before its first start. */
  hasWeek: z.boolean().optional(),
  /** Address of the cloud that the pictures of products name. */
  picturesAt: z.string().optional(),
})
type DemoSecrets = z.infer<typeof DemoSecrets>

/** The file `demo.json` (0600) in the demonstration's data folder. */
export interface DemoFile {
  read(): DemoSecrets
  write(change: Partial<DemoSecrets>): void
}

/** Opens the file. A missing or damaged file is treated as empty. */
export function demoFile(data: string, files: SecretFiles): DemoFile {
  const path = join(data, 'demo.json')
  const read = (): DemoSecrets => {
    try {
      return DemoSecrets.safeParse(JSON.parse(files.read(path) ?? '{}')).data ?? {}
    } catch {
      return {}
    }
  }
  return { read, write: (change) => files.write(path, JSON.stringify({ ...read(), ...change })) }
}

/** Dates the key of the demonstration now: it was made at the start of the week that fills the sandbox. */
export async function dateDemoKey({ database, cloud }: RunningCloud): Promise<void> {
  const nowMs = cloud.services.platform.clock.wall()
  await database.write((db) =>
    db.updateTable('api_key').set({ created_ms: nowMs }).where('name', '=', KEY_NAME).execute(),
  )
}

/** Returns the sandbox key of the file. If the account does not have this key, creates a new key. */
export async function demoKey({ database, cloud }: RunningCloud, file: DemoFile): Promise<string> {
  const { platform } = cloud.services
  const known = file.read().key
  const key = await database.write(async (db) => {
    const { accountId } = await ensureAccount(db, ACCOUNT, 'PRIME', platform)
    const ofAccount = db
      .selectFrom('api_key')
      .select('hash')
      .where('account_id', '=', accountId)
      .where('name', '=', KEY_NAME)
      .where('revoked_ms', 'is', null)
    const rows = await ofAccount.execute()
    if (known !== undefined && rows.some(({ hash }) => hash === hashOfKey(known))) return known
    // The file contains no valid key, so all former keys are revoked.
    await db
      .updateTable('api_key')
      .set({ revoked_ms: platform.clock.wall() })
      .where('account_id', '=', accountId)
      .where('name', '=', KEY_NAME)
      .where('revoked_ms', 'is', null)
      .execute()
    return (await createApiKey(db, { accountId, kind: 'secret', mode: 'test', name: KEY_NAME }, platform)).key
  })
  if (key !== known) file.write({ key })
  return key
}

/** E-mail address of the owner who signs in to the console. */
export const OWNER_EMAIL = 'owner@demo.example'
const OWNER_NAME = 'Demo'
/** Random bytes of the password: 24 characters. */
const PASSWORD_BYTES = 18

/** Returns the password of the owner of the account. If the account has no owner with it, makes one. */
export async function demoOwner({ database, cloud }: RunningCloud, file: DemoFile): Promise<string> {
  const { platform } = cloud.services
  const known = file.read().password
  const { accountId } = await database.write((db) => ensureAccount(db, ACCOUNT, 'PRIME', platform))
  const user = await findUserOfAccount(database.reads, accountId, OWNER_EMAIL)
  if (known !== undefined && (await verifyPassword('', known, user?.password_hash))) return known
  const password = Buffer.from(platform.random.bytes(PASSWORD_BYTES)).toString('base64url')
  const passwordHash = await hashPassword('', password, platform.random)
  await database.write(async (db) => {
    const rights = { role: 'owner' as const, storeIds: null, sandboxOnly: false, mayReplace: true }
    const person = { accountId, email: OWNER_EMAIL, name: OWNER_NAME, invitedBy: KEY_NAME }
    const { userId } = await invite(db, { ...person, ...rights }, platform)
    await acceptAs(db, userId, { name: OWNER_NAME, passwordHash }, platform.clock.wall())
  })
  file.write({ password })
  return password
}

interface Named {
  name: string
  operatorId: string
}

/** Returns the PIN of the operator for "Sign in" on the store's pages. Registers the operator at the first start. */
export async function demoOperator(
  api: Shopper,
  storeId: string,
  file: DemoFile,
  { random }: Pick<Platform, 'random'>,
): Promise<string> {
  const known = file.read().operator
  const { operators } = (await api.call('fetchOperators', { storeId })) as { operators: Named[] }
  const former = operators.filter(({ name }) => name === OPERATOR_NAME)
  if (known?.storeId === storeId && former.length > 0) return known.pin
  for (const { operatorId } of former) await api.call('removeOperator', { storeId, operatorId })
  const pin = newPin(random)
  await api.call('registerOperator', { storeId, name: OPERATOR_NAME, pin })
  file.write({ operator: { storeId, pin } })
  return pin
}

/** Six random digits without a leading zero. */
function newPin(random: Platform['random']): string {
  return String(100_000 + Math.floor(randomFraction(random) * 900_000))
}
