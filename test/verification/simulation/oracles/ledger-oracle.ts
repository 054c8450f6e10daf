import type { Database as Connection, Statement } from 'better-sqlite3'
import { compareVersions } from '../../../../policy/documents/store-documents.ts'
import type { Evidence, JournalBody } from '../../../../policy/journal.ts'
import type { Core } from '../virtual/core.ts'

/**
 * Checks every durable commit of an agent's ledger. Its rows must survive each crash, and each right may be used once.
 */
export interface LedgerOracle {
  /** Reads the rows of a durable commit. */
  committed(connection: Connection): void
  /**
   * Called when the agent's process has ended. A later process must not send commands for the claims that this process
   * left open.
   */
  processEnded(): void
  /** Called when the agent has sent a release command to a device. */
  released(deviceId: string): void
  /** Durable rows of the ledger. */
  readonly rows: readonly LedgerRow[]
  /** Acknowledged rows from before the rows got new numbers. */
  readonly formerRows: readonly LedgerRow[]
  readonly generation: number
  /** Number of times that the rows of the ledger got new numbers. */
  readonly restarts: number
  /**
   * Called before the next process starts with an old copy of the ledger. `head` is the number of the last row in the
   * copy.
   */
  ledgerRestored(head: number, isNoticed?: boolean): void
  /** Called before the next process starts with the same ledger under another identity. */
  reEnrolled(): void
  /** Number of the last acknowledged row, according to the agent. */
  readonly acked: number
  /** Claims without an outcome. */
  readonly unsettled: readonly string[]
}

/** Facts that the checks need from outside the ledger. */
export interface LedgerFacts {
  /** Expiry of each token by nonce, s. */
  tokenEnds: ReadonlyMap<string, number>
  /** For cancelled purchases: the position in the deny list, by receipt id (hex). */
  denied: ReadonlyMap<string, number>
  /** True if the agent's trusted time must be correct: no clock fault in the cloud, and signed time since boot. */
  isClockSure(): boolean
  /** Called for each durable row. */
  onRow?(row: { seq: number; body: JournalBody }): void
  /** If a restore lost the token, returns the cloud generation that granted it. Otherwise returns undefined. */
  lostWith(nonce: string): number | undefined
}

export interface LedgerRow {
  seq: number
  hash: string
  body: JournalBody
}

type Claim = Extract<Evidence, { kind: 'claim' }>

interface Row {
  seq: number
  hash: string
  body: string
}

/** A connection with its prepared statements. */
interface WatchedConnection {
  connection: Connection
  added: Statement<[number], Row>
  mark: Statement<[string], { value: string }>
  policy: Statement<[], { epoch: number; ver: number }>
}

interface UsedRight {
  redemptionId: string
  outcome: string | null
  operator: boolean
}

/** Maximum error of a device's clock, ms (ADR trusted-time). */
const GUARD_MS = 60_000
/** Time in which a restored ledger needs the cloud, less a reserve for clock differences, ms (ADR agents). */
const ONLINE_ONLY_MS = 9 * 60_000
/** Maximum number of unacknowledged rows. Runs without faults stay far below this number. */
const JOURNAL_LIMIT = 5_000

/** Creates the oracle for the ledger of one agent. */
export function ledgerOracle(name: string, core: Core, facts: LedgerFacts): LedgerOracle {
  return new Ledger(name, core, facts)
}

class Ledger implements LedgerOracle {
  readonly #name: string
  readonly #core: Core
  readonly #facts: LedgerFacts
  readonly rows: LedgerRow[] = []
  readonly formerRows: LedgerRow[] = []
  #generation = 1
  #restarts = 0
  #restoredHead: number | undefined
  /** True if the watermark of the machine showed that the ledger is an old copy. */
  #isNoticed = false
  /**
   * Rights whose use was recorded in rows that a restore lost. The agent may use these rights again only with the
   * cloud.
   */
  readonly #lost = new Set<string>()
  #isReEnrolled = false
  /** True time at which the cloud reported the rollback to the agent, ms. */
  #rollbackKnownMs: number | undefined
  /** True time at which the cloud reported the fork to the agent, ms. */
  #forkKnownMs: number | undefined
  readonly #used = new Map<string, UsedRight[]>()
  readonly #byRedemption = new Map<string, UsedRight[]>()
  /** Claims of the current process that are open and have no command yet, by device. */
  readonly #open = new Map<string, string[]>()
  readonly #unsettled = new Set<string>()
  #connection: WatchedConnection | undefined
  #acked = 0
  #denySeq = 0
  /** Generation of the cloud according to the agent, and the time of the last change of this generation, ms. */
  #cloudGeneration = { generation: 1, atMs: 0 }
  #version = { epoch: 0, ver: 0 }

