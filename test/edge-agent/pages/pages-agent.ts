import { once } from 'node:events'
import { rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { createAdaptorServer } from '@hono/node-server'
import { realPlatform } from '../../../host/platform.ts'
import { EMPTY_CONFIG } from '../../../edge-agent/config.ts'
import type { AuthorizeAnswer } from '../../../edge-agent/decisions/request.ts'
import { HandledAlarms } from '../../../edge-agent/lanes/gate/handled-alarms.ts'
import { openFeed, type Feed } from '../../../edge-agent/feed.ts'
import type { AgentStatus } from '../../../edge-agent/health/agent-status.ts'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/ledger-file.ts'
import { openPairings, type Pairings } from '../../../edge-agent/ledger/pairings.ts'
import { hashSecret, newSecret, pairingUrl } from '../../../edge-agent/identity/identity.ts'
import type { ScanOrigin, ScanResult } from '../../../edge-agent/lanes/scan-result.ts'
import { operatorSessions, type Proof } from '../../../edge-agent/lanes/operators.ts'
import type { Log } from '../../../edge-agent/log.ts'
import type { Agent } from '../../../edge-agent/runtime.ts'
import { completeCapabilities, type DeviceFacts } from '../../../policy/devices.ts'
import type { OperatorRecord, Verifier } from '../../../policy/documents/store-documents.ts'
import type { JournalBody } from '../../../policy/journal.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'
import { newBadgeVerifier, newPinVerifier, newStoreKey, publishedVerifier } from '../../../policy/operator-verifiers.ts'
import { checkedApp } from '../../verification/simulation/nodes/agent-response-check.ts'
import { DEFAULT_WORKFLOW, type DeviceType } from '../../../policy/vocabulary.ts'
import { entries } from '../../device-drivers/workbench.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { temporaryFolder } from '../../support/databases.ts'

/** An agent for the pages. The test sets its state and answers. The HTTP server is the real one. */
export interface PagesBench {
  agent: Agent
  feed: Feed
  status: AgentStatus
  /** Received scans, with their operators. */
  scans: { deviceId: string; text: string; operatorId: string | undefined; byHand: boolean }[]
  /** Rows that the agent has written about alarms. */
  rows: JournalBody[]
  /** True if the agent has the store key of its policy. */
  hasStoreKey: boolean
  /** Answers the next scans. */
  answer: (text: string, operatorId: string | undefined) => ScanResult | Promise<ScanResult>
  /** Publishes an event at a device. */
  happens(deviceId: string, result: ScanResult): void
}

export const STATION = 'dev_station'
export const GATE = 'dev_gate'
export const OPERATOR = { operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B', name: 'Frau Petersen', pin: '471108' }

const platform = realPlatform()

function facts(deviceId: string, deviceType: DeviceType): DeviceFacts {
  const workflowType = DEFAULT_WORKFLOW[deviceType]
  return {
    deviceId,
    storeId: 'st_1',
    deviceType,
    workflowType,
    ...completeCapabilities(deviceType, {}),
    agentId: 'agt_1',
    revoked: false,
  }
}

export function granted(more: Partial<AuthorizeAnswer> = {}): ScanResult {
  const answer: AuthorizeAnswer = {
    authorized: true,
    action: 'deactivate_label',
    expiresAt: '2026-11-20T12:00:00.000Z',
    itemCount: 1,
    remaining: 0,
    eventId: 'evt_1',
    offline: false,
    outcome: 'confirmed',
    ...more,
  }
  return { kind: 'decision', answer }
}

export function denied(
  reason: NonNullable<AuthorizeAnswer['reason']>,
  more: Partial<AuthorizeAnswer> = {},
): ScanResult {
  return granted({ authorized: false, reason, outcome: null, itemCount: 0, expiresAt: null, ...more })
}

/** A result for a tag that the gate's reader has read. */
export function atTheGate(epc: string, result: ScanResult): ScanResult {
  return result.kind === 'decision' ? { ...result, item: epc } : result
}

export function newStatus(): AgentStatus {
  const device = {
    driver: 'modbus',
    state: 'ready' as const,
    since: 0,
    detail: 'relay board',
    name: null,
    findings: [],
  }
  return {
    agentId: 'agt_1',
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    storeName: 'Hafencity',
    online: true,
    offlineSince: null,
    broker: true,
    queueDepth: 0,
    policyVersion: 7,
    stage: 'fresh',
    isOvertaken: false,
    release: '0.1.0',
    neededRelease: null,
    clock: 'signed',
    now: new Date(0).toISOString(),
    isHome: true,
    ledgerDoubt: null,
    items: { known: 240, ageSeconds: 3 },
    devices: [
      { ...device, deviceId: STATION, deviceType: 'pos_deactivator', feeds: null },
      { ...device, deviceId: GATE, deviceType: 'exit_gate', feeds: null },
      { ...device, deviceId: 'dev_scanner', driver: 'scanner', deviceType: null, feeds: STATION },
    ],
    emergency: null,
    fault: null,
    isRestartDue: false,
  }
}

const DEVICES = entries(
  { deviceId: STATION, driver: 'modbus', link: { tcp: '127.0.0.1:502' }, output: 0 },
  { deviceId: GATE, driver: 'modbus', link: { tcp: '127.0.0.1:502' }, output: 1 },
  { deviceId: 'dev_scanner', driver: 'scanner', link: { tcp: '127.0.0.1:4000' }, feeds: STATION },
)

export function pagesBench(): PagesBench {
  const { random } = platform
  const storeKey = newStoreKey(random)
  const under = (base: Verifier) => publishedVerifier(base, storeKey)
  const operators: OperatorRecord[] = [
    {
      ...OPERATOR,
      pin: under(newPinVerifier(OPERATOR.pin, random)),
      badge: under(newBadgeVerifier('A'.repeat(26), random)),
    },
    {
      operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z2C',
      name: 'Herr Tran',
      badge: under(newBadgeVerifier('B'.repeat(26), random)),
    },
  ]
  const feed = openFeed()
  const sessions = operatorSessions(platform, () => ({
    records: operators,
    storeKey: bench.hasStoreKey ? storeKey : undefined,
  }))
  let currentSession: string | undefined
  const bench: PagesBench = {
    feed,
    status: newStatus(),
    scans: [],
    rows: [],
    hasStoreKey: true,
    answer: () => granted(),
    happens: (deviceId, result) => feed.publish({ type: 'result', deviceId, atMs: platform.clock.wall(), result }),
    // Set below. The agent has only the members that the HTTP server uses.
    agent: undefined as unknown as Agent,
  }
  const agent = {
    config: { ...EMPTY_CONFIG, devices: DEVICES, language: 'de' as const },
    feed,
    platform,
    status: () => bench.status,
    trust: {
      policy: {
        devices: [facts(STATION, 'pos_deactivator'), facts(GATE, 'exit_gate')],
        operators,
        policy: DEFAULT_POLICY,
      },
    },
    operators: sessions,
    identity: { agentId: 'agt_1' },
    ledger: { pairings: newPairings(), commits: { durably: async (work: () => unknown) => work() } },
    setup: {
      fileName: undefined,
      testable: () => [],
      changeable: () => undefined,
      isRemoved: () => false,
      nameOf: () => undefined,
      isRestartDue: false,
    },
    gates: {
      alarms: new HandledAlarms({
        ledger: {
          commits: { durably: async (work: () => unknown) => work() },
          journal: {
            append: (row: JournalBody) => bench.rows.push(row),
            alarmsSince: () => [],
            acked: Number.POSITIVE_INFINITY,
          },
        } as unknown as Agent['ledger'],
        journal: { write: async () => undefined },
        operatorName: () => undefined,
        nowMs: platform.clock.wall,
        onAwaited: () => undefined,
        onHandled: (deviceId, alarmId, state) => feed.publish({ type: 'alarm', deviceId, alarmId, ...state }),
      }),
    },
    lanes: {
      operatorAt: () => sessions.peek(currentSession)?.name,
      actingOperatorAt: () => sessions.find(currentSession),
      signIn(deviceId: string, proof: Proof) {
        const opened = sessions.signIn(proof, 'the browser')
        if (!opened.ok) return opened
        currentSession = opened.session
        feed.publish({ type: 'operator', deviceId, name: opened.name })
        return opened
      },
      signOut(deviceId: string) {
        currentSession = undefined
        feed.publish({ type: 'operator', deviceId, name: null })
      },
      async scan(deviceId: string, text: string, { byHand = false }: ScanOrigin) {
        const operatorId = sessions.peek(currentSession)?.operatorId
        bench.scans.push({ deviceId, text, operatorId, byHand })
        const result = await bench.answer(text, operatorId)
        bench.happens(deviceId, result)
        return result
      },
    },
  }
  bench.agent = agent as unknown as Agent
  return bench
}

const LOG: Log = {
  info: () => undefined,
  warn: () => undefined,
  error: (fields) => process.stderr.write(`${JSON.stringify(fields)}\n`),
}

/** Requests a page without a socket, as a paired program. `peer`: address of the caller, by default this machine. */
export async function getPage(
  bench: PagesBench,
  path: string,
  peer = '127.0.0.1',
  headers: Record<string, string> = AUTHORIZATION,
): Promise<Response> {
  const app = localApp(bench.agent, {
    hosts: () => ['kasse'],
    log: LOG,
    credential: () => CREDENTIAL,
    dataDir: '/srv/my data',
  })
  return app.request(
    path,
    { headers: { host: 'kasse', ...headers } },
    { incoming: { socket: { remoteAddress: peer } } },
  )
}

/** Opens pairings in a file that is deleted at once, so that nothing stays on the disk. */
function newPairings(): Pairings {
  const folder = temporaryFolder('pairings')
  const pairings = openPairings(openLedgerFile(join(folder, 'ledger.db')))
  rmSync(folder, { recursive: true })
  return pairings
}

export interface ServedPages {
  url: string
  /** A new one-time link that pairs a browser. */
  pairingUrl(): string
  /** Closes the server and every connection at once, as a crash does. */
  close(): Promise<void>
}

/** Serves the bench on a real port, for a real browser. */
export async function servePages(bench: PagesBench, port = 0): Promise<ServedPages> {
  const host = () => `127.0.0.1:${(server.address() as AddressInfo).port}`
  const app = localApp(bench.agent, {
    hosts: () => [host()],
    log: LOG,
    credential: () => CREDENTIAL,
    dataDir: '/srv/my data',
  })
  const server = createAdaptorServer({ fetch: checkedApp(app).fetch }) as Server
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://${host()}`,
    pairingUrl() {
      const code = newSecret('link', platform.random)
      bench.agent.ledger.pairings.addLink(hashSecret(code), platform.clock.wall())
      return pairingUrl(`http://${host()}`, code)
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Pairs the browser of a page, as its one-time link does. */
export async function pairBrowser(page: Page, served: ServedPages): Promise<void> {
  const [, code] = served.pairingUrl().split('#')
  const answer = await page.request.post(`${served.url}/v1/pair`, { data: { code } })
  if (answer.status() !== 200) throw new Error('the browser was not paired')
}
