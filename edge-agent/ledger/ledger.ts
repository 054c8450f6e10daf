import type { Database as Connection } from 'better-sqlite3'
import type { ProtectionEvent } from '../../policy/events.ts'
import type { Evidence, JournalBody } from '../../policy/journal.ts'
import type { Outcome } from '../../policy/vocabulary.ts'
import { openClaims, OVERRIDE_ID, type Claimed, type ClaimRequest, type Claims } from './claims/claims.ts'
import { commits, type Commits, type LedgerFailure } from './file/commit.ts'
import { openLedgerFile } from './file/database.ts'
import { openHomeAsks, type HomeAsks } from './home/home-asks.ts'
import { openHomeGrants, type HomeGrants } from './home/home-grants.ts'
import { openJournal, type Journal } from './journal/journal.ts'
import { openCloudGeneration, RESYNC_FROM, RESYNC_UNTIL, type CloudGeneration } from './journal/cloud-generation.ts'
import { openMarks, type Marks } from './file/marks.ts'
import { openPairings, type Pairings } from './pairings.ts'
import { openWatermark, type RuntimeFiles } from './file/watermark.ts'
import type { Log } from '../log.ts'

/**
 *   claim ── one durable transaction: rights, counters, journal row ──▶ (only now) the actuator ──▶ settle
 *
 * The agent's memory. What it has said to be done is on the disk.
 */
