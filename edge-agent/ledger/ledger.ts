import type { Database as Connection } from 'better-sqlite3'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import type { JournalBody } from '../../policy/journal.ts'
import type { Outcome } from '../../policy/vocabulary.ts'
import { claimEvidence, outcomeEvidence, type ClaimResult, type ClaimRequest } from './claims/claim-request.ts'
import { Claims } from './claims/claims.ts'
import { Commits, type LedgerFailure } from './file/commit.ts'
import { openLedgerFile } from './file/ledger-file.ts'
import { openStoredHomeRequests, type StoredHomeRequests } from './home/stored-home-requests.ts'
import { openHomeGrants, type HomeGrants } from './home/home-grants.ts'
import { Journal } from './journal/journal.ts'
import {
  openMetadata,
  type Metadata,
  openWatermark,
  type Position,
  type SmallFiles,
  type Watermark,
} from './file/watermark.ts'
import { openPairings, type Pairings } from './pairings.ts'
import { TillReports } from './till-reports.ts'
import type { Log } from '../log.ts'

/**
 * Generation of the cloud. A restored cloud has a new generation and lacks rows and tokens that this agent has (ADR
 * restored-cloud). So the agent rejects older tokens and sends all stored rows again. This resync ends when the cloud has
 * acknowledged all of these rows.
 */
interface CloudGeneration {
  /** The last accepted signed generation; undefined before the first. */
  readonly current: number | undefined
  /** Applies a signed generation with its signed time, ms. Call it inside a transaction. */
  note(generation: number, timeMs: number): void
  /**
   * Call this inside a transaction, after the key that signed the generation was revoked. The agent then accepts the
   * next signed generation, even a lower one, and sends acknowledged rows again.
   */
  distrust(): void
  /** Sends all stored rows again. Call it inside a transaction. */
  resendAll(): void
  /** Adapts the row numbers of the resync. Call it inside the transaction that renumbers the journal. */
  onRenumbered(): void
  /** The agent rejects documents with a lower generation, because they are from before a restore. */
  readonly lowest: number
  /** Makes the agent reject tokens that were issued before this time, s. Call it inside a transaction. */
  dropTokensBefore(timeS: number): void
  /** The agent rejects tokens that were issued before this time, s since 1970. */
  readonly tokensSince: number
  /**
   * The current resync: generation of the cloud, and first row to send again. Undefined if all rows are acknowledged.
   */
  readonly resync: { cloudGeneration: number; oldest: number } | undefined
  /**
   * Generation of the restored cloud. Undefined if the cloud was never restored, or until it has acknowledged all rows
   * again.
   */
  readonly resynced: number | undefined
}

const CURRENT = 'cloud_generation'
const DISTRUSTED = 'cloud_generation_doubted'
const TOKENS_SINCE = 'tokens_since_s'
/** Metadata key: first row to send again. */
const RESYNC_FROM = 'resync_from'
/** Metadata key: last row that the cloud may have lost. */
const RESYNC_UNTIL = 'resync_until'
/** Generation of a cloud that was never restored. */
const FIRST = 1

/** Opens the generation that this ledger stores. */
function openCloudGeneration(metadata: Metadata, journal: Journal): CloudGeneration {
  const read = (name: string) => {
    const value = metadata.getCached(name)
    return value === undefined ? undefined : Number(value)
  }
  const isResent = () => journal.acked >= (read(RESYNC_UNTIL) ?? 0)

  function resendAll(): void {
    metadata.set(RESYNC_FROM, String(journal.resendAll()))
    metadata.set(RESYNC_UNTIL, String(journal.head.seq))
  }

  return {
    get current() {
      return read(CURRENT)
    },
    note(generation, timeMs) {
      const known = read(CURRENT)
      if (read(DISTRUSTED) === 1) metadata.set(DISTRUSTED, '0')
      if (generation === known) return
      metadata.set(CURRENT, String(generation))
      // The first generation that the agent receives does not mean that the cloud was restored.
      if (known === undefined) return
      metadata.set(TOKENS_SINCE, String(Math.floor(timeMs / 1_000)))
      resendAll()
    },
    distrust() {
      if (read(CURRENT) !== undefined) metadata.set(DISTRUSTED, '1')
      if (journal.acked > 0) resendAll()
    },
    resendAll,
    onRenumbered() {
      // The journal deleted the acknowledged rows, so a resync covers only the unacknowledged rows.
      if (metadata.get(RESYNC_UNTIL) !== undefined) metadata.set(RESYNC_UNTIL, String(journal.head.seq))
      // Renumbered rows start at 1.
      if (metadata.get(RESYNC_FROM) !== undefined) metadata.set(RESYNC_FROM, '1')
    },
    dropTokensBefore: (timeS) => metadata.set(TOKENS_SINCE, String(timeS)),
    get lowest() {
      return read(DISTRUSTED) === 1 ? FIRST : (read(CURRENT) ?? FIRST)
    },
    get tokensSince() {
      return read(TOKENS_SINCE) ?? 0
    },
    get resync() {
      const [cloudGeneration, oldest] = [read(CURRENT), read(RESYNC_FROM)]
      return cloudGeneration === undefined || oldest === undefined || isResent()
        ? undefined
        : { cloudGeneration, oldest }
    },
    get resynced() {
      const known = read(CURRENT) ?? FIRST
      return known > FIRST && isResent() ? known : undefined
    },
  }
}

