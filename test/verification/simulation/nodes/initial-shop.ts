import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keysOf, loadKeyFiles, type KeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { keyStorageInMemory } from '../virtual/key-storage.ts'
import { openConnection } from '../../../../cloud/platform/persistence/sqlite.ts'
import { readConfig, type AgentConfig } from '../../../../edge-agent/config.ts'
import { enrol, storeFirstDocuments } from '../../../../edge-agent/enrolment/enrol.ts'
import type { Identity } from '../../../../edge-agent/identity/identity.ts'
import { actuators } from './actuators.ts'
import { agentNode, ITEMS, LEDGER } from './agent-node.ts'
import { chanceOf } from '../virtual/chance.ts'
import { CLOUD_DATABASE, CLOUD_ORIGIN, cloudNode, type CloudNode } from './cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { callAs, createAccounts, type RunUntilDone } from './create-accounts.ts'
import { request } from '../virtual/http.ts'
import { newLan } from '../virtual/lan.ts'
import { addTillEquipment, type TillEquipment } from './till-equipment.ts'
import { scheduler } from '../virtual/scheduler.ts'
import { newTrace } from '../virtual/trace.ts'
import { newWire } from '../virtual/wire.ts'
import { STATE_CHANGE_TRIGGERS } from './state-changes.ts'

/**
 * The initial state of the shop: two accounts, a store, and enrolled agents with devices. The production code creates
 * this state once. Each seed starts with a copy of the files.
 */
export interface Shop {
  /** Folders with the initial files. */
  readonly templates: { readonly cloud: string; readonly agents: readonly string[] }
  /** True time at which a run starts. */
  readonly startMs: number
  readonly keyFiles: KeyFiles
  readonly key: string
  /** API key of the second tenant. */
  readonly foreignKey: string
  readonly foreignStoreId: string
  readonly storeId: string
  readonly agents: readonly { readonly identity: Identity; readonly config: AgentConfig }[]
  readonly devices: {
    readonly station: string
    readonly gate: string
    readonly detacher: string
    readonly alone: string
  }
  readonly products: readonly { readonly ean: string; readonly price: number }[]
  /** True if shoppers pay through a payment provider. In the sandbox no money moves. */
  readonly isLive: boolean
  /** Operator who may check baskets before payment. */
  readonly operatorId: string
  /** Code of the operator's badge, as a scanner reads it. */
  readonly badge: string
  /** Undefined in a shop without tills. */
  readonly tills: TillEquipment | undefined
  remove(): void
}

const SHOP_SEED = 20_261_120
const SHOP_CREATED_MS = Date.UTC(2026, 10, 20, 9)
const WEBHOOK_URL = 'https://receiver.sim/untag'

type Json = Record<string, unknown>

/** Returns the configuration of each agent for these devices. */
export type Layout = (devices: Shop['devices']) => readonly AgentConfig[]

const TWO_AGENTS: Layout = ({ gate, station, detacher }) => [
  configOf([
    { deviceId: gate, isGate: true },
    { deviceId: station, isGate: false },
  ]),
  configOf([{ deviceId: detacher, isGate: false }]),
]

/** Layout with at least two agents. Further agents have no device, but may be the receipt home. */
export function layoutOf(agents: number): Layout {
  return (devices) => [...TWO_AGENTS(devices), ...Array.from({ length: agents - 2 }, () => configOf([]))]
}

/** Configuration of an agent with these devices on relay boards, and with optional other devices. */
export function configOf(
  deviceIds: readonly { deviceId: string; isGate: boolean }[],
  others: readonly Json[] = [],
): AgentConfig {
  const boards = deviceIds.map(({ deviceId, isGate }, n) => ({
    deviceId,
    driver: 'modbus',
    link: { tcp: `10.0.0.${n + 1}:502` },
    output: 0,
    confirmInput: 0,
    ...(isGate && { siren: { output: 1, seconds: 1 }, amber: { output: 2 }, green: { output: 3 } }),
  }))
  const checked = readConfig(JSON.stringify({ devices: [...boards, ...others] }))
  if (!checked.ok) throw new Error(checked.faults.join('\n'))
  return checked.config
}

