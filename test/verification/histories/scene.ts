import { assert } from '../../../policy/assert.ts'
import type { Client } from './client.ts'
import type { Cluster } from './cluster.ts'
import type { Fields } from './history.ts'

/** What the clients share: two stores of one account, and the devices and the program of the first store. */
export interface Scene {
  readonly storeId: string
  readonly otherStoreId: string
  readonly devices: readonly string[]
  readonly programId: string
  /** A store in live mode. Only live offers are stored. */
  readonly liveStoreId: string
  readonly liveKey: string
}

const DEVICES = 6

/** Creates stores, devices and a loyalty program, and registers webhooks for this URL. */
export async function openScene(client: Client, { live, admin }: Cluster['keys'], webhookUrl: string): Promise<Scene> {
  const { storeId } = await must(client, 'insertStore', newStore('Hafenkante'))
  const devices: string[] = []
  for (let n = 0; n < DEVICES; n++)
    devices.push(String((await must(client, 'registerDevice', { storeId, deviceType: 'pos_deactivator' }))['deviceId']))
  const program = { storeId, name: 'Punkte', type: 'points', pointsPerEuro: 1, earningMethods: ['scan_and_go'] }
  const { programId } = await must(client, 'createLoyaltyProgram', program)
  await must(client, 'registerWebhook', { url: webhookUrl, events: ['checkout.completed'] })
  const other = await must(client, 'insertStore', newStore('Speicher'))
  const { registrationId } = await must(client, 'insertStore', newStore('Markt'), live)
  const approved = await must(client, 'approveStoreRegistration', { registrationId, package: 'go' }, admin)
  return {
    storeId: String(storeId),
    otherStoreId: String(other['storeId']),
    devices,
    programId: String(programId),
    liveStoreId: String(approved['storeId']),
    liveKey: live,
  }
}

function newStore(name: string): Fields {
  return {
    name: { legal: name, trading: name },
    address: { street: 'Schlachte 8', city: 'Bremen', postalCode: '28195', countryCode: 'DE' },
    phone: '+49421555010300',
    hasScanAndGo: true,
    hasOffers: true,
    securityTagMode: 'station',
    protectionTechnology: 'rf',
  }
}

/** Calls an operation and repeats it until it is done. Throws if the cloud refuses it. */
export async function must(client: Client, operation: string, body: Fields, bearer?: string): Promise<Fields> {
  const as = bearer === undefined ? {} : { bearer }
  const { outcome, answer, reason } = await client.callOnce(operation, body, 1, as)
  assert(outcome === 'done', `${operation} ${JSON.stringify(body)} is ${outcome}: ${reason}`)
  return answer
}

/** Requests a new live offer that starts after `startsInMs`. */
export function newOffer({ liveStoreId }: Scene, round: number, startsInMs: number): Fields {
  const nowMs = Date.now()
  return {
    storeIds: [liveStoreId],
    title: `Angebot ${round}`,
    validFrom: new Date(nowMs + startsInMs).toISOString(),
    validTo: new Date(nowMs + 86_400_000).toISOString(),
    products: [{ name: 'Kaffee', price: 4, oldPrice: 5 }],
  }
}

/** The n-th EAN of a run, with its check digit. */
export function eanNumber(n: number): string {
  const digits = String(400_000_000_000 + n)
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
