import { createPublicKey } from 'node:crypto'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { RunningCloud } from '../../bin/commands/cloud.ts'
import type { Tenant } from '../../cloud/platform/foundation/caller.ts'
import { enrol } from '../../edge-agent/enrolment/enrol.ts'
import type { Fetch } from '../../edge-agent/link/wire/http-client.ts'
import { messageSigner, type MessageSigner } from '../../edge-agent/link/login/sign-messages.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { BATCH_LIMIT } from '../../policy/documents/agent-messages.ts'
import { publicJwk } from '../../policy/documents/keys.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { genesisHash, rowHash, type JournalBody, type JournalRow } from '../../policy/journal.ts'
import type { Platform } from '../../policy/platform.ts'
import { benchAccount, openBenchCloud } from './bench-cloud.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from './figure.ts'
import { CORES, startProgram, type Program } from './child.ts'
import type { Drained, DrainQuestion } from './drain-agent.ts'
import { median, takeTurns, wallTime, type Samples } from './measure.ts'
import { BareIngest } from './peers/bare-ingest.ts'
import { sellItems } from './sold-items.ts'

const NAMES = { bare: 'bare ingest transaction', ours: 'reportProtectionEvents', drain: 'an agent drains its journal' }
/** Minimum ratio of the measured rate to the bare rate. */
const SHARE = 0.5
/** Rows of a release: the claim with its evidence, and the outcome. */
const ROWS_OF_RELEASE = 2

const SIZES = {
  full: { batchesOfSlice: 60, rounds: 9 },
  quick: { batchesOfSlice: 5, rounds: 5 },
  smoke: { batchesOfSlice: 1, rounds: 1 },
} satisfies Sizes

/**
 * Measures how fast the cloud receives the journal of an agent that was offline for three days. The figure compares
 * three ways to store a journal. The first is a hand-written transaction on a copy of the database. The second calls
 * `reportProtectionEvents` with the same batches. In the third, an agent in another process sends its own journal over
 * MQTT and stores the acknowledgements.
 */
export const drain: Figure = { sizes: SIZES, run }

type Call = (operation: string, body: object, bearer?: string) => Promise<Record<string, unknown>>

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { batchesOfSlice, rounds } = SIZES[mode]
  const rowsOfSlice = batchesOfSlice * BATCH_LIMIT
  const releasesOfAll = ((rounds + 1) * rowsOfSlice) / ROWS_OF_RELEASE
  const { running, platform } = await openBenchCloud(join(folder, 'cloud'))
  const call = callsOf(running)
  const agent = await startProgram('drain-agent.js', CORES.load, [join(folder, 'agent')])
  try {
    note(`creating ${2 * releasesOfAll * ROWS_OF_RELEASE} journal rows`)
    // Each agent has a separate store, because an agent also receives the releases of the other agents in its store.
    const first = await openShop(running, call, platform, releasesOfAll, 'one')
    const second = await openShop(running, call, platform, releasesOfAll, 'two')
    const { identity, messages } = await enrolFirst(running, first, platform)
    const batches = journal(identity, messages, first.ctis, first.deviceId, platform)
    const login = await logIn(call, identity.agentId, messages, platform)
    const bare = await openBareIngest(folder, identity, first.tenant)
    await agent.request({ ask: 'enrol', cloud: running.baseUrl, code: second.code } satisfies DrainQuestion)
    const drainer = new Drainer(agent, second, rowsOfSlice)
    const contenders = [
      { name: NAMES.bare, slice: slices(batches, batchesOfSlice, (batch) => bare.take(batch)) },
      { name: NAMES.ours, slice: slices(batches, batchesOfSlice, (batch) => ingest(call, login, batch)) },
      { name: NAMES.drain, slice: () => drainer.slice() },
    ]
    const samples = await takeTurns(contenders, rounds, random)
    bare.close()
    return resultOf(samples, drainer.greetings)
  } finally {
    await agent.stop()
    await running.stop()
  }
}

function resultOf(samples: Samples, greetings: readonly number[]): Result {
  return {
    title: `An agent’s journal drained into the cloud, ${BATCH_LIMIT} rows a batch (SQLite, synchronous=FULL)`,
    counts:
      'wall time per row; for the agent, in a separate process, from when it is online to when the last acknowledgement is on its disk',
    rows: rowsOf(samples, NAMES.bare, { [NAMES.drain]: { 'greeting ms': median(greetings) } }),
    targets: [
      ratesAtLeast(samples, NAMES.drain, NAMES.bare, SHARE),
      ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE),
    ],
    notes: [
      'the bare transaction writes the same rows into a copy of the same database, one batch per commit, and does not validate the rows (test/bench/peers/bare-ingest.ts)',
      'greeting: time once before the drain, for start, login, signed time, documents and the connection to the broker',
    ],
  }
}

