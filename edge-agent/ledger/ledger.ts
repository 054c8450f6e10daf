import type { Database as Connection } from 'better-sqlite3'
import type { ProtectionEvent } from '../../policy/protection-events.ts'
import type { JournalBody } from '../../policy/journal.ts'
import type { Outcome } from '../../policy/vocabulary.ts'
import { evidenceOf, outcomeOf } from './claims/claim-evidence.ts'
import type { Claimed, ClaimRequest } from './claims/claim-request.ts'
import { Claims } from './claims/claims.ts'
import type { Commits, LedgerFailure } from './file/commit.ts'
import { openLedgerFile } from './file/ledger-file.ts'
import { commits } from './file/group-commit.ts'
import { openHomeAsks, type HomeAsks } from './home/stored-home-requests.ts'
import { openHomeGrants, type HomeGrants } from './home/home-grants.ts'
import { Journal } from './journal/journal.ts'
import { openCloudGeneration, type CloudGeneration } from './journal/cloud-generation.ts'
import { openMarks, type Marks } from './file/metadata.ts'
import { openPairings, type Pairings } from './pairings.ts'
import { openWatermark, type Position, type RuntimeFiles, type Watermark } from './file/watermark.ts'
import type { Log } from '../log.ts'

/**
 *   claim ── one durable transaction: rights, counters, journal row ──▶ (only now) the actuator ──▶ settle
 *
 * The agent's memory. What it has said to be done is on the disk.
 *
 * `claims/` uses up rights, `journal/` chains the rows for the cloud, `home/` keeps requests and grants between agents, `file/` holds the
 * database, its transactions, small marks and the watermark.
 */

export interface LedgerOptions {
  file: string
  ledgerId: string
  generation: number
  onFailure(failure: LedgerFailure): void
  /** The journal has grown, and that is on the disk: there is something to tell the cloud. */
  onGrown?: () => void
  /** How the file is opened; by default the real way. */
  open?: OpenLedgerFile | undefined
  /** Where the watermark is kept; by default nowhere. */
  runtime?: { files: RuntimeFiles; log: Pick<Log, 'warn'> } | undefined
}

const FOR_STAFF: Claimed = { ok: false, reason: 'manual_assistance_required' }
const USED: Claimed = { ok: false, reason: 'already_redeemed' }

/** Whose the ledger is, once it has gone over to another identity. */
export const LEDGER_ID = 'ledger_id'

/** Opens the ledger's file; the simulated shop has disks of its own. */
export type OpenLedgerFile = (file: string) => Connection

/** Opens or makes the ledger, with FULL durability read back. Throws when it is damaged or another process has it. */
export function openLedger(options: LedgerOptions): Ledger {
  const { file, ledgerId, open = openLedgerFile } = options
  const db = open(file)
  const marks = openMarks(db)
  const own = marks.get(LEDGER_ID)
  if (own !== undefined && own !== ledgerId) {
    db.close()
    throw new Error(`${file} belongs to another enrolment, which was not ended: run untag edge enrol --replace again`)
  }
  return new Ledger(db, marks, options)
}

export class Ledger {
  readonly ledgerId: string
  /** The end of the journal when it was opened. */
  readonly openedAt: { seq: number; hash: string }
  readonly journal: Journal
  readonly claims: Claims
  readonly homeGrants: HomeGrants
  readonly homeAsks: HomeAsks
  readonly marks: Marks
  readonly pairings: Pairings
  readonly cloudGeneration: CloudGeneration
  readonly commits: Commits
  readonly #db: Connection
  readonly #watermark: Watermark | undefined
  readonly #onGrown: (() => void) | undefined
  #generation: number
  /** The last row that was reported to the watermark and to `onGrown`. */
  #toldSeq: number

