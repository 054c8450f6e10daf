import { createPublicKey } from 'node:crypto'
import { join } from 'node:path'
import { enrol } from '../edge-agent/link/enrol.ts'
import type { Fetch } from '../edge-agent/link/http-client.ts'
import { messagesOf, type Messages } from '../edge-agent/link/messages.ts'
import type { Identity } from '../edge-agent/trust/identity.ts'
import { BATCH_LIMIT } from '../policy/documents/agent-messages.ts'
import { publicJwk } from '../policy/documents/keys.ts'
import type { ProtectionEvent } from '../policy/events.ts'
import { newId } from '../policy/ids.ts'
import { genesisHash, rowHash, type JournalBody, type JournalRow } from '../policy/journal.ts'
import type { Platform } from '../policy/platform.ts'
import { benchAccount, openBenchCloud } from './bench-cloud.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result } from './figure.ts'
import { takeTurns, wallTime } from './measure.ts'
import { bareIngest } from './peers/bare-ingest.ts'
import { sellItems } from './sold-items.ts'

const NAMES = { bare: 'bare verify + chain + insert', ours: 'reportProtectionEvents' }
/** Least share of the bare rate. */
const SHARE = 0.5
/** A release leaves two rows: the claim with what was done offline, and its outcome. */
const ROWS_OF_RELEASE = 2

/** How fast the cloud takes in what an agent kept while it was alone for three days. */
export const drain: Figure = { name: 'drain', run }

type Call = (operation: string, body: object, bearer?: string) => Promise<Record<string, unknown>>

async function run({ quick, folder, random, note }: Bench): Promise<Result> {
  const batchesOfSlice = quick ? 5 : 20
  const rounds = quick ? 5 : 15
  const { running, platform } = await openBenchCloud(join(folder, 'cloud'))
  const fetch: Fetch = async (url, { method, headers, body }) => {
    const answer = await running.cloud.app.request(url, { method, headers, ...(body !== undefined && { body }) })
    const text = await answer.text()
    return { status: answer.status, text: () => Promise.resolve(text) }
  }
  const call: Call = async (operation, body, bearer) => {
    const headers = { 'content-type': 'application/json', ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) }
    const answer = await running.cloud.app.request(`${running.baseUrl}/${operation}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status}: ${await answer.text()}`)
    return (await answer.json()) as Record<string, unknown>
  }
  try {
    const { tenant, key } = await benchAccount(running.database, platform)
    const batches = batchesOfSlice * (rounds + 1)
    note(`${batches * BATCH_LIMIT} rows of a journal are being made`)
    const { deviceId } = await sellItems(running.database, tenant, (batches * BATCH_LIMIT) / ROWS_OF_RELEASE, platform)
    const sold = await running.database.reads.selectFrom('purchase').select(['cti', 'store_id']).where('tenant', '=', tenant).where('cti', 'is not', null).execute()
    const storeId = sold[0]?.store_id ?? ''
    const { code } = await call('createEnrolmentCode', { storeId }, key)
    const enrolled = await enrol({ cloud: running.baseUrl, code: String(code), platform, fetch })
    if (!enrolled.ok) throw new Error(enrolled.why)
    const { identity } = enrolled
    const messages = messagesOf(identity)
    const kept = journal(identity, messages, sold.map(({ cti }) => String(cti)), deviceId, platform)
    const login = await logIn(call, identity.agentId, messages, platform)
    const bare = bareIngest(join(folder, 'bare.db'), createPublicKey({ key: { ...publicJwk(identity.x) }, format: 'jwk' }))
    const slice = (take: (batch: string) => Promise<unknown> | void) => {
      let next = 0
      return () =>
        wallTime(batchesOfSlice * BATCH_LIMIT, async () => {
          for (const batch of kept.slice(next, (next += batchesOfSlice))) await take(batch)
        })
    }
    const ingest = async (batch: string) => {
      const { accepted } = await call('reportProtectionEvents', { batch }, login)
      if (accepted !== BATCH_LIMIT) throw new Error(`${String(accepted)} of ${BATCH_LIMIT} rows were taken`)
    }
    const samples = await takeTurns([{ name: NAMES.bare, slice: slice(bare.take) }, { name: NAMES.ours, slice: slice(ingest) }], rounds, random)
    bare.close()
    return {
      title: `An agent’s journal drained into the cloud, ${BATCH_LIMIT} rows a batch, one batch after the other (SQLite, synchronous=FULL)`,
      counts: 'wall time of one row, both in this process',
      rows: rowsOf(samples, NAMES.bare),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: ['the bare transaction keeps the rows; ours also uses up the rights they are about, settles the purchases and completes the events'],
    }
  } finally {
    await running.stop()
  }
}

async function logIn(call: Call, agentId: string, messages: Messages, { clock }: Platform): Promise<string> {
  const { challenge } = await call('agentLogin', { agentId })
  const { accessToken } = await call('agentLogin', { agentId, assertion: messages.assertion(String(challenge), clock.wall()) })
  return String(accessToken)
}

/** What the agent wrote down while it released all of this offline, in signed batches. */
function journal(identity: Identity, messages: Messages, ctis: readonly string[], deviceId: string, platform: Platform): string[] {
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
    add({ atMs, evidence: { kind: 'claim', redemptionId, nonce: cti, source: 'receipt', rightClass: 'release', ordinals: [0], deviceId }, event: event('protection.device.offline') })
    add({ atMs, evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' }, event: event('protection.action.completed') })
  }
  const batches: string[] = []
  for (let from = 0; from < rows.length; from += BATCH_LIMIT) {
    const after = rows[from - 1]?.hash ?? genesisHash(identity.ledgerId, identity.generation)
    batches.push(messages.batch(after, rows.slice(from, from + BATCH_LIMIT), platform.clock.wall()))
  }
  return batches
}
