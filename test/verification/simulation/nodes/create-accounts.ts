import { ensureAccount } from '../../../../cloud/sales/registrations/registrations.ts'
import { createApiKey } from '../../../../cloud/platform/accounts/api-keys.ts'
import { CLOUD_ORIGIN, type CloudNode } from './cloud-node.ts'

/** The account with the store of the run, and a second tenant. */
export interface ShopAccounts {
  readonly key: string
  readonly storeId: string
  /** Key of the second tenant. */
  readonly foreignKey: string
  readonly foreignStoreId: string
}

/** Runs the simulation until the promise settles. */
export type RunUntilDone = <T>(work: Promise<T>) => Promise<T>
type Json = Record<string, unknown>

const SOLD = 'bekleidung'
const COMPANIES = ['Hafenkante', 'Fremdhandel'] as const
const ADDRESS = { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' }
/** Share of baskets that staff check before payment in a live store. */
const SPOT_CHECKS = 0.15

/**
 * Creates two accounts with their sandboxes. For a live run, also creates live stores with the goods and devices of the
 * sandbox.
 */
export async function createAccounts(cloud: CloudNode, until: RunUntilDone, isLive: boolean): Promise<ShopAccounts> {
  const keys: string[] = []
  for (const name of COMPANIES) keys.push(await until(keyOf(cloud, name, 'secret', 'test')))
  await until(trimSandbox(cloud))
  const [key = '', foreignKey = ''] = keys
  const sandbox = {
    key,
    foreignKey,
    storeId: await storeOf(cloud, until, key),
    foreignStoreId: await storeOf(cloud, until, foreignKey),
  }
  return isLive ? goLive(cloud, until, sandbox) : sandbox
}

/** Calls the cloud without a network. Throws if the status is not 200. */
export async function callAs(cloud: CloudNode, key: string | undefined, operation: string, body: Json): Promise<Json> {
  const headers = { ...(key !== undefined && { authorization: `Bearer ${key}` }), 'content-type': 'application/json' }
  const answer = await cloud.answer({
    url: `${CLOUD_ORIGIN}/api/v1/${operation}`,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status}: ${answer.text}`)
  return JSON.parse(answer.text) as Json
}

async function keyOf(
  { running }: CloudNode,
  name: string,
  kind: 'secret' | 'admin',
  mode: 'test' | 'live',
): Promise<string> {
  if (!running) throw new Error('the cloud is not up')
  const { database, process } = running
  return database.write(async (db) => {
    const { accountId } = await ensureAccount(db, name, 'GROW', process.platform)
    return (await createApiKey(db, { accountId, kind, mode, name: 'world' }, process.platform)).key
  })
}

async function storeOf(cloud: CloudNode, until: RunUntilDone, key: string): Promise<string> {
  const { stores } = (await until(callAs(cloud, key, 'fetchStores', {}))) as {
    stores: { storeId: string; securityTagMode: string }[]
  }
  return stores.find((s) => s.securityTagMode === 'rfid')?.storeId ?? stores[0]?.storeId ?? ''
}

/** Removes products that runs do not use. Without this, each run would copy, check and sync these products. */
async function trimSandbox({ running }: CloudNode): Promise<void> {
  await running?.database.write(async (db) => {
    await db.deleteFrom('protected_item').execute()
    await db.deleteFrom('product_word').execute()
    const sold = db.selectFrom('product').select('product_id').where('category', 'like', `${SOLD}%`)
    await db.deleteFrom('store_product').where('product_id', 'not in', sold).execute()
    await db.deleteFrom('product').where('product_id', 'not in', sold).execute()
  })
}

/** Opens and equips two live stores, as merchant and cloud operator do. */
async function goLive(cloud: CloudNode, until: RunUntilDone, sandbox: ShopAccounts): Promise<ShopAccounts> {
  const admin = await until(keyOf(cloud, 'Operator', 'admin', 'live'))
  const call = (key: string | undefined, operation: string, body: Json) => until(callAs(cloud, key, operation, body))
  const live: { key: string; storeId: string }[] = []
  for (const companyName of COMPANIES) {
    const { registrationId, claimSecret } = await call(undefined, 'submitStoreRegistrationRequest', {
      companyName,
      tradingName: companyName,
      address: ADDRESS,
    })
    const { storeId } = await call(admin, 'approveStoreRegistration', { registrationId, package: 'GROW' })
    const { keys } = (await call(undefined, 'claimRegistration', { registrationId, claimSecret })) as {
      keys: { mode: string; key: string }[]
    }
    live.push({ key: keys.find(({ mode }) => mode === 'live')?.key ?? '', storeId: String(storeId) })
  }
  const [own, other] = live
  if (!own || !other) throw new Error('no stores were approved')
  const { key, storeId } = own
  await call(key, 'updateStore', { storeId, securityTagMode: 'rfid' })
  const { policy } = (await call(sandbox.key, 'fetchProtectionPolicy', { storeId: sandbox.storeId })) as {
    policy: Json
  }
  const { home: _home, homeEpoch: _epoch, ...rest } = policy
  await call(key, 'updateProtectionPolicy', { storeId, policy: { ...rest, spotCheckRate: SPOT_CHECKS } })
  const { products } = (await call(sandbox.key, 'fetchProducts', {
    storeId: sandbox.storeId,
    limit: 500,
    category: SOLD,
  })) as { products: Json[] }
  const goods = products.map(({ ean, name, price, vat, category, tagged }) => ({
    ean,
    name,
    price,
    vat,
    category,
    tagged,
  }))
  await call(key, 'bulkImportProducts', { storeId, products: goods })
  for (const [deviceType, name] of [
    ['pos_deactivator', 'Servicestation'],
    ['self_checkout_detacher', 'Selbstablöser 1'],
    ['exit_gate', 'Ausgang'],
  ] as const) {
    await call(key, 'registerDevice', { storeId, deviceType, name })
  }
  return { key, storeId, foreignKey: other.key, foreignStoreId: other.storeId }
}