  constructor(db: Connection, marks: Marks, { ledgerId, generation, onFailure, onGrown, runtime }: LedgerOptions) {
    this.#db = db
    this.#onGrown = onGrown
    this.#generation = Math.max(generation, Number(marks.get('generation') ?? 0))
    this.ledgerId = ledgerId
    this.marks = marks
    this.journal = new Journal(db, marks, ledgerId, this.#generation)
    this.openedAt = this.journal.head
    this.#toldSeq = this.openedAt.seq
    this.#watermark =
      runtime && openWatermark({ ...runtime, ledgerId }, this.#position(), (seq) => this.journal.hashAt(seq))
    this.claims = new Claims(db, marks)
    this.homeGrants = openHomeGrants(db, this.claims, this.journal)
    this.homeAsks = openHomeAsks(db, this.claims)
    this.pairings = openPairings(db)
    this.cloudGeneration = openCloudGeneration(marks, this.journal)
    this.commits = commits(db, {
      onUndone: () => this.#reload(),
      onDurable: () => this.#tellGrown(),
      onFailure,
    })
  }

  /** Raised when the ledger was put back, so that nothing of before is taken for something of now. */
  get generation(): number {
    return this.#generation
  }

  /** It lacks rows that were durable since the machine was booted, and the cloud has not seen that yet. */
  get isBehindWatermark(): boolean {
    return this.#watermark?.isAhead === true
  }

  /** Goes on from here with the cloud's consent. */
  acceptPosition(): void {
    this.#watermark?.accept(this.#position())
  }

  /** Goes on as this generation, durably; nothing when it is not newer. */
  adopt(generation: number, also: () => void): void {
    if (generation <= this.#generation) return
    this.commits.now(() => {
      this.journal.restart(generation)
      also()
      this.cloudGeneration.renumbered()
    })
    this.#generation = generation
  }

  /** Uses rights up, with the event that goes with it. Resolves when that is durable. */
  claim(
    request: ClaimRequest,
    event: (claimed: Claimed & { ok: true }) => ProtectionEvent | undefined,
  ): Promise<Claimed> {
    return this.commits.durably(() => this.#claim(request, event))
  }

  /** Uses rights up for which nothing is to move: claimed and confirmed in one durable transaction. */
  useUp(request: ClaimRequest): Promise<Claimed> {
    return this.commits.durably(() => {
      const claimed = this.claims.claim(request)
      if (!claimed.ok) return claimed
      const { redemptionId, nowMs: atMs } = request
      this.journal.append({ atMs, ...evidenceOf(request, claimed.ordinals) })
      this.noteOutcome(redemptionId, 'confirmed', atMs)
      return claimed
    })
  }

  /** Writes down what became of a claim, with its event. */
  settle(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): Promise<void> {
    return this.commits.durably(() => this.noteOutcome(redemptionId, outcome, atMs, event))
  }

  /** The same inside a transaction. */
  noteOutcome(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void {
    if (!this.claims.settle(redemptionId, outcome)) return
    const seq = this.journal.append({ atMs, ...outcomeOf(redemptionId, outcome), ...(event && { event }) })
    if (outcome === 'unknown') this.claims.unknown.note(redemptionId, seq)
    this.homeAsks.settled(redemptionId, outcome)
  }

  /** Writes down something that used nothing up. */
  record(body: JournalBody): Promise<void> {
    return this.commits.durably(() => void this.journal.append(body))
  }

  close(): void {
    this.commits.close()
    this.#db.close()
  }

  #claim(asked: ClaimRequest, event: (claimed: Claimed & { ok: true }) => ProtectionEvent | undefined): Claimed {
    const request = { ...asked, receipt: asked.receipt ?? this.claims.receiptOf(asked.nonce) }
    const { redemptionId, homeAsk, candidates, nowMs: atMs } = request
    if (request.holds?.() === false) return FOR_STAFF
    // Another request has gone on with what the home gave under this id; or it took too long, and the home is told that nobody does.
    if (homeAsk !== undefined && !this.homeAsks.isOpen(homeAsk)) return USED
    const claimed = this.claims.claim(request)
    if (!claimed.ok) return claimed
    if (homeAsk !== undefined)
      this.homeAsks.claimed(homeAsk, redemptionId, homeAsk === redemptionId ? candidates : undefined)
    const told = event(claimed)
    const seq = this.journal.append({ atMs, ...evidenceOf(request, claimed.ordinals), ...(told && { event: told }) })
    if (request.isolated) this.claims.countedIn(seq)
    return claimed
  }

  #position(): Position {
    return { generation: this.#generation, ...this.journal.head }
  }

  /** A transaction was undone. */
  #reload(): void {
    this.journal.reload()
    this.marks.reload()
  }

  #tellGrown(): void {
    const { seq } = this.journal.head
    if (seq === this.#toldSeq) return
    this.#toldSeq = seq
    this.#watermark?.note(this.#position())
    this.#onGrown?.()
  }
}
