import { join } from 'node:path'
import { openOutcomes, type Outcomes } from '../decisions/outcomes.ts'
import type { Identity } from '../identity/identity.ts'
import { openStoreKeys, type StoreKeys } from '../identity/store-keys.ts'
import { openItemFile, type ItemFile } from '../items/item-file.ts'
import type { Pictures } from '../items/pictures.ts'
import { keysOfEntry, Replica } from '../items/replica.ts'
import { MAY_BE_SOLD, type TillTags } from '../items/till-tags.ts'
import { RECEIVED_LIFE_MS } from '../peers/till-notices.ts'
import type { SmallFiles } from '../ledger/file/watermark.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import { openLedger, type Ledger, type OpenLedgerFile } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import type { ItemEntry } from '../../policy/documents/item-documents.ts'
import type { Platform, SecretFiles } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import { storeRestored } from '../trust/revocation/untrusted-ledger.ts'
import { openAgentClock, type AgentClock } from '../trust/time/clock.ts'
import { Trust } from '../trust/trust.ts'
import { newId } from '../../policy/ids.ts'
import { outcomeEvidence } from '../ledger/claims/claim-request.ts'

export interface StoredParts {
  platform: Platform
  dataDir: string
  identity: Identity
  /** Files for the secrets in `dataDir`. */
  secretFiles: SecretFiles
  log: Log
  /** Opens the file of the ledger; default: SQLite on the real disk. */
  openLedgerFile?: OpenLedgerFile
  /** Folders of the watermark: one outside `dataDir`, and `dataDir` itself. Default: no watermark. */
  watermarkFolders?: readonly SmallFiles[]
}

/** The parts of the agent that have files on its disk. */
export interface Stored {
  readonly ledger: Ledger
  readonly clock: AgentClock
  readonly outcomes: Outcomes
  readonly itemFile: ItemFile
  readonly items: Replica
  readonly pictures: Pictures
  readonly trust: Trust
  readonly storeKeys: StoreKeys
}

/** Statuses of goods that have not come back since they were sold. */
const SOLD: ReadonlySet<string | undefined> = new Set<ItemStatus>(['paid', 'picked_up', 'exception_hold'])

/** Forgets the releases of tags whose goods came back: the next sale has its own right. */
function forgetReturned(ledger: Ledger, entries: readonly ItemEntry[]): void {
  if (ledger.claims.hasNoTags) return
  const tags = entries.filter(({ status }) => !SOLD.has(status))
  try {
    ledger.commits.now(() => ledger.claims.forgetTags(tags))
  } catch (error) {
    // Until there is room on the disk, staff cannot release these tags offline. Gates must work (P6).
    if (!(error instanceof LedgerFull)) throw error
  }
}

/**
 * What tills reported here, and what agents announced that the policy still names. Without its place in the items, an
 * announcement counts for a limited time, because its sender may be gone.
 */
function trustedReports(ledger: Ledger, trustOf: () => Trust, nowMs: () => number): TillTags {
  const { till } = ledger
  return {
    tag(key) {
      const tag = till.tag(key)
      if (!tag || tag.sender === '') return tag
      const isNamed = trustOf().policy?.policy.tillSales.agents.includes(tag.sender) === true
      const isOld = tag.ver === null && nowMs() - tag.storedMs > RECEIVED_LIFE_MS
      return isNamed && !isOld ? tag : undefined
    },
    in: (statuses, limit) => till.in(statuses, 0, limit),
  }
}

/**
 * Notes which announcements of other agents, and reports that the cloud applied later, the items now contain, and which
 * tags belong to their sale no more.
 */
function noteContained(ledger: Ledger, items: Replica, entries: readonly ItemEntry[]): void {
  const { acked } = ledger.journal
  const { till } = ledger
  const [lacks, hasSold] = [till.lacks(acked), till.hasSold]
  if (!lacks && !hasSold) return
  const [epoch] = items.position()
  try {
    ledger.commits.now(() => {
      for (const { status, seq, ...names } of entries)
        for (const key of status ? keysOfEntry(names) : []) {
          if (!status) continue
          if (hasSold && MAY_BE_SOLD.has(status)) till.supersede(key, status, [epoch, seq])
          if (lacks) till.contain(key, status, [epoch, seq], acked)
        }
    })
  } catch (error) {
    if (!(error instanceof LedgerFull)) throw error
  }
}