export interface Ledger {
  readonly ledgerId: string
  /** Raised when the ledger was put back, so that nothing of before is taken for something of now. */
  readonly generation: number
  /** The end of the journal when it was opened. */
  readonly openedAt: { seq: number; hash: string }
  /** It lacks rows that were durable since the machine was booted, and the cloud has not seen that yet. */
  readonly isBehindWatermark: boolean
  /** Goes on from here with the cloud's consent. */
  acceptPosition(): void
  /** Goes on as this generation, durably; nothing when it is not newer. */
  adopt(generation: number, also: () => void): void
  readonly journal: Journal
  readonly claims: Claims
  readonly homeGrants: HomeGrants
  readonly homeAsks: HomeAsks
  readonly marks: Marks
  readonly pairings: Pairings
  readonly cloudGeneration: CloudGeneration
  readonly commits: Commits
  /** Uses rights up, with the event that goes with it. Resolves when that is durable. */
  claim(
    request: ClaimRequest,
    event: (claimed: Claimed & { ok: true }) => ProtectionEvent | undefined,
  ): Promise<Claimed>
  /** Uses rights up for which nothing is to move: claimed and confirmed in one durable transaction. */
  useUp(request: ClaimRequest): Promise<Claimed>
  /** Writes down what became of a claim, with its event. */
  settle(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): Promise<void>
  /** The same inside a transaction. */
  noteOutcome(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void
  /** Writes down something that used nothing up. */
  record(body: JournalBody): Promise<void>
  close(): void
}

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
export function openLedger({
  file,
  ledgerId,
  generation,
  onFailure,
  onGrown,
  open = openLedgerFile,
  runtime,
}: LedgerOptions): Ledger {
  const db = open(file)
  const marks = openMarks(db)
  const own = marks.get(LEDGER_ID)
  if (own !== undefined && own !== ledgerId) {
    db.close()
    throw new Error(`${file} belongs to another enrolment, which was not ended: run untag edge enrol --replace again`)
  }
  let current = Math.max(generation, Number(marks.get('generation') ?? 0))
  const journal = openJournal(db, ledgerId, current)
  const openedAt = journal.head
  const position = () => ({ generation: current, ...journal.head })
  const watermark = runtime && openWatermark({ ...runtime, ledgerId }, position(), journal.hashAt)
  const claims = openClaims(db)
  const homeGrants = openHomeGrants(db, claims, journal)
  const homeAsks = openHomeAsks(db, claims)
  let told = journal.head.seq

  function noteOutcome(redemptionId: string, outcome: Outcome, atMs: number, event?: ProtectionEvent): void {
    if (!claims.settle(redemptionId, outcome)) return
    const seq = journal.append({ atMs, ...outcomeOf(redemptionId, outcome), ...(event && { event }) })
    if (outcome === 'unknown') claims.unknown.note(redemptionId, seq)
    homeAsks.settled(redemptionId, outcome)
  }

  const work = commits(db, {
    onUndone() {
      journal.reload()
      marks.reload()
    },
    onFailure,
    onDurable() {
      if (journal.head.seq === told) return
      told = journal.head.seq
      watermark?.note(position())
      onGrown?.()
    },
  })
  return {
    ledgerId,
    get generation() {
      return current
    },
    openedAt,
    get isBehindWatermark() {
      return watermark?.isAhead === true
    },
    acceptPosition: () => watermark?.accept(position()),
    adopt(next, also) {
      if (next <= current) return
      work.now(() => {
        journal.restart(next)
        also()
        // Rows that were acknowledged are no longer here: what is told again to a restored cloud is what waits anyway.
        if (marks.get(RESYNC_UNTIL) !== undefined) marks.set(RESYNC_UNTIL, String(journal.head.seq))
        // Their numbers begin anew: the former first may be one in the middle now.
        if (marks.get(RESYNC_FROM) !== undefined) marks.set(RESYNC_FROM, '1')
      })
      current = next
    },
    journal,
    claims,
    homeGrants,
    homeAsks,
    marks,
    pairings: openPairings(db),
    cloudGeneration: openCloudGeneration(marks, journal),
    commits: work,
    claim: (asked, event) =>
      work.durably(() => {
        const request = { ...asked, receipt: asked.receipt ?? claims.receiptOf(asked.nonce) }
        if (request.holds?.() === false) return FOR_STAFF
        // Another request has gone on with what the home gave under this id; or it took too long, and the home is told that nobody does.
        if (request.homeAsk !== undefined && !homeAsks.isOpen(request.homeAsk)) return USED
        const claimed = claims.claim(request)
        if (!claimed.ok) return claimed
        if (request.homeAsk !== undefined)
          homeAsks.claimed(
            request.homeAsk,
            request.redemptionId,
            request.homeAsk === request.redemptionId ? request.candidates : undefined,
          )
        const told = event(claimed)
        const seq = journal.append({
          atMs: request.nowMs,
          ...evidenceOf(request, claimed.ordinals),
          ...(told && { event: told }),
        })
        if (request.isolated) claims.countedIn(seq)
        return claimed
      }),
    useUp: (request) =>
      work.durably(() => {
        const claimed = claims.claim(request)
        if (!claimed.ok) return claimed
        const { redemptionId, nowMs: atMs } = request
        journal.append({ atMs, ...evidenceOf(request, claimed.ordinals) })
        noteOutcome(redemptionId, 'confirmed', atMs)
        return claimed
      }),
    settle: (redemptionId, outcome, atMs, event) => work.durably(() => noteOutcome(redemptionId, outcome, atMs, event)),
    noteOutcome,
    record: (body) => work.durably(() => void journal.append(body)),
    close() {
      work.close()
      db.close()
    },
  }
}

/** Which rights of a receipt a token's claim has used, for a cloud that should have forgotten the token. */
function receiptOf(
  receipt: ClaimRequest['receipt'],
  claimed: readonly number[],
): { receipt?: { cti: string; ordinals: number[] } } {
  const ordinals = claimed.flatMap((step) => receipt?.ordinals[step] ?? [])
  return receipt && ordinals.length > 0 && ordinals.length === claimed.length
    ? { receipt: { cti: receipt.cti, ordinals } }
    : {}
}

function evidenceOf(
  { redemptionId, nonce, source, rightClass, deviceId, operatorId, receipt }: ClaimRequest,
  ordinals: number[],
): { evidence?: Evidence } {
  if (source === 'override') return {}
  return {
    evidence: {
      kind: 'claim',
      redemptionId,
      nonce,
      source,
      rightClass,
      ordinals,
      deviceId,
      ...(operatorId !== undefined && { operatorId }),
      ...receiptOf(receipt, ordinals),
    },
  }
}

/** What a journal row says of an outcome: nothing of an override, which used no right up. */
export function outcomeOf(redemptionId: string, outcome: Outcome): { evidence?: Evidence } {
  return redemptionId.startsWith(`${OVERRIDE_ID}_`) ? {} : { evidence: { kind: 'outcome', redemptionId, outcome } }
}
