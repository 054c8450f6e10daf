import { newKey } from '../../../../policy/documents/keys.ts'
import { checkDigit } from '../../../../policy/gs1/gtin.ts'
import { newId } from '../../../../policy/ids.ts'
import { genesisHash, rowHash, type JournalRow } from '../../../../policy/journal.ts'
import { enrolmentProof, messagesOfAgent, publicKeyOf, type AgentIdentity } from '../scene/agent-login.ts'
import { API, type Json } from '../scene/served-cloud.ts'
import { RECEIVER } from '../scene/merchant-systems.ts'
import { day, inTime, known, storeOf, type Scene } from '../scene/scene.ts'

/**
 * Creates things that other requests name by id. Each maker returns the id, or undefined if the party may not create
 * the thing.
 */

/** Roles that the owner of a party gives to other users. */
export const INVITED_ROLES = ['admin', 'manager', 'associate', 'viewer']

type Maker = (scene: Scene) => Promise<string | undefined>

const textOf = (answer: Json | undefined, field: string): string | undefined => {
  const value = answer?.[field]
  return typeof value === 'string' ? value : undefined
}

/** An EAN-13 without a product. */
export function newEan(scene: Scene): string {
  const digits = `42${String(scene.count()).padStart(10, '0')}`
  return `${digits}${checkDigit(digits)}`
}

/** An EPC without an item. */
export function newEpc(scene: Scene): string {
  return `E280${String(scene.count()).padStart(20, '0')}`
}

const firstStore = ({ party }: Scene): string => party.storeIds[0] ?? ''

async function startCheckout(scene: Scene): Promise<string | undefined> {
  const sessionId = await MAKERS['ses']?.(scene)
  const productId = await knownOrNew(scene, 'prd', 0.1)
  return textOf(await scene.call('startCheckout', { sessionId, items: [{ productId, quantity: 1 }] }), 'transactionId')
}

/** Starts a purchase and leaves it unpaid. */
export async function openPurchase(scene: Scene): Promise<string | undefined> {
  const id = await startCheckout(scene)
  if (id !== undefined) scene.findings.add(scene.party.name, 'open purchase', id)
  return id
}

/**
 * Returns the id of a purchase that is paid. A test account pays through the page of the sandbox, a live account
 * through the provider.
 */
export async function paidPurchase(scene: Scene): Promise<string | undefined> {
  const known = scene.findings.of(scene.party.name, 'paid purchase')
  if (known.length > 0 && scene.chance.happens(0.6)) return scene.chance.one(known)
  const { books, send } = scene.served
  const before = new Set(books.sessions.keys())
  const id = await startCheckout(scene)
  if (id === undefined) return undefined
  if (scene.party.mode === 'test') await scene.call('completeTestCheckout', { transactionId: id })
  else
    for (const sessionId of [...books.sessions.keys()].filter((each) => !before.has(each))) {
      const notice = books.end(sessionId, 'paid')
      const path = `${API}/notify/custom/${firstStore(scene)}`
      if (notice) await send({ method: 'POST', path, headers: notice.headers, body: notice.body })
    }
  scene.findings.add(scene.party.name, 'paid purchase', id)
  return id
}

/** Enrols an agent in the party's first store. The agent has not logged in yet. */
export async function enrolAgent(scene: Scene, code?: string): Promise<AgentIdentity | undefined> {
  const { request, own } = await enrolment(scene, code)
  const agentId = textOf(await scene.call('enrolEdgeAgent', request, 'anyone'), 'agentId')
  return agentId === undefined ? undefined : { ...own, agentId }
}

/** The request that enrols a new agent, and the agent's identity. */
export async function enrolment(
  scene: Scene,
  existingCode?: string,
): Promise<{ request: Json; own: Omit<AgentIdentity, 'agentId'> }> {
  const { platform } = scene.served
  const storeId = firstStore(scene)
  const code = existingCode ?? textOf(await scene.call('createEnrolmentCode', { storeId }), 'code') ?? 'X'
  const { x, secret } = newKey(platform.random)
  const own = { storeId, ledgerId: newId('led', platform), x, secret: secret.toString('base64url') }
  const proof = enrolmentProof(own, code, platform.clock.wall())
  return { request: { code, publicJwk: publicKeyOf(own), proof }, own }
}

