import { realPlatform } from '../../../host/platform.ts'
import { enrol, type Enrolled } from '../../../edge-agent/enrolment/enrol.ts'
import type { Identity } from '../../../edge-agent/identity/identity.ts'
import { messageSigner } from '../../../edge-agent/link/login/sign-messages.ts'
import { assert } from '../../../policy/assert.ts'
import { genesisHash, rowHash, type Evidence, type JournalBody, type JournalRow } from '../../../policy/journal.ts'
import type { Client } from './client.ts'
import type { Cluster } from './cluster.ts'
import { receiptIdentity } from './recount.ts'
import { eanNumber, must, type Scene } from './scene.ts'

/** Enrols a new agent at the process with this address. */
export function enrolAt(address: string, code: string): Promise<Enrolled> {
  return enrol({
    cloud: address,
    code,
    platform: realPlatform(),
    async fetch(url, { method, headers, body, signal }) {
      const answer = await fetch(url, { method, headers, signal, ...(body !== undefined && { body }) })
      return { status: answer.status, text: () => answer.text() }
    },
  })
}

/** An agent that sends its journal by HTTP. */
export interface ReportingAgent {
  /** Adds rows to the journal, and sends their batch to two processes at once until the cloud has accepted it. */
  report(): Promise<void>
  /** Batches whose rows the cloud did not accept exactly once. */
  readonly faults: readonly string[]
}

/** Attempts for one batch. Each attempt waits for a process that is up. */
const ATTEMPTS = 20
/** No round has this number. */
const TAGGED_EAN = 900_000

/** Enrols an agent in the second store. Its journal contains releases of receipts, and events. */
export async function openAgent(client: Client, cluster: Cluster, scene: Scene): Promise<ReportingAgent> {
  const { otherStoreId: storeId } = scene
  const { code } = await must(client, 'createEnrolmentCode', { storeId })
  const enrolled = await enrolAt(cluster.address(0) ?? '', String(code))
  assert(enrolled.ok, 'the agent is enrolled')
  const { identity } = enrolled
  const { clock } = realPlatform()
  const messages = messageSigner(identity)
  const bearer = await logIn(client, identity, (challenge) => messages.assertion(challenge, clock.wall()))
  const { deviceId } = await must(client, 'registerDevice', { storeId, deviceType: 'pos_deactivator' })
  const ean = eanNumber(TAGGED_EAN)
  await must(client, 'insertProduct', { storeId, ean, name: 'Hemd', price: 20, vat: 19, tagged: true })

  const faults: string[] = []
  let head: Pick<JournalRow, 'seq' | 'hash'> = { seq: 0, hash: genesisHash(identity.ledgerId, identity.generation) }
  let redemptions = 0

  const rowOf = (body: JournalBody): JournalRow => {
    const seq = head.seq + 1
    const row = { seq, hash: rowHash(head.hash, seq, JSON.stringify(body)), body }
    head = row
    return row
  }

  /** Sells one unit. Returns the identity of its receipt, or undefined if an answer was lost. */
  async function sell(): Promise<string | undefined> {
    const session = await client.callOnce('checkIn', { storeId })
    const basket = { sessionId: session.answer['sessionId'] ?? '-', items: [{ ean, quantity: 1 }] }
    const { answer } = await client.callOnce('startCheckout', basket)
    const paid = await client.callOnce('completeTestCheckout', { transactionId: answer['transactionId'] ?? '-' })
    if (paid.outcome !== 'done') return undefined
    return receiptIdentity(cluster.databaseUrl, String(answer['transactionId'])).catch(() => undefined)
  }

  async function bodies(): Promise<JournalBody[]> {
    const atMs = Math.floor(clock.wall())
    const eventId = `agent-${head.seq + 1}`
    const occurredAt = new Date(atMs).toISOString()
    const event: JournalBody = { atMs, event: { type: 'protection.device.offline', eventId, occurredAt, storeId } }
    const nonce = client.chance(2) === 0 ? await sell() : undefined
    if (nonce === undefined) return [event]
    const redemptionId = `agent-${++redemptions}`
    const evidence: Evidence = {
      kind: 'claim',
      redemptionId,
      nonce,
      source: 'receipt',
      rightClass: 'release',
      ordinals: [0],
      deviceId: String(deviceId),
    }
    return [{ atMs, evidence }, event, { atMs, evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' } }]
  }

  return {
    faults,
    async report() {
      const after = head.hash
      const rows = (await bodies()).map(rowOf)
      const batch = messages.batch(after, rows, clock.wall())
      const send = () => client.call('reportProtectionEvents', { batch }, { bearer })
      let accepted = 0
      let isUnknown = false
      for (let tries = 1; ; tries++) {
        const steps = await Promise.all([send(), send()])
        for (const { outcome, answer, reason } of steps) {
          accepted += Number(answer['accepted'] ?? 0)
          if (outcome === 'unknown') isUnknown = true
          if (outcome === 'refused') faults.push(`a batch of the agent was refused: ${reason}`)
        }
        if (steps.some(({ outcome }) => outcome !== 'unknown') || tries === ATTEMPTS) break
      }
      if (accepted > rows.length || (accepted < rows.length && !isUnknown))
        faults.push(`${accepted} of ${rows.length} rows of an agent were accepted`)
    },
  }
}

async function logIn(client: Client, { agentId }: Identity, sign: (challenge: string) => string): Promise<string> {
  const anyone = { bearer: '' }
  const { answer } = await client.call('agentLogin', { agentId }, anyone)
  const assertion = sign(String(answer['challenge']))
  const login = await client.call('agentLogin', { agentId, assertion }, anyone)
  assert(login.outcome === 'done', `the login of the agent is ${login.outcome}: ${login.reason}`)
  return String(login.answer['accessToken'])
}