function callsOf({ cloud, baseUrl }: RunningCloud): Call {
  return async (operation, body, bearer) => {
    const headers = {
      'content-type': 'application/json',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await cloud.app.request(`${baseUrl}/${operation}`, init)
    if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
}

/** Enrols the agent for which this process sends the batches. */
async function enrolFirst(
  { cloud, baseUrl }: RunningCloud,
  { code }: Shop,
  platform: Platform,
): Promise<{ identity: Identity; messages: MessageSigner }> {
  const fetch: Fetch = async (url, { method, headers, body }) => {
    const answer = await cloud.app.request(url, { method, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    return { status: answer.status, text: () => Promise.resolve(text) }
  }
  const enrolled = await enrol({ cloud: baseUrl, code, platform, fetch })
  if (!enrolled.ok) throw new Error(enrolled.why)
  return { identity: enrolled.identity, messages: messageSigner(enrolled.identity) }
}

/** Opens the bare transaction on a copy of the cloud's database. */
async function openBareIngest(folder: string, { x }: Identity, tenant: Tenant): Promise<BareIngest> {
  const copy = join(folder, 'copy.db')
  const original = new Sqlite(join(folder, 'cloud', 'cloud.db'), { readonly: true })
  await original.backup(copy)
  original.close()
  return new BareIngest(copy, createPublicKey({ key: { ...publicJwk(x) }, format: 'jwk' }), tenant)
}

/** Returns a function. Each call passes the next `count` batches to `take` and returns the wall time per row, µs. */
function slices(batches: readonly string[], count: number, take: (batch: string) => Promise<void> | void) {
  let next = 0
  return () =>
    wallTime(count * BATCH_LIMIT, async () => {
      for (const batch of batches.slice(next, (next += count))) await take(batch)
    })
}

async function ingest(call: Call, login: string, batch: string): Promise<void> {
  const { accepted } = await call('reportProtectionEvents', { batch }, login)
  if (accepted !== BATCH_LIMIT) throw new Error(`${String(accepted)} of ${BATCH_LIMIT} rows were taken`)
}

/** Lets an agent release receipts offline, then send its journal. Each slice repeats both steps. */
class Drainer {
  readonly #agent: Program
  readonly #shop: Shop
  readonly #rowsOfSlice: number
  #released = 0
  /** Duration of start and login before each drain, ms. */
  readonly greetings: number[] = []

  constructor(agent: Program, shop: Shop, rowsOfSlice: number) {
    this.#agent = agent
    this.#shop = shop
    this.#rowsOfSlice = rowsOfSlice
  }

  /** Returns the wall time per row, µs. */
  async slice(): Promise<number> {
    const { ctis: all, deviceId } = this.#shop
    const ctis = all.slice(this.#released, (this.#released += this.#rowsOfSlice / ROWS_OF_RELEASE))
    await this.#agent.request({ ask: 'release', deviceId, ctis } satisfies DrainQuestion)
    const drained = await this.#agent.request<Drained>({ ask: 'drain' } satisfies DrainQuestion)
    const { rows, us, greetingMs, hasBroker } = drained
    if (rows !== this.#rowsOfSlice || !hasBroker)
      throw new Error(`${rows} of ${this.#rowsOfSlice} rows were drained, ${hasBroker ? 'with' : 'without'} a broker`)
    this.greetings.push(greetingMs)
    return us / rows
  }
}

interface Shop {
  tenant: Tenant
  deviceId: string
  /** Enrolment code for an agent. */
  code: string
  /** Unused receipts with one unit each. */
  ctis: string[]
}

async function openShop(
  { database }: RunningCloud,
  call: Call,
  platform: Platform,
  sales: number,
  name: string,
): Promise<Shop> {
  const { tenant, key } = await benchAccount(database, platform, name)
  const { deviceId } = await sellItems(database, tenant, sales, platform)
  const sold = await database.reads
    .selectFrom('purchase')
    .select(['cti', 'store_id'])
    .where('tenant', '=', tenant)
    .where('cti', 'is not', null)
    .execute()
  const { code } = await call('createEnrolmentCode', { storeId: sold[0]?.store_id }, key)
  return { tenant, deviceId, code: String(code), ctis: sold.map(({ cti }) => String(cti)) }
}

async function logIn(call: Call, agentId: string, messages: MessageSigner, { clock }: Platform): Promise<string> {
  const { challenge } = await call('agentLogin', { agentId })
  const { accessToken } = await call('agentLogin', {
    agentId,
    assertion: messages.assertion(String(challenge), clock.wall()),
  })
  return String(accessToken)
}

/** Creates the signed batches of an agent that released these receipts offline. */
function journal(
  identity: Identity,
  messages: MessageSigner,
  ctis: readonly string[],
  deviceId: string,
  platform: Platform,
): string[] {
  const rows: JournalRow[] = []
  let previous = genesisHash(identity.ledgerId, identity.generation)
  const add = (body: JournalBody) => {
    const seq = rows.length + 1
    previous = rowHash(previous, seq, JSON.stringify(body))
    rows.push({ seq, hash: previous, body })
  }
  for (const cti of ctis) {
    const [atMs, redemptionId] = [platform.clock.wall(), newId('rdm', platform)]
    const event = (type: ProtectionEvent['type']): ProtectionEvent => ({
      type,
      eventId: newId('evt', platform),
      occurredAt: new Date(atMs).toISOString(),
      storeId: identity.storeId,
      deviceId,
      protectionAction: 'detach_hard_tag',
      offline: true,
      replayProtectedNonce: cti,
      authorizationState: 'redeemed',
    })
    add({
      atMs,
      evidence: {
        kind: 'claim',
        redemptionId,
        nonce: cti,
        source: 'receipt',
        rightClass: 'release',
        ordinals: [0],
        deviceId,
      },
      event: event('protection.device.offline'),
    })
    add({
      atMs,
      evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' },
      event: event('protection.action.completed'),
    })
  }
  const batches: string[] = []
  for (let from = 0; from < rows.length; from += BATCH_LIMIT) {
    const after = rows[from - 1]?.hash ?? genesisHash(identity.ledgerId, identity.generation)
    batches.push(messages.batch(after, rows.slice(from, from + BATCH_LIMIT), platform.clock.wall()))
  }
  return batches
}