/** The second request of a login: the signed challenge. */
export async function loginOf(scene: Scene, agent: AgentIdentity): Promise<Json> {
  const challenge = textOf(await scene.call('agentLogin', { agentId: agent.agentId }, 'anyone'), 'challenge') ?? ''
  return {
    agentId: agent.agentId,
    assertion: messagesOfAgent(agent).assertion(challenge, scene.served.platform.clock.wall()),
  }
}

/** A signed batch with one new journal row. */
export function firstBatch(scene: Scene, agent: AgentIdentity): string {
  const nowMs = scene.served.platform.clock.wall()
  const before = genesisHash(agent.ledgerId, 1)
  const event = {
    type: 'protection.device.offline' as const,
    eventId: newId('evt', scene.served.platform),
    occurredAt: inTime(scene, 0),
    storeId: agent.storeId,
  }
  const body = { atMs: nowMs + scene.count(), event }
  const row: JournalRow = { seq: 1, hash: rowHash(before, 1, JSON.stringify(body)), body }
  return messagesOfAgent(agent).batch(before, [row], nowMs)
}

/** A request that invites a new user. */
export function invitation(scene: Scene): Json {
  return {
    email: `guest-${scene.count()}@${scene.party.canary.toLowerCase()}.example`,
    name: `Herr ${scene.text()}`,
    role: scene.chance.one(INVITED_ROLES),
  }
}

/** Registers a company. Returns the registration id and the secret that the company needs to get its keys. */
export async function registration(scene: Scene): Promise<Json> {
  const body = {
    companyName: `Firma ${scene.text()}`,
    address: { street: 'Kai 2', city: 'Kiel', zip: '24103', country: 'DE' },
  }
  return (await scene.call('submitStoreRegistrationRequest', body, 'anyone')) ?? {}
}

export const MAKERS: Readonly<Record<string, Maker>> = {
  st: (scene) => Promise.resolve(storeOf(scene)),
  prd: async (scene) =>
    textOf(
      await scene.call('insertProduct', {
        storeId: firstStore(scene),
        ean: newEan(scene),
        name: `Ware ${scene.text()}`,
        price: 4.99,
        vat: 19,
        tagged: false,
      }),
      'productId',
    ),
  off: async (scene) =>
    textOf(
      await scene.call('createOffer', {
        storeIds: [firstStore(scene)],
        title: `Angebot ${scene.text()}`,
        validFrom: inTime(scene, -3_600_000),
        validTo: inTime(scene, 864_000_000),
        products: [{ name: `Schirm ${scene.text()}`, price: 9.99 }],
      }),
      'offerId',
    ),
  ord: async (scene) =>
    textOf(
      await scene.call('submitClickCollectOrder', {
        storeId: firstStore(scene),
        userId: shopper(scene),
        items: [{ productId: await knownOrNew(scene, 'prd', 0.1), quantity: 1 }],
      }),
      'orderId',
    ),
  loy: async (scene) =>
    textOf(
      await scene.call('createLoyaltyProgram', {
        storeId: firstStore(scene),
        name: `Karte ${scene.text()}`,
        type: 'stamps',
        rewards: [{ name: `Kaffee ${scene.text()}`, cost: 2 }],
      }),
      'programId',
    ),
  psu: async (scene) =>
    textOf(
      await scene.call('registerPushSubscription', {
        kind: 'https',
        endpoint: `${RECEIVER}/${scene.count()}`,
        userId: `${shopper(scene)}-${scene.count()}`,
      }),
      'subscriptionId',
    ),
  ses: async (scene) =>
    textOf(await scene.call('checkIn', { storeId: firstStore(scene), userId: shopper(scene) }), 'sessionId'),
  pur: paidPurchase,
  dev: async (scene) =>
    textOf(
      await scene.call('registerDevice', {
        storeId: firstStore(scene),
        deviceType: scene.chance.one(['pos_deactivator', 'self_checkout_detacher', 'exit_gate']),
        name: `Gerät ${scene.text()}`,
      }),
      'deviceId',
    ),
  op: async (scene) =>
    textOf(
      await scene.call('registerOperator', {
        storeId: firstStore(scene),
        name: `Frau ${scene.text()} ${scene.count()}`,
      }),
      'operatorId',
    ),
  exc: async (scene) => {
    await scene.call('reportProtectionEvents', { events: [alarm(scene, 'protection.exception.raised')] })
    const answer = await scene.call('fetchExceptions', { storeId: firstStore(scene), state: 'open' })
    return textOf((answer?.['exceptions'] as Json[] | undefined)?.at(-1), 'exceptionId')
  },
  agt: async (scene) => (await enrolAgent(scene))?.agentId,
  whk: async (scene) =>
    textOf(await scene.call('registerWebhook', { url: `${RECEIVER}/${scene.count()}`, events: ['*'] }), 'webhookId'),
  whd: async (scene) => {
    const webhookId = await knownOrNew(scene, 'whk', 0.2)
    await scene.call('sendTestWebhook', { webhookId })
    await scene.served.pass(2_000)
    const answer = await scene.call('fetchWebhookDeliveries', { webhookId })
    return textOf((answer?.['deliveries'] as Json[] | undefined)?.at(-1), 'deliveryId')
  },
  zon: async (scene) =>
    textOf(await scene.call('createZone', { storeId: firstStore(scene), name: `Zone ${scene.text()}` }), 'zoneId'),
  hlp: async (scene) =>
    textOf(
      await scene.call('requestAssistance', { zoneId: await knownOrNew(scene, 'zon', 0.2), message: scene.text() }),
      'requestId',
    ),
  key: async (scene) => textOf(await scene.call('createApiKey', { kind: 'publishable', name: scene.text() }), 'keyId'),
  usr: async (scene) => textOf(await scene.call('inviteUser', invitation(scene), 'user'), 'userId'),
  reg: async (scene) => textOf(await registration(scene), 'registrationId'),
}

