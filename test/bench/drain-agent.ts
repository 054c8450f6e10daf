import { openMqttLine } from '../../host/mqtt-line.ts'
import { enrolAgent } from '../../bin/commands/edge-enrol.ts'
import { realPlatform } from '../../host/platform.ts'
import { EMPTY_CONFIG } from '../../edge-agent/config.ts'
import { openLedger, type Ledger } from '../../edge-agent/ledger/ledger.ts'
import { startAgent } from '../../edge-agent/runtime.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { join } from 'node:path'
import { answerBench } from './child.ts'

/** Requests to an agent in a separate process. The agent is offline for a while and then reconnects. */
export type DrainQuestion =
  | { ask: 'enrol'; cloud: string; code: string }
  /** Releases these receipts offline. */
  | { ask: 'release'; deviceId: string; ctis: readonly string[] }
  /** Connects to the cloud and sends all rows. */
  | { ask: 'drain' }

export interface Drained {
  rows: number
  /** Time from the agent's connection until the last acknowledgement is on the agent's disk, µs. */
  us: number
  /**
   * Time before these rows are sent, ms: the agent starts, logs in, fetches signed time and documents, and connects to
   * MQTT.
   */
  greetingMs: number
  hasBroker: boolean
}

const [data = '.'] = process.argv.slice(2)
const platform = realPlatform()
const log = {
  info: () => undefined,
  warn: (fields: object, text?: string) => process.stderr.write(`${JSON.stringify(fields)} ${text ?? ''}\n`),
  error: (fields: object, text?: string) => process.stderr.write(`${JSON.stringify(fields)} ${text ?? ''}\n`),
}
const fail = (failure: Error) => {
  throw failure
}
const LIMIT_MS = 120_000
const AT_ONCE = 500
const DAY_S = 86_400
let identity: Identity | undefined

function own(): Identity {
  if (!identity) throw new Error('the agent is not enrolled')
  return identity
}

async function release(deviceId: string, ctis: readonly string[]): Promise<null> {
  const { ledgerId, generation, storeId } = own()
  const ledger = openLedger({ file: join(data, 'ledger.db'), ledgerId, generation, onFailure: fail })
  for (let from = 0; from < ctis.length; from += AT_ONCE) {
    await Promise.all(ctis.slice(from, from + AT_ONCE).map((cti) => releaseOne(ledger, { cti, deviceId, storeId })))
  }
  ledger.close()
  return null
}

/** Writes the two rows of a release: the claim with its evidence, and the outcome. */
async function releaseOne(
  ledger: Ledger,
  { cti, deviceId, storeId }: { cti: string; deviceId: string; storeId: string },
): Promise<void> {
  const [atMs, redemptionId] = [platform.clock.wall(), newId('rdm', platform)]
  const event = (type: ProtectionEvent['type']): ProtectionEvent => ({
    type,
    eventId: newId('evt', platform),
    occurredAt: new Date(atMs).toISOString(),
    storeId,
    deviceId,
    protectionAction: 'detach_hard_tag',
    offline: true,
    replayProtectedNonce: cti,
    authorizationState: 'redeemed',
  })
  const request = {
    redemptionId,
    source: 'receipt',
    nonce: cti,
    rightClass: 'release',
    candidates: [0],
    all: false,
    exp: Math.floor(atMs / 1_000) + DAY_S,
    deviceId,
    nowMs: atMs,
  } as const
  const claimed = ledger.claim(request, () => event('protection.device.offline'))
  await Promise.all([claimed, ledger.settle(redemptionId, 'confirmed', atMs, event('protection.action.completed'))])
  if (!(await claimed).ok) throw new Error('a fresh receipt could not be claimed')
}

async function drain(): Promise<Drained> {
  const startedAt = process.hrtime.bigint()
  const agent = startAgent({
    platform,
    dataDir: data,
    identity: own(),
    keepIdentity: () => undefined,
    secretFiles: { read: () => undefined, write: () => undefined },
    config: EMPTY_CONFIG,
    fetch,
    openLine: openMqttLine,
    log,
    onFatal: fail,
  })
  try {
    const rows = agent.ledger.journal.waiting
    if (!(await agent.ready(LIMIT_MS))) throw new Error('the agent did not reach the cloud')
    const from = process.hrtime.bigint()
    await agent.link.whenReported(LIMIT_MS)
    const us = Number(process.hrtime.bigint() - from) / 1_000
    if (agent.ledger.journal.waiting > 0) throw new Error(`${agent.ledger.journal.waiting} rows still wait`)
    return { rows, us, greetingMs: Number(from - startedAt) / 1e6, hasBroker: agent.link.hasBroker }
  } finally {
    await agent.stop()
  }
}

answerBench(async (question) => {
  const asked = question as DrainQuestion
  if (asked.ask === 'drain') return drain()
  if (asked.ask === 'release') return release(asked.deviceId, asked.ctis)
  identity = await enrolAgent({ cloud: asked.cloud, code: asked.code, data }, platform)
  return { agentId: identity.agentId }
})
