import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { secretFiles } from '../../host/secret-files.ts'
import { result, type ProtectionDevice } from '../../device-drivers/kit/device.ts'
import { readConfig } from '../../edge-agent/config.ts'
import { enrol, storeFirstDocuments } from '../../edge-agent/enrolment/enrol.ts'
import type { Fetch } from '../../edge-agent/link/wire/http-client.ts'
import { startAgent, type Agent } from '../../edge-agent/runtime.ts'
import { readIdentity, writeIdentity } from '../../edge-agent/identity/identity.ts'
import type { KnownSale } from '../../edge-agent/decisions/sale-codes.ts'
import type { AuthorizeAnswer } from '../../edge-agent/decisions/request.ts'
import { createSigner } from '../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import type { ItemIdentifiers } from '../../policy/item-identifiers.ts'
import type { ProtectionAction } from '../../policy/vocabulary.ts'
import { temporaryFolder } from './databases.ts'
import { cutLine, memoryBroker } from './memory-broker.ts'
import { areSettled, type TestStore } from './store.ts'

/** Another agent in a test store, with a separate network that can be cut and simulated devices. */
export interface SecondAgent {
  agent: Agent
  network(isUp: boolean): void
  authorize(request: {
    deviceId: string
    action: ProtectionAction
    receipt?: string
    token?: string
    sale?: KnownSale
    identifiers?: ItemIdentifiers
  }): Promise<AuthorizeAnswer>
  stop(): Promise<void>
}

/**
 * Adds an agent. `copyOf`: the agent runs on a copy of that folder, without a broker, like a cloned memory card. `lan`:
 * connects it to other agents even when its cloud connection is cut.
 */
export async function addAgent(
  store: TestStore,
  deviceIds: readonly string[],
  options: { copyOf?: string; broker?: boolean; lan?: Fetch; address?: string } = {},
): Promise<SecondAgent> {
  const { world, shop } = store
  const { cloud } = shop.cloud
  const folder = temporaryFolder('second')
  let isUp = true
  const fetch: Fetch = async (url, init) => {
    if (options.lan && !url.startsWith('https://shop.example')) return options.lan(url, init)
    if (!isUp) throw new Error('the network is cut')
    const answer = await cloud.app.request(url.replace('https://shop.example', ''), {
      method: init.method,
      headers: init.headers,
      ...(init.body !== undefined && { body: init.body }),
    })
    const text = await answer.text()
    if (!isUp) throw new Error('the network is cut')
    return { status: answer.status, text: () => Promise.resolve(text) }
  }
  if (options.copyOf === undefined) {
    const { code } = await store.drive(shop.ok('createEnrolmentCode', { storeId: shop.storeId }))
    const enrolled = await store.drive(enrol({ cloud: shop.cloud.baseUrl, code, platform: world, fetch }))
    if (!enrolled.ok) throw new Error(enrolled.why)
    storeFirstDocuments(join(folder, 'ledger.db'), enrolled.identity, enrolled.documents, world)
    writeIdentity(folder, enrolled.identity, secretFiles)
  } else cpSync(options.copyOf, folder, { recursive: true })
  const identity = readIdentity(folder, secretFiles)
  if (!identity) throw new Error('not enrolled')
  const devices = deviceIds.map((deviceId, i) => ({
    deviceId,
    driver: 'modbus',
    link: { tcp: `10.1.0.${i}:502` },
    output: 0,
  }))
  const checked = readConfig(JSON.stringify({ devices }))
  if (!checked.ok) throw new Error(checked.faults.join())
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const agent = startAgent({
    platform: world,
    dataDir: folder,
    identity,
    keepIdentity: (changed) => writeIdentity(folder, changed, secretFiles),
    secretFiles,
    config: checked.config,
    fetch,
    ...(options.address !== undefined && { address: options.address }),
    openLine: options.broker ? memoryBroker(cloud, identity, () => isUp) : () => Promise.reject(new Error('no broker')),
    openLink: () => Promise.reject(new Error('no link')),
    openDevice: obedientDevice,
    log,
    onFatal: () => undefined,
  })
  await store.until('the second agent', () => agent.link.isOnline && areSettled(agent))
  return {
    agent,
    network(up) {
      isUp = up
      if (!up && options.broker) cutLine(cloud, identity.agentId)
    },
    authorize: (request) => store.drive(agent.lanes.request({ identifiers: {}, ...request })),
    async stop() {
      await store.drive(agent.stop())
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const announced = new WeakMap<Agent, number>()

/** Delivers what tills reported to one agent, and it has not announced yet, to another. */
export async function announceTills(store: TestStore, from: Agent, to: Agent): Promise<void> {
  const { last, ...said } = from.ledger.till.changesAfter(announced.get(from) ?? 0)
  if (last === undefined) return
  announced.set(from, last)
  const { identity } = from
  const iat = Math.floor(store.world.clock.wall() / 1_000)
  const claims = { aud: store.shop.storeId, iat, exp: iat + 60, iss: identity.agentId, ...said }
  const signer = createSigner(identity.x, Buffer.from(identity.secret, 'base64url'))
  const text = signDocument(DOCUMENT_KINDS.tillNotice, claims, signer)
  expect(await store.drive(to.tillNotices.receive(text))).toEqual({ kind: 'taken' })
  await announceTills(store, from, to)
}

function obedientDevice(): ProtectionDevice {
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  return {
    connect: () => Promise.resolve(),
    identify: () => Promise.resolve({ description: 'a device' }),
    untilLost: () => new Promise(() => undefined),
    execute: () => Promise.resolve(result('confirmed', true, 'acknowledged')),
    events: (async function* () {
      await ended
      yield* []
    })(),
    close: () => Promise.resolve(end()),
  }
}