  constructor(name: string, core: Core, facts: LedgerFacts) {
    this.#name = name
    this.#core = core
    this.#facts = facts
  }

  get generation(): number {
    return this.#generation
  }

  get restarts(): number {
    return this.#restarts
  }

  ledgerRestored(head: number, noticed: boolean = false): void {
    ;[this.#restoredHead, this.#isNoticed] = [head, noticed]
  }

  readonly reEnrolled = (): void => {
    this.#isReEnrolled = true
  }

  get unsettled(): readonly string[] {
    return [...this.#unsettled]
  }

  get acked(): number {
    return this.#acked
  }

  readonly committed = (connection: Connection): void => {
    const { added, mark, policy } = this.#watch(connection)
    const current = this.#generationOf(mark)
    if (current !== this.#generation) {
      this.#continueWithRows(added.all(0))
      // The new generation shows that the cloud knows about the restore.
      if (current > this.#generation) this.#lost.clear()
      this.#generation = current
      this.#rollbackKnownMs = this.#core.scheduler.nowMs
    }
    const before = this.rows.at(-1)?.seq ?? 0
    for (const { seq, hash, body: text } of added.all(before)) {
      const body = JSON.parse(text) as JournalBody
      const previous = this.rows.at(-1)?.seq
      if (previous !== undefined && seq !== previous + 1)
        this.#core.violate('I5', `${this.#name}: row ${seq} follows row ${previous}`)
      this.rows.push({ seq, hash, body })
      this.#facts.onRow?.({ seq, body })
      this.#core.trace.add(this.#name, `row ${seq} ${describe(body)}`)
      if (body.evidence?.kind === 'claim') this.#takeClaim(body.evidence, body)
      if (body.evidence?.kind === 'outcome') this.#takeOutcome(body.evidence.redemptionId, body.evidence.outcome)
    }
    // The newest row was written just now, so its time is the agent's present trusted time.
    const newest = this.rows.at(-1)
    if (
      newest !== undefined &&
      newest.seq > before &&
      this.#facts.isClockSure() &&
      Math.abs(newest.body.atMs - this.#core.scheduler.nowMs) > GUARD_MS
    ) {
      this.#core.violate(
        'I8',
        `the trusted time of ${this.#name} is wrong by ${newest.body.atMs - this.#core.scheduler.nowMs} ms`,
      )
    }
    const cloudGeneration = Number(mark.get('cloud_generation')?.value ?? 1)
    if (cloudGeneration !== this.#cloudGeneration.generation)
      this.#cloudGeneration = { generation: cloudGeneration, atMs: this.#core.scheduler.nowMs }
    this.#forkKnownMs =
      mark.get('forked')?.value === '1' ? (this.#forkKnownMs ?? this.#core.scheduler.nowMs) : undefined
    this.#acked = Number(mark.get('acked')?.value ?? 0)
    this.#denySeq = Math.max(this.#denySeq, Number(mark.get('deny_seq')?.value ?? 0))
    const now = policy.get() ?? { epoch: 0, ver: 0 }
    if (compareVersions(now, this.#version) < 0)
      this.#core.violate(
        'I15',
        `${this.#name} went back from policy ${this.#version.epoch}/${this.#version.ver} to ${now.epoch}/${now.ver}`,
      )
    this.#version = now
    const head = this.rows.at(-1)?.seq ?? 0
    if (this.rows.length > 0 && this.#acked > head)
      this.#core.violate('I4', `${this.#name}: row ${this.#acked} is acknowledged, but the last row is ${head}`)
    if (head - this.#acked > JOURNAL_LIMIT)
      this.#core.violate('I13', `${this.#name}: ${head - this.#acked} rows are not acknowledged`)
  }

  readonly processEnded = (): void => {
    this.#open.clear()
  }

  released(deviceId: string): void {
    const waiting = this.#open.get(deviceId) ?? []
    const redemptionId = waiting.shift()
    if (redemptionId === undefined) {
      const any = this.rows.some(
        (row) => row.body.evidence?.kind === 'claim' && row.body.evidence.deviceId === deviceId,
      )
      this.#core.violate(any ? 'I3' : 'I2', `${this.#name}: ${deviceId} was released without a durable open claim`)
    }
  }

  /** Prepares statements for a new connection and checks that all durable rows still exist. */
  #watch(connection: Connection): WatchedConnection {
    if (this.#connection?.connection === connection) return this.#connection
    this.#connection = {
      connection,
      added: connection.prepare<[number], Row>('SELECT seq, hash, body FROM journal WHERE seq > ? ORDER BY seq'),
      mark: connection.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?'),
      policy: connection.prepare<[], { epoch: number; ver: number }>(
        "SELECT epoch, ver FROM document WHERE kind = 'policy'",
      ),
    }
    const kept = connection.prepare<[], Row>('SELECT seq, hash, body FROM journal ORDER BY seq').all()
    if (this.#isReEnrolled) this.#continueAfterReEnrolment(kept)
    if (this.#restoredHead !== undefined) this.#applyRestore(kept.filter(({ seq }) => seq <= (this.#restoredHead ?? 0)))
    // The first commit of this process may have given the rows new numbers.
    if (this.#generationOf(this.#connection.mark) !== this.#generation) return this.#connection
    const bySeq = new Map(kept.map((row) => [row.seq, row.hash]))
    const first = kept[0]?.seq ?? 1
    const missing = this.rows.find((row) => row.seq >= first && bySeq.get(row.seq) !== row.hash)
    if (missing)
      this.#core.violate(
        'I4',
        `${this.#name}: the durable row ${missing.seq} ${bySeq.has(missing.seq) ? 'has changed' : 'is gone'}`,
      )
    return this.#connection
  }

  #generationOf(mark: WatchedConnection['mark']) {
    return Number(mark.get('generation')?.value ?? this.#generation)
  }

  /** Replaces the recorded rows by the rows with new numbers. */
  #restartRows(kept: readonly Row[]): void {
    this.#restarts++
    this.rows.splice(
      0,
      this.rows.length,
      ...kept.map(({ seq, hash, body }) => ({ seq, hash, body: JSON.parse(body) as JournalBody })),
    )
  }

  /**
   * Handles new row numbers. Acknowledged rows move to `formerRows`, and each other row must exist under a new number.
   */
  #continueWithRows(kept: readonly Row[]): void {
    this.formerRows.push(...this.rows.filter((row) => row.seq <= this.#acked))
    const bodies = new Set(kept.map(({ body }) => body))
    const lost = this.rows.find((row) => row.seq > this.#acked && !bodies.has(JSON.stringify(row.body)))
    if (lost) this.#core.violate('I4', `${this.#name}: row ${lost.seq} was not acknowledged and has no new number`)
    const known = new Set(this.rows.map(({ body }) => JSON.stringify(body)))
    this.#restartRows(kept.filter(({ body }) => known.has(body)))
  }

  /** Handles a re-enrolment. Used rights stay used, and unacknowledged rows get new numbers. */
  #continueAfterReEnrolment(kept: readonly Row[]): void {
    this.#isReEnrolled = false
    this.#continueWithRows(kept)
    this.#generation = 1
    this.#lost.clear()
    ;[this.#denySeq, this.#version, this.#cloudGeneration, this.#acked] = [
      0,
      { epoch: 0, ver: 0 },
      { generation: 1, atMs: 0 },
      0,
    ]
  }

  /** Handles a restore. Rights whose use is missing in the copy count as unused until the cloud reports the use. */
  #applyRestore(kept: readonly Row[]): void {
    this.#restoredHead = undefined
    const before = [...this.#used].flatMap(([key, uses]) =>
      uses.some(({ outcome }) => outcome !== 'failed') ? [key] : [],
    )
    this.#restartRows(kept)
    this.#used.clear()
    this.#byRedemption.clear()
    this.#unsettled.clear()
    ;[this.#denySeq, this.#version, this.#cloudGeneration, this.#acked] = [
      0,
      { epoch: 0, ver: 0 },
      { generation: 1, atMs: 0 },
      0,
    ]
    for (const { body } of this.rows) this.#replay(body)
    this.#lost.clear()
    if (this.#isNoticed) for (const key of before) if (!this.#used.has(key)) this.#lost.add(key)
  }

  /** Updates the recorded state for a row that was already checked. */
  #replay({ evidence }: JournalBody): void {
    if (evidence?.kind === 'outcome') this.#takeOutcome(evidence.redemptionId, evidence.outcome)
    if (evidence?.kind !== 'claim') return
    const { redemptionId, nonce, rightClass, ordinals } = evidence
    for (const ordinal of ordinals)
      this.#note(`${nonce}/${rightClass}/${ordinal}`, redemptionId, evidence.operatorId !== undefined)
    this.#unsettled.add(redemptionId)
  }

  #takeClaim(claim: Claim, body: JournalBody): void {
    const { redemptionId, nonce, source, rightClass, ordinals, deviceId } = claim
    for (const ordinal of ordinals) {
      const key = `${nonce}/${rightClass}/${ordinal}`
      const before = this.#used.get(key) ?? []
      if (this.#lost.has(key))
        this.#core.violate(
          'I1',
          `${this.#name}: ${key} was used in rows that were lost when the ledger was restored, and again by ${redemptionId}`,
        )
      const isFree = before.every(
        (b) =>
          source === 'receipt' &&
          (b.outcome === 'failed' || (b.outcome === 'unknown' && claim.operatorId !== undefined)),
      )
      if (!isFree)
        this.#core.violate(
          'I1',
          `${this.#name}: ${key} was used by ${before.map((b) => `${b.redemptionId} (${b.outcome ?? 'open'})`).join(', ')} and again by ${redemptionId}`,
        )
      this.#note(key, redemptionId, claim.operatorId !== undefined)
    }
    const deniedAs = source === 'receipt' ? this.#facts.denied.get(nonce) : undefined
    if (deniedAs !== undefined && deniedAs <= this.#denySeq)
      this.#core.violate(
        'I7',
        `${this.#name} honours the receipt ${nonce} of a cancelled purchase, and has denial ${deniedAs}`,
      )
    const exp = source === 'token' ? this.#facts.tokenEnds.get(nonce) : undefined
    // In trusted time, the claim must be earlier than the end of the token.
    if (exp !== undefined && body.atMs > exp * 1_000 + 1_000)
      this.#core.violate('I8', `${this.#name}: token ${nonce} ended ${body.atMs - exp * 1_000} ms before it was used`)
    const late = exp === undefined ? 0 : this.#core.scheduler.nowMs - exp * 1_000
    if (late > GUARD_MS && this.#facts.isClockSure())
      this.#core.violate('I8', `${this.#name}: token ${nonce} had ended for ${late} ms when it was used`)
    const lostWith = source === 'token' ? this.#facts.lostWith(nonce) : undefined
    if (
      lostWith !== undefined &&
      this.#cloudGeneration.generation > lostWith &&
      this.#cloudGeneration.atMs < this.#core.scheduler.nowMs
    ) {
      this.#core.violate(
        'I9',
        `${this.#name} uses the token ${nonce} of a lost cloud generation, but has already stored the new generation`,
      )
    }
    const isAlone = source === 'receipt' && body.event?.type === 'protection.device.offline'
    const isUnsure =
      this.#rollbackKnownMs !== undefined &&
      this.#core.scheduler.nowMs > this.#rollbackKnownMs &&
      this.#core.scheduler.nowMs - this.#rollbackKnownMs < ONLINE_ONLY_MS
    if (isAlone && this.#forkKnownMs !== undefined && this.#core.scheduler.nowMs > this.#forkKnownMs)
      this.#core.violate('I9', `${this.#name} knows of its fork but honours the receipt ${nonce} alone`)
    if (isAlone && isUnsure && this.#facts.isClockSure())
      this.#core.violate('I9', `${this.#name} knows of its restore but honours the receipt ${nonce} alone`)
    this.#unsettled.add(redemptionId)
    this.#open.set(deviceId, [...(this.#open.get(deviceId) ?? []), redemptionId])
  }

  /** Records a use of the right. After an outcome `failed`, the right is free again. */
  #note(key: string, redemptionId: string, operator: boolean): void {
    const right = { redemptionId, outcome: null, operator }
    this.#used.set(key, [...(this.#used.get(key) ?? []), right])
    this.#byRedemption.set(redemptionId, [...(this.#byRedemption.get(redemptionId) ?? []), right])
  }

  #takeOutcome(redemptionId: string, outcome: string): void {
    for (const right of this.#byRedemption.get(redemptionId) ?? []) right.outcome ??= outcome
    this.#unsettled.delete(redemptionId)
    for (const [deviceId, waiting] of this.#open)
      this.#open.set(
        deviceId,
        waiting.filter((id) => id !== redemptionId),
      )
  }
}

function describe({ evidence, event }: JournalBody): string {
  if (!evidence) return event?.type ?? 'nothing'
  if (evidence.kind === 'void') return `void ${evidence.nonce.slice(0, 6)}`
  if (evidence.kind === 'alarm_handled') return `alarm ${evidence.eventId.slice(-6)} ${evidence.step}`
  if (evidence.kind === 'sale') return `sale ${evidence.sale.saleId}`
  if (evidence.kind === 'sale_void') return `void of sale ${evidence.saleId}`
  if (evidence.kind === 'sale_return') return `return ${evidence.return.returnId}`
  if (evidence.kind === 'sale_piece') return `piece of sale ${evidence.sale.slice(0, 6)} for ${evidence.epc}`
  const id = evidence.redemptionId.slice(-6)
  if (evidence.kind === 'outcome' || evidence.kind === 'delegation_returned')
    return `${evidence.kind} ${id} ${evidence.outcome}`
  if (evidence.kind === 'delegated')
    return `delegated ${id} of ${evidence.nonce.slice(0, 6)} ${evidence.rightClass} ${evidence.ordinals.join(',')} to ${evidence.agentId.slice(-6)}`
  return `claim ${id} of ${evidence.source} ${evidence.nonce.slice(0, 6)} ${evidence.rightClass} ${evidence.ordinals.join(',')}`
}