/** Creates the shop in a new folder below `parent`. Takes a second or two. */
export async function makeShop(
  parent: string,
  {
    layout = TWO_AGENTS,
    isLive = false,
    hasTills = false,
  }: { layout?: Layout; isLive?: boolean; hasTills?: boolean } = {},
): Promise<Shop> {
  const folder = mkdtempSync(join(parent, 'untag-world-'))
  const core = coreOf(join(folder, 'genesis'))
  const keyFiles = await keysInMemory(core)
  const cloud = cloudNode({
    core,
    keyFiles,
    outgoing: { send: () => Promise.reject(new Error('no requests before the start')) },
  })
  const until = runUntilDone(core)

  await until(cloud.start())
  const account = await createAccounts(cloud, until, isLive)
  const { key, storeId } = account
  const call: Call = (operation, body = {}) => until(callAs(cloud, key, operation, body))
  const { devices, ...equipment } = await addEquipment(call, storeId)
  const { length } = layout(devices)
  const tills = hasTills
    ? await addTillEquipment(call, { storeId, agents: length, gate: devices.gate, products: equipment.products })
    : undefined

  const agents: { identity: Identity; config: AgentConfig }[] = []
  const templates: string[] = []
  for (const [n, config] of layout(devices).entries()) {
    const name = `agent-${n + 1}`
    const { code } = (await call('createEnrolmentCode', { storeId, name })) as { code: string }
    const identity = await enrolAt(cloud, core, until, { name, code, folder })
    await runOnce({ core, cloud, until, name, identity, config, folder })
    agents.push({ identity, config })
    templates.push(join(folder, name))
  }
  await until(cloud.stop())
  const cloudFolder = join(folder, 'cloud')
  keepDatabase(cloud, cloudFolder)
  rmSync(core.folder, { recursive: true, force: true })
  return {
    ...account,
    ...equipment,
    templates: { cloud: cloudFolder, agents: templates },
    startMs: core.scheduler.nowMs,
    keyFiles,
    isLive,
    agents,
    devices,
    tills,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Core without faults. Any violation throws. */
function coreOf(folder: string): Core {
  const chance = chanceOf(SHOP_SEED)
  const clock = scheduler(SHOP_CREATED_MS, chance.fork('scheduler'))
  return {
    scheduler: clock,
    chance,
    trace: newTrace(() => clock.nowMs, SHOP_CREATED_MS, 50),
    folder,
    violate: (invariant, detail) => {
      throw new Error(`${invariant} before anything went wrong: ${detail}`)
    },
    crashRate: 0,
  }
}

function keysInMemory(core: Core): Promise<KeyFiles> {
  return loadKeyFiles(keysOf(''), keyStorageInMemory(), core.chance.fork('keys'))
}

/** Runs the simulation until the work is done, for at most a minute. */
function runUntilDone({ scheduler: clock }: Core): RunUntilDone {
  return async (work) => {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    await clock.run(clock.nowMs + 60_000, () => isDone)
    return work
  }
}

type Call = (operation: string, body?: Json) => Promise<unknown>

/**
 * Registers what the sandbox lacks: a device without an agent, an operator and a webhook. Returns these together with
 * the existing devices and products.
 */
async function addEquipment(
  call: Call,
  storeId: string,
): Promise<Pick<Shop, 'devices' | 'operatorId' | 'badge' | 'products'>> {
  const { devices } = (await call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const deviceOf = (type: string) => devices.find((d) => d.deviceType === type)?.deviceId ?? ''
  const { deviceId: alone } = (await call('registerDevice', {
    storeId,
    deviceType: 'pos_deactivator',
    name: 'Ohne Agent',
    workflowType: 'staff_assisted',
  })) as { deviceId: string }
  const { operatorId, badge } = (await call('registerOperator', { storeId, name: 'Frau Petersen' })) as {
    operatorId: string
    badge: string
  }
  const { products } = (await call('fetchProducts', { storeId, limit: 500, category: 'bekleidung' })) as {
    products: { ean: string; price: number }[]
  }
  await call('registerWebhook', {
    url: WEBHOOK_URL,
    events: ['checkout.completed', 'securityTag.deactivated'],
    storeId,
  })
  return {
    devices: {
      station: deviceOf('pos_deactivator'),
      gate: deviceOf('exit_gate'),
      detacher: deviceOf('self_checkout_detacher'),
      alone,
    },
    operatorId,
    badge,
    products: products.filter((p) => p.price > 20 && p.price < 150).sort((a, b) => (a.ean < b.ean ? -1 : 1)),
  }
}

interface NewAgent {
  core: Core
  cloud: CloudNode
  until: RunUntilDone
  name: string
  identity: Identity
  config: AgentConfig
  folder: string
}

/** Runs a new agent until it has its replica, so that simulated runs need not fetch the replica. */
async function runOnce({ core, cloud, until, name, identity, config, folder }: NewAgent): Promise<void> {
  const node = agentNode({
    core,
    name,
    identity,
    config: () => config,
    template: join(folder, name),
    cloud,
    wire: newWire(name, core),
    lan: newLan(core),
    actuators: actuators({ ...core, onRelease: () => undefined }),
  })
  node.start()
  await core.scheduler.run(core.scheduler.nowMs + 20_000)
  await until(node.stop())
  for (const file of [LEDGER, ITEMS]) copyFileSync(join(node.disk.folder, file), join(folder, name, file))
}

/** Copies the database of the stopped cloud and adds the triggers for the oracles. */
function keepDatabase(cloud: CloudNode, folder: string): void {
  mkdirSync(folder)
  copyFileSync(join(cloud.disk.folder, CLOUD_DATABASE), join(folder, CLOUD_DATABASE))
  const db = openConnection(join(folder, CLOUD_DATABASE))
  db.exec(STATE_CHANGE_TRIGGERS)
  db.exec('VACUUM')
  db.close()
}

async function enrolAt(
  cloud: CloudNode,
  core: Core,
  until: RunUntilDone,
  { name, code, folder }: { name: string; code: string; folder: string },
): Promise<Identity> {
  const { platform } = cloud.process ?? {}
  if (!platform) throw new Error('the cloud is not up')
  const wire = newWire(`${name} enrols`, core)
  const enrolled = await until(
    enrol({
      cloud: `${CLOUD_ORIGIN}/api/v1`,
      code,
      platform: { ...platform, random: core.chance.fork(name) },
      async fetch(url, init) {
        const answer = await request({ url, ...init }, { wire, server: cloud, scheduler: core.scheduler })
        return { status: answer.status, text: () => Promise.resolve(answer.text) }
      },
    }),
  )
  if (!enrolled.ok) throw new Error(enrolled.why)
  mkdirSync(join(folder, name))
  // Takes the first clock reading from the cloud's platform, because the agent's machine boots later.
  storeFirstDocuments(join(folder, name, LEDGER), enrolled.identity, enrolled.documents, platform)
  return enrolled.identity
}