/** Returns a known id of the party with this prefix, or sometimes creates a new one. */
export async function knownOrNew(scene: Scene, prefix: string, isNew = 0.3): Promise<string | undefined> {
  const make = MAKERS[prefix]
  const shown = prefix === 'st' ? undefined : known(scene, prefix)
  if (shown !== undefined && (make === undefined || !scene.chance.happens(isNew))) return shown
  return (await make?.(scene)) ?? shown
}

/** User id of a customer; it contains the canary of the party. */
export function shopper(scene: Scene): string {
  return `shopper-${scene.party.canary}-${scene.chance.between(1, 5)}`
}

/** An event of a gate, as a merchant's device reports it. */
export function alarm(scene: Scene, type = 'protection.exception.raised'): Json {
  const eventId = `evt-${scene.party.canary}-${scene.count()}`
  scene.findings.add(scene.party.name, 'alarm', eventId)
  return { type, eventId, occurredAt: inTime(scene, -1_000), storeId: firstStore(scene), reason: 'gate_alarm' }
}

/** The nonce and device of a grant for a paid purchase. Undefined if device, purchase or grant is missing. */
export async function grant(scene: Scene): Promise<{ nonce: string; deviceId: string } | undefined> {
  const answer = await scene.call('fetchDevices', { storeId: firstStore(scene) })
  const devices = (answer?.['devices'] ?? []) as Json[]
  const station = devices.find((device) => device['deviceType'] === 'pos_deactivator')
  const deviceId = textOf(station, 'deviceId')
  const purchaseId = await paidPurchase({ ...scene })
  if (deviceId === undefined || purchaseId === undefined) return undefined
  const granted = await scene.call('verifySecurityTagDeactivation', { purchaseId, deviceId })
  const nonce = textOf(granted, 'replayProtectedNonce')
  return nonce === undefined ? undefined : { nonce, deviceId }
}

/** A registered item of the party. */
export async function item(scene: Scene): Promise<string> {
  const shown = known(scene, 'own epc')
  if (shown !== undefined && scene.chance.happens(0.6)) return shown
  const epc = newEpc(scene)
  const productId = await knownOrNew(scene, 'prd', 0.1)
  const body = { storeId: firstStore(scene), items: [{ epc, productId, protectionTechnology: 'uhf_rfid' }] }
  if (await scene.call('registerProtectedItems', body)) scene.findings.add(scene.party.name, 'own epc', epc)
  return epc
}

/** The last complete day. */
export const yesterday = (scene: Scene): string => day(scene, -1)
