import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { openItemFile } from '../../edge-agent/items/item-file.ts'
import { Replica } from '../../edge-agent/items/replica.ts'
import { openLedger, type Ledger, type OpenLedgerFile } from '../../edge-agent/ledger/ledger.ts'
import { openAgentClock, type AgentClock } from '../../edge-agent/trust/time/clock.ts'
import type { Identity } from '../../edge-agent/identity/identity.ts'
import { Trust } from '../../edge-agent/trust/trust.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signDocument } from '../../policy/documents/signed-document.ts'
import {
  contentHash,
  type DenyClaims,
  type FreshClaims,
  type KeySetClaims,
  type PolicyClaims,
} from '../../policy/documents/store-documents.ts'
import { DEFAULT_POLICY } from '../../policy/store-policy.ts'
import { virtualPlatform, type VirtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { temporaryFolder } from './databases.ts'
import { testKey, type TestKey } from './keys.ts'

export const HOUR = 3_600_000
const START = Date.UTC(2026, 10, 20, 9)

export const root = testKey('root')
export const token = testKey('token')
export const receipt = testKey('receipt')
export const policyKey = testKey('policy', { iss: 'installation' })
export const freshness = testKey('freshness', { iss: 'installation' })
const KEYS = [token, receipt, policyKey, freshness]
export const identity: Identity = {
  agentId: 'agt_1',
  storeId: 'st_1',
  tenant: 'acc_1.test',
  ledgerId: 'led_1',
  generation: 1,
  cloud: 'https://x',
  mqttUrl: 'mqtt://x',
  rootX: root.record.x,
  x: root.record.x,
  secret: '',
}

/** The trust state of one agent, and a cloud that signs what the test requires. */
export interface TrustBench {
  readonly folder: string
  readonly world: VirtualPlatform
  readonly ledger: Ledger
  readonly clock: AgentClock
  readonly trust: Trust
  readonly items: Replica
  open(openFile?: OpenLedgerFile, who?: Identity): void
  close(): void
  /** Simulates a restart of the process. */
  reopen(): void
  /** Current wall time, seconds since 1970. */
  iat(): number
  keySetClaims(change?: Partial<KeySetClaims>): KeySetClaims
  keySet(change?: Partial<KeySetClaims>, by?: TestKey): string
  policyClaims(change?: Partial<PolicyClaims>): PolicyClaims
  policy(change?: Partial<PolicyClaims>, by?: TestKey): string
  fresh(change?: Partial<FreshClaims>, by?: TestKey): string
  deny(after: number, ver: number, entries: DenyClaims['entries'], by?: TestKey): string
  /** Passes the first key set, freshness and policy to the agent. Returns the results. */
  all(): ReturnType<Trust['accept']>[]
}

/** Key records of all keys, with these changes by key id. */
export const records = (change: Record<string, Partial<TestKey['record']>> = {}): TestKey['record'][] =>
  KEYS.map((k) => ({ ...k.record, ...change[k.record.kid] }))

/** A new bench for each test of a file. */
export function trustBench(): TrustBench {
  let now:
    | { folder: string; world: VirtualPlatform; ledger: Ledger; clock: AgentClock; trust: Trust; items: Replica }
    | undefined
  let place: { folder: string; world: VirtualPlatform } | undefined

  function opened(): NonNullable<typeof now> {
    if (!now) throw new Error('nothing is open')
    return now
  }

  function open(openFile?: OpenLedgerFile, who = identity): void {
    if (!place) throw new Error('outside a test')
    const { folder, world } = place
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
    const onFailure = (failure: unknown) => {
      throw failure
    }
    const ledger = openLedger({
      open: openFile,
      file: join(folder, 'ledger.db'),
      ledgerId: 'led_1',
      generation: 1,
      onFailure,
    })
    const clock = openAgentClock(ledger, world.clock)
    const items = new Replica({ disk: openItemFile(join(folder, 'items.db'), onFailure), platform: world, log })
    now = { folder, world, ledger, clock, items, trust: new Trust(who, ledger, clock, items) }
  }

  function close(): void {
    opened().items.close()
    opened().ledger.close()
  }

  beforeEach(() => {
    place = { folder: temporaryFolder('trust'), world: virtualPlatform({ startMs: START }) }
    open()
  })
  afterEach(() => {
    close()
    rmSync(opened().folder, { recursive: true, force: true })
  })

  const iat = () => Math.floor(opened().world.clock.wall() / 1_000)
  const keySetClaims = (change: Partial<KeySetClaims> = {}): KeySetClaims => ({
    aud: 'acc_1.test',
    iat: iat(),
    exp: iat() + 86_400,
    epoch: 0,
    ver: 1,
    keys: records(),
    ...change,
  })
  const keySet = (change: Partial<KeySetClaims> = {}, by: TestKey = root) =>
    signDocument(DOCUMENT_KINDS.keys, keySetClaims(change), by.signer)
  const policyClaims = (change: Partial<PolicyClaims> = {}): PolicyClaims => ({
    storeName: 'Hafencity',
    iss: 'acc_1.test',
    aud: 'st_1',
    iat: iat(),
    exp: iat() + 80 * 3_600,
    epoch: 0,
    ver: 1,
    securityTagMode: 'rfid',
    policy: DEFAULT_POLICY,
    devices: [],
    operators: [],
    ...change,
  })
  const policy = (change: Partial<PolicyClaims> = {}, by: TestKey = policyKey) =>
    signDocument(DOCUMENT_KINDS.policy, policyClaims(change), by.signer)
  const fresh = (change: Partial<FreshClaims> = {}, by: TestKey = freshness) => {
    const heads = {
      keys: { epoch: 0, ver: 1, hash: contentHash(keySetClaims()) },
      policy: { epoch: 0, ver: 1, hash: contentHash(policyClaims()) },
      deny: { epoch: 0, ver: 0 },
      items: { epoch: 0, ver: 0, floor: 0 },
    }
    return signDocument(
      DOCUMENT_KINDS.fresh,
      {
        aud: 'st_1',
        iat: iat(),
        exp: iat() + 80 * 3_600,
        timeMs: opened().world.clock.wall(),
        timeEpoch: 0,
        cloudGeneration: 1,
        ...heads,
        ...change,
      },
      by.signer,
    )
  }
  const deny = (after: number, ver: number, entries: DenyClaims['entries'], by: TestKey = freshness) =>
    signDocument(
      DOCUMENT_KINDS.deny,
      { aud: 'st_1', iat: iat(), exp: iat() + 3_600, epoch: 0, after, ver, entries },
      by.signer,
    )
  const all = () => [keySet(), fresh(), policy()].map((d) => opened().trust.accept(d))

  return {
    get folder() {
      return opened().folder
    },
    get world() {
      return opened().world
    },
    get ledger() {
      return opened().ledger
    },
    get clock() {
      return opened().clock
    },
    get trust() {
      return opened().trust
    },
    get items() {
      return opened().items
    },
    open,
    close,
    reopen() {
      close()
      open()
    },
    iat,
    keySetClaims,
    keySet,
    policyClaims,
    policy,
    fresh,
    deny,
    all,
  }
}