/**
 * The ledger of the agent: claims, journal and state. A promise of the ledger resolves when the change is on disk.
 *
 * A claim writes rights, counters and its journal row in one transaction. After that, the caller moves the device and
 * calls `settle`.
 *
 * `claims/` uses up rights, and `journal/` chains the rows for the cloud. `home/` stores requests and grants between
 * agents. `file/` has the database, its transactions, metadata and the watermark.
 */

interface LedgerOptions {
  file: string
  ledgerId: string
  generation: number
  onFailure(failure: LedgerFailure): void
  /** Called when new rows are durable and can be sent. */
  onAppended?: () => void
  /** Opens the file; default: `openLedgerFile`. */
  open?: OpenLedgerFile | undefined
  /** Folders of the watermark. Default: no watermark. */
  watermark?: { folders: readonly SmallFiles[]; log: Pick<Log, 'warn'> } | undefined
}

const NEEDS_STAFF: ClaimResult = { ok: false, reason: 'manual_assistance_required' }
const ALREADY_REDEEMED: ClaimResult = { ok: false, reason: 'already_redeemed' }

/** Metadata key: id that this ledger received when a re-enrolled agent adopted the ledger. */
export const LEDGER_ID_KEY = 'ledger_id'

/** Opens the ledger's file. The simulation opens the file on a simulated disk. */
export type OpenLedgerFile = (file: string) => Connection

/**
 * Opens or creates the ledger. Throws if the ledger is damaged or belongs to another enrolment, or if another process
 * uses it.
 */
export function openLedger(options: LedgerOptions): Ledger {
  const { file, ledgerId, open = openLedgerFile } = options
  const db = open(file)
  const metadata = openMetadata(db)
  const own = metadata.get(LEDGER_ID_KEY)
  if (own !== undefined && own !== ledgerId) {
    db.close()
    throw new Error(
      `${file} belongs to another enrolment because a replacement was interrupted: run untag edge enrol --replace again`,
    )
  }
  return new Ledger(db, metadata, options)
}

export class Ledger {
  readonly ledgerId: string
  /** Last row of the journal when the ledger was opened. */
  readonly openedAt: { seq: number; hash: string }
  readonly journal: Journal
  readonly claims: Claims
  readonly homeGrants: HomeGrants
  readonly homeRequests: StoredHomeRequests
  readonly metadata: Metadata
  readonly pairings: Pairings
  /** Sales, voids and returns that tills reported here. */
  readonly till: TillReports
  readonly cloudGeneration: CloudGeneration
  readonly commits: Commits
  readonly #db: Connection
  readonly #watermark: Watermark | undefined
  readonly #onAppended: (() => void) | undefined
  #generation: number
  /** The last row that was reported to the watermark and to `onAppended`. */
  #reportedSeq: number