/**
 * Opens the ledger, and stores the outcome `unknown` for claims that a crash left without an outcome. Then opens clock,
 * items and trust.
 */
export function openStorage(
  { platform, dataDir, identity, secretFiles, log, openLedgerFile, watermarkFolders }: StoredParts,
  events: { onFailure(failure: Error): void; onAppended(): void },
): Stored {
  const { ledgerId, generation, storeId } = identity
  const ledger = openLedger({
    file: join(dataDir, 'ledger.db'),
    ledgerId,
    generation,
    ...events,
    open: openLedgerFile,
    watermark: watermarkFolders && { folders: watermarkFolders, log },
  })
  if (ledger.isBehindWatermark) storeRestored(ledger, log)
  const clock = openAgentClock(ledger, platform.clock)
  const outcomes = openOutcomes({ ledger, timers: platform.timers, log })
  const recovered = recoverClaims(ledger, storeId, clock.now().nowMs, platform, outcomes.retryLater)
  if (recovered > 0) log.warn({ claims: recovered }, 'claims without outcome were found: staff must resolve them')
  const file = join(dataDir, 'items.db')
  const itemFile = openItemFile(file, (error, isDamaged) =>
    log.error(
      { err: error, file },
      `the file of the items ${isDamaged ? 'is damaged and was set aside' : 'cannot be opened and is not used'}: gates alarm for paid goods until the agent has fetched the items from the cloud`,
    ),
  )
  const items = new Replica({
    disk: itemFile,
    tillTags: trustedReports(
      ledger,
      (): Trust => trust,
      () => clock.now().nowMs,
    ),
    platform,
    log,
  })
  ledger.till.knowItems(() => items.position())
  items.onChange((entries) => {
    forgetReturned(ledger, entries)
    noteContained(ledger, items, entries)
  })
  const trust = new Trust(identity, ledger, clock, items)
  const storeKeys = openStoreKeys({ dataDir, files: secretFiles, log })
  return { ledger, clock, outcomes, itemFile, items, pictures: items.pictures, trust, storeKeys }
}

/**
 * Stores the outcome `unknown` for each claim that a crash left without an outcome. Staff must then check the goods,
 * because the agent never repeats the command of such a claim. Call this function before any device opens. If the disk
 * is full, passes the outcomes to `whenFull`, so that gates still work (P6). Returns the number of these claims.
 */
export function recoverClaims(
  ledger: Ledger,
  storeId: string,
  nowMs: number,
  platform: Platform,
  whenFull?: Ledger['recordOutcome'],
): number {
  const open = ledger.claims.unsettled().map(({ redemption_id: redemptionId, device_id: deviceId, nonce }) => {
    const { evidence } = outcomeEvidence(redemptionId, 'unknown')
    const event = {
      // The API has no event for an unknown outcome; `outcome` says it.
      type: 'protection.action.failed' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(nowMs).toISOString(),
      storeId,
      deviceId,
      ...(evidence && { replayProtectedNonce: nonce }),
      outcome: 'unknown' as const,
      reason: 'power_loss',
      detail: 'the agent stopped between the claim and its outcome',
    }
    return { redemptionId, event }
  })
  if (open.length === 0) return 0
  const noteAll = (note: Ledger['recordOutcome']) => {
    for (const { redemptionId, event } of open) note(redemptionId, 'unknown', nowMs, event)
  }
  try {
    ledger.commits.now(() => noteAll((...outcome) => ledger.recordOutcome(...outcome)))
  } catch (error) {
    if (!(error instanceof LedgerFull) || !whenFull) throw error
    noteAll(whenFull)
  }
  return open.length
}
