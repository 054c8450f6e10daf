import { ensureAccount } from '../../../../cloud/sales/registrations/registrations.ts'
import { createApiKey, type KeyKind } from '../../../../cloud/platform/accounts/api-keys.ts'
import { keysOf, loadKeyFiles, type KeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { keyStorageInMemory } from '../../simulation/virtual/key-storage.ts'
import { removeListing } from '../../../../cloud/shop/catalogue/write-products.ts'
import type { Mode, Package } from '../../../../cloud/platform/foundation/caller.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import type { Row } from '../../../../cloud/platform/persistence/schema.ts'
import { newKey } from '../../../../policy/documents/keys.ts'
import { newId } from '../../../../policy/ids.ts'
import { chanceOf } from '../../simulation/virtual/chance.ts'
import { enrolmentProof, publicKeyOf, type AgentIdentity } from './agent-login.ts'
import { newOwner } from './party-users.ts'
import { API, serveCloud, type Json, type ServedCloud } from './served-cloud.ts'

/** One side (test or live) of one account. No other party may see its data. */
export interface Party {
  /** Such as `alpha.live`. */
  readonly name: string
  readonly accountId: string
  readonly mode: Mode
  /** A word that all texts of this party contain, and that no text of another party contains. */
  readonly canary: string
  readonly keys: Readonly<Record<'secret' | 'publishable' | 'bound', string>>
  /** The key `bound` is limited to the first store. */
  readonly storeIds: readonly string[]
  readonly agent: AgentIdentity | undefined
  /** Only test parties have one, because an owner without a second factor may use sandbox data only. */
  readonly owner: Row<'console_user'> | undefined
}

/** Accounts that exist at the start of every run. */
export interface TestAccounts {
  readonly keyFiles: KeyFiles
  readonly parties: readonly Party[]
  readonly adminKey: string
  /** Every party may see the id of this key, because all audit logs contain it. */
  readonly adminKeyId: string
  /** A live store of a fourth account, which administrators change. */
  readonly spare: { readonly storeId: string; readonly accountId: string; readonly registrationKey: string }
  readonly startMs: number
}

const SEED = 20_261_120
const START_MS = Date.UTC(2026, 10, 20, 9)
const ACCOUNTS: readonly { name: string; package: Package; isEnrolled: boolean }[] = [
  { name: 'alpha', package: 'PRIME', isEnrolled: true },
  { name: 'beta', package: 'GROW', isEnrolled: true },
  { name: 'gamma', package: 'DISCOVER', isEnrolled: false },
]
const KEPT_PRODUCTS = 8
const ADDRESS = { street: 'Kai 1', city: 'Hamburg', postalCode: '20457', countryCode: 'DE' }

/** The canary: a word that marks all texts of one party. */
export function canaryOf(index: number): string {
  return `Kanari${index}q`
}

/** Finds every canary in a text. */
export function canariesIn(text: string): string[] {
  return text.match(/Kanari\dq/gi) ?? []
}

/** Creates three accounts with stores, keys and agents in an empty database. Closes the database. */
export async function createTestAccounts(database: Database): Promise<TestAccounts> {
  const keyFiles = await loadKeyFiles(keysOf(''), keyStorageInMemory(), chanceOf(SEED).fork('keys'))
  const served = await serveCloud(database, keyFiles, { seed: SEED, startMs: START_MS })
  const { key: adminKey, keyId: adminKeyId } = await newAccountKey(served, 'operator', 'PRIME', 'live', 'admin')
  const parties: Party[] = []
  for (const account of ACCOUNTS)
    for (const mode of ['test', 'live'] as const)
      parties.push(await found(served, adminKey, account, mode, parties.length))
  const spare = await foundSpare(served, adminKey)
  const startMs = served.platform.clock.wall()
  const errors = served.takeErrors()
  if (errors.length > 0) throw new Error(errors.join('\n'))
  await served.stop()
  return { keyFiles, parties, adminKey, adminKeyId, spare, startMs }
}

async function found(
  served: ServedCloud,
  adminKey: string,
  account: (typeof ACCOUNTS)[number],
  mode: Mode,
  index: number,
): Promise<Party> {
  const { key: secret, accountId } = await newAccountKey(served, account.name, account.package, mode, 'secret')
  const canary = canaryOf(index)
  const storeIds =
    mode === 'test'
      ? await sandboxStores(served, secret, accountId)
      : // The second store has a lower package than the account.
        [
          await liveStore(served, { secret, adminKey, canary, package: account.package }),
          await liveStore(served, { secret, adminKey, canary, package: 'DISCOVER' }),
        ]
  const [storeId = ''] = storeIds
  for (const each of storeIds)
    await ok(served, secret, 'updateStore', { storeId: each, tradingName: `Laden ${canary}`, securityTagMode: 'rfid' })
  if (mode === 'live' && account.package !== 'DISCOVER') {
    await ok(served, secret, 'updateStore', { storeId, hasScanAndGo: true, hasOffers: true })
    await ok(served, secret, 'configurePSP', { storeId, provider: 'custom', config: served.books.config() })
    for (const deviceType of ['pos_deactivator', 'self_checkout_detacher', 'exit_gate'])
      await ok(served, secret, 'registerDevice', { storeId, deviceType, name: `Gerät ${canary}` })
  }
  const bound = await ok(served, secret, 'createApiKey', { kind: 'secret', name: canary, storeIds: [storeId] })
  const open = await ok(served, secret, 'createApiKey', { kind: 'publishable', name: canary })
  const keys = { secret, bound: String(bound['key']), publishable: String(open['key']) }
  const agent = account.isEnrolled ? await enrol(served, secret, storeId) : undefined
  const owner = mode === 'test' ? await newOwner(served, { accountId, canary }) : undefined
  return { name: `${account.name}.${mode}`, accountId, mode, canary, keys, storeIds, agent, owner }
}

/** Removes most products of the sandbox, because the requests need only a few. */
async function sandboxStores(
  { database, ...served }: ServedCloud,
  secret: string,
  accountId: string,
): Promise<string[]> {
  await database.write(async (db) => {
    const tenant = `${accountId}.test`
    const kept = db
      .selectFrom('product')
      .select('product_id')
      .where('tenant', '=', tenant)
      .where('category', 'like', 'Bekleidung%')
      .orderBy('ean')
      .limit(KEPT_PRODUCTS)
    const ids = (await kept.execute()).map((row) => row.product_id)
    const others = db.selectFrom('product').where('tenant', '=', tenant)
    const rows = await others.selectAll().where('product_id', 'not in', ids).execute()
    const gone = rows.map((row) => row.product_id)
    await db.deleteFrom('protected_item').where('product_id', 'in', gone).execute()
    const stores = await db.selectFrom('store').select('store_id').where('tenant', '=', tenant).execute()
    for (const { store_id } of stores) for (const product of rows) await removeListing(db, store_id, product.product_id)
    await db.deleteFrom('product').where('product_id', 'in', gone).execute()
  })
  const { stores } = await ok({ database, ...served }, secret, 'fetchStores', {})
  const found = stores as { storeId: string; securityTagMode: string }[]
  return found.toSorted((a, b) => (a.securityTagMode < b.securityTagMode ? -1 : 1)).map(({ storeId }) => storeId)
}

async function liveStore(
  served: ServedCloud,
  by: { secret: string; adminKey: string; canary: string; package: Package },
): Promise<string> {
  const { registrationId } = await ok(served, by.secret, 'submitStoreRegistration', {
    companyName: `Firma ${by.canary}`,
    tradingName: `Laden ${by.canary}`,
    address: ADDRESS,
    coordinates: { lat: 53.5446, lng: 9.9889 },
  })
  const { storeId } = await ok(served, by.adminKey, 'approveStoreRegistration', {
    registrationId,
    package: by.package,
  })
  return String(storeId)
}

async function foundSpare(served: ServedCloud, adminKey: string): Promise<TestAccounts['spare']> {
  const { key, accountId } = await newAccountKey(served, 'spare', 'GROW', 'live', 'secret')
  const storeId = await liveStore(served, { secret: key, adminKey, canary: 'spare', package: 'GROW' })
  return { storeId, accountId, registrationKey: key }
}

async function newAccountKey(
  { database, platform }: ServedCloud,
  account: string,
  wanted: Package,
  mode: Mode,
  kind: KeyKind,
): Promise<{ key: string; keyId: string; accountId: string }> {
  return database.write(async (db) => {
    const { accountId } = await ensureAccount(db, account, wanted, platform)
    return { accountId, ...(await createApiKey(db, { accountId, kind, mode, name: account }, platform)) }
  })
}

/** Enrols a new agent in a store. */
export async function enrol(served: ServedCloud, secret: string, storeId: string): Promise<AgentIdentity> {
  const { code } = await ok(served, secret, 'createEnrolmentCode', { storeId })
  const { x, secret: seed } = newKey(served.platform.random)
  const own = { storeId, ledgerId: newId('led', served.platform), x, secret: seed.toString('base64url') }
  const proof = enrolmentProof(own, String(code), served.platform.clock.wall())
  const { agentId } = await ok(served, undefined, 'enrolEdgeAgent', { code, publicJwk: publicKeyOf(own), proof })
  return { ...own, agentId: String(agentId) }
}

async function ok(served: ServedCloud, key: string | undefined, operation: string, body: Json): Promise<Json> {
  const { status, text, json } = await served.send({
    method: 'POST',
    path: `${API}/${operation}`,
    headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  })
  if (status !== 200 || !json)
    throw new Error(`${operation} answered ${status}: ${text}\n${served.takeErrors().join('\n')}`)
  return json
}