  constructor(
    db: Connection,
    metadata: Metadata,
    { ledgerId, generation, onFailure, onAppended, watermark }: LedgerOptions,
  ) {
    this.#db = db
    this.#onAppended = onAppended
    this.#generation = Math.max(generation, Number(metadata.get('generation') ?? 0))
    this.ledgerId = ledgerId
    this.metadata = metadata
    this.journal = new Journal(db, metadata, ledgerId, this.#generation)
    this.openedAt = this.journal.head
    this.#reportedSeq = this.openedAt.seq
    this.#watermark =
      watermark && openWatermark({ ...watermark, ledgerId }, this.#position(), (seq) => this.journal.hashAt(seq))
    this.claims = new Claims(db, metadata)
    this.homeGrants = openHomeGrants(db, this.claims, this.journal)
    this.homeRequests = openStoredHomeRequests(db, this.claims)
    this.pairings = openPairings(db)
    this.till = new TillReports(db)
    this.cloudGeneration = openCloudGeneration(metadata, this.journal)
    this.commits = new Commits(db, {
      onUndone: () => this.#reload(),
      onDurable: () => this.#reportAppended(),
      onFailure,
    })
  }

  /** Increases after each restore of the ledger. */
  get generation(): number {
    return this.#generation
  }

  /**
   * True if the ledger lacks rows that were durable since the last boot, and the cloud has not detected the loss yet.
   */
  get isBehindWatermark(): boolean {
    return this.#watermark?.isAhead === true
  }

  /** Sets the watermark to the current position, after the cloud has accepted this position. */
  acceptPosition(): void {
    this.#watermark?.accept(this.#position())
  }

  /**
   * Starts this generation durably. Does nothing if the generation is not newer. `also` runs in the same transaction.
   */
  startGeneration(generation: number, also: () => void): void {
    if (generation <= this.#generation) return
    this.commits.now(() => {
      this.journal.restart(generation)
      also()
      this.cloudGeneration.onRenumbered()
    })
    this.#generation = generation
  }

  /** Claims rights and writes the event to the journal. Resolves when claim and event are durable. */
  claim(
    request: ClaimRequest,
    event: (claimed: ClaimResult & { ok: true }) => ProtectionEvent | undefined,
  ): Promise<ClaimResult> {
    return this.commits.durably(() => this.#claim(request, event))
  }

  /** Claims and confirms rights in one durable transaction, if no device has to move. */
  claimAndConfirm(request: ClaimRequest): Promise<ClaimResult> {
    return this.commits.durably(() => {
      const claimed = this.claims.claim(request)
      if (!claimed.ok) return claimed
      const { redemptionId, nowMs: atMs } = request
      this.journal.append({ atMs, ...claimEvidence(request, claimed.ordinals) })
      this.recordOutcome(redemptionId, 'confirmed', atMs)
      return claimed
    })
  }

  /** Stores the outcome of a claim, and its event. */
  settle(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): Promise<void> {
    return this.commits.durably(() => this.recordOutcome(redemptionId, outcome, atMs, event))
  }

  /** Like `settle`, for a caller inside a transaction. */
  recordOutcome(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void {
    if (!this.claims.settle(redemptionId, outcome)) return
    const seq = this.journal.append({ atMs, ...outcomeEvidence(redemptionId, outcome), ...(event && { event }) })
    if (outcome === 'unknown') this.claims.unresolved.add(redemptionId, seq)
    this.homeRequests.noteOutcome(redemptionId, outcome)
  }

  /** Adds a journal row without a claim. */
  record(body: JournalBody): Promise<void> {
    return this.commits.durably(() => void this.journal.append(body))
  }

  close(): void {
    this.commits.close()
    if (!this.#db.open) return
    try {
      this.commits.now(() => this.journal.storeAcked())
    } catch {
      // After the next start the agent sends some rows again.
    }
    this.#db.close()
  }

  #claim(
    claimRequest: ClaimRequest,
    event: (claimed: ClaimResult & { ok: true }) => ProtectionEvent | undefined,
  ): ClaimResult {
    const receipt = claimRequest.receipt ?? this.claims.receiptRightsOf(claimRequest.nonce)
    const request = Object.assign({ receipt }, claimRequest, { receipt })
    const { redemptionId, homeRequestId, candidates, nowMs: atMs } = request
    if (request.isStillValid?.() === false) return NEEDS_STAFF
    // If the home request is not open, another claim used the request, or the agent abandoned the request after a
    // timeout.
    if (homeRequestId !== undefined && !this.homeRequests.isOpen(homeRequestId)) return ALREADY_REDEEMED
    const claimed = this.claims.claim(request)
    if (!claimed.ok) return claimed
    if (homeRequestId !== undefined)
      this.homeRequests.noteClaim(homeRequestId, redemptionId, homeRequestId === redemptionId ? candidates : undefined)
    const claimEvent = event(claimed)
    const seq = this.journal.append({
      atMs,
      ...claimEvidence(request, claimed.ordinals),
      ...(claimEvent && { event: claimEvent }),
    })
    if (request.isolated) this.claims.noteIsolatedRow(seq)
    // A later token of the cloud may release the tag again, once the cloud knows this release.
    if (request.source === 'item') this.claims.unresolved.add(redemptionId, seq)
    return claimed
  }

  #position(): Position {
    return { generation: this.#generation, ...this.journal.head }
  }

  /** Reads the state from disk again, after a transaction was rolled back. */
  #reload(): void {
    this.journal.reload()
    this.till.reload()
    this.metadata.clearCache()
  }

  #reportAppended(): void {
    const { seq } = this.journal.head
    if (seq === this.#reportedSeq) return
    this.#reportedSeq = seq
    this.#watermark?.note(this.#position())
    this.#onAppended?.()
  }
}
