import type { Database as Connection, Statement } from 'better-sqlite3'
import { compareVersions } from '../../../policy/documents/store-documents.ts'
import type { Evidence, JournalBody } from '../../../policy/journal.ts'
import type { Core } from '../virtual/core.ts'

/**
 * What an agent's ledger has ever made durable, known from outside: it watches every commit and never forgets.
 * What was durable must still be there after any crash, and each right is used once.
 */
export interface LedgerOracle {
  /** A commit is on the disk: reads what it added. */
  committed(connection: Connection): void
  /** A process of the agent has ended: what it claimed and did not command is never commanded any more. */
  processEnded(): void
  /** The agent tells a device to release. */
  released(deviceId: string): void
  /** The rows of the ledger, as durable. */
  readonly rows: readonly LedgerRow[]
  /** Rows of former generations that the cloud had acknowledged. */
  readonly former: readonly LedgerRow[]
  readonly generation: number
  /** How often the rows began anew, under other numbers. */
  readonly anew: number
  /** The next process finds an old copy of the ledger, which ends with this row. */
  putBack(head: number, isNoticed?: boolean): void
  /** The next process finds the same ledger under another identity. */
  takenOver(): void
  /** Everything up to this number was acknowledged, as the agent has it on its disk. */
  readonly acked: number
  /** Claims that have no outcome. */
  readonly unsettled: readonly string[]
}

/** What others know, that this ledger is judged by. */
export interface LedgerFacts {
  /** Ends of tokens by their nonce, s. */
  tokenEnds: ReadonlyMap<string, number>
  /** Receipts of cancelled purchases (hex), with their numbers in the list of denials. */
  denied: ReadonlyMap<string, number>
  /** The agent has no excuse for a wrong clock: the cloud's was right, and it was in touch since it booted. */
  isClockSure(): boolean
  /** Told of each row that has become durable. */
  onRow?(row: { seq: number; body: JournalBody }): void
  /** By the cloud of which generation a token was given that is lost; undefined for any other. */
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

/** A connection of a process, and what is asked of it. */
interface Watched {
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

/** The most that a device's clock may be wrong (contracts §4), ms. */
const GUARD_MS = 60_000
/** For so long a ledger that was put back decides nothing alone (contracts §5), less what clocks may differ, ms. */
const ONLINE_ONLY_MS = 9 * 60_000
/** Much longer than anything should be away in a world, rows. */
const JOURNAL_LIMIT = 5_000

/** An oracle for the ledger of one agent. */
export function ledgerOracle(name: string, core: Core, facts: LedgerFacts): LedgerOracle {
  const rows: LedgerRow[] = []
  const former: LedgerRow[] = []
  let generation = 1
  let anew = 0
  let putBackTo: number | undefined
  /** The agent can know by its watermark that it was restored. */
  let isNoticed = false
  /** What it used in rows that it lost: without the cloud's yes it must not use that again. */
  const lost = new Set<string>()
  let isTakenOver = false
  /** It was put back, and has heard so from the cloud, at this true time. */
  let knowsSinceMs: number | undefined
  /** It has heard from the cloud that there are two of it, at this true time. */
  let twiceSinceMs: number | undefined
  const used = new Map<string, UsedRight[]>()
  const byRedemption = new Map<string, UsedRight[]>()
  /** Claims of the living process that no command and no outcome belongs to yet, by device. */
  const open = new Map<string, string[]>()
  const unsettled = new Set<string>()
  let watched: Watched | undefined
  let acked = 0
  let denySeq = 0
  /** The cloud's generation as the agent has it on its disk, and since when. */
  let heard = { generation: 1, atMs: 0 }
  let version = { epoch: 0, ver: 0 }

  /** A connection of a new process: what was durable must be there as it was. */
  function watch(connection: Connection): Watched {
    if (watched?.connection === connection) return watched
    watched = {
      connection,
      added: connection.prepare<[number], Row>('SELECT seq, hash, body FROM journal WHERE seq > ? ORDER BY seq'),
      mark: connection.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?'),
      policy: connection.prepare<[], { epoch: number; ver: number }>(
        "SELECT epoch, ver FROM document WHERE kind = 'policy'",
      ),
    }
    const kept = connection.prepare<[], Row>('SELECT seq, hash, body FROM journal ORDER BY seq').all()
    if (isTakenOver) goOn(kept)
    if (putBackTo !== undefined) forget(kept.filter(({ seq }) => seq <= (putBackTo ?? 0)))
    // The first thing that this process wrote may be that the ledger goes on under other numbers.
    if (generationOf(watched.mark) !== generation) return watched
    const bySeq = new Map(kept.map((row) => [row.seq, row.hash]))
    const first = kept[0]?.seq ?? 1
    const missing = rows.find((row) => row.seq >= first && bySeq.get(row.seq) !== row.hash)
    if (missing)
      core.violate(
        'I4',
        `${name}: row ${missing.seq} was durable and ${bySeq.has(missing.seq) ? 'says something else' : 'is gone'}`,
      )
    return watched
  }

  const generationOf = (mark: Watched['mark']) => Number(mark.get('generation')?.value ?? generation)

  /** The ledger goes on with these rows and no others. */
  function begin(kept: readonly Row[]): void {
    anew++
    rows.splice(
      0,
      rows.length,
      ...kept.map(({ seq, hash, body }) => ({ seq, hash, body: JSON.parse(body) as JournalBody })),
    )
  }

  /** What the cloud had acknowledged stays with it; the rest has new numbers. */
  function goOnWith(kept: readonly Row[]): void {
    former.push(...rows.filter((row) => row.seq <= acked))
    const bodies = new Set(kept.map(({ body }) => body))
    const lost = rows.find((row) => row.seq > acked && !bodies.has(JSON.stringify(row.body)))
    if (lost) core.violate('I4', `${name}: row ${lost.seq} was not acknowledged and is gone under its new number`)
    const known = new Set(rows.map(({ body }) => JSON.stringify(body)))
    begin(kept.filter(({ body }) => known.has(body)))
  }

  /** Another identity, the same ledger: what was used stays used, and what the cloud had not acknowledged is told under new numbers. */
  function goOn(kept: readonly Row[]): void {
    isTakenOver = false
    goOnWith(kept)
    generation = 1
    lost.clear()
    ;[denySeq, version, heard, acked] = [0, { epoch: 0, ver: 0 }, { generation: 1, atMs: 0 }, 0]
  }

  /** What the copy does not have it may use again, until it hears from the cloud what it was. */
  function forget(kept: readonly Row[]): void {
    putBackTo = undefined
    const before = [...used].flatMap(([key, uses]) => (uses.some(({ outcome }) => outcome !== 'failed') ? [key] : []))
    begin(kept)
    used.clear()
    byRedemption.clear()
    unsettled.clear()
    ;[denySeq, version, heard, acked] = [0, { epoch: 0, ver: 0 }, { generation: 1, atMs: 0 }, 0]
    for (const { body } of rows) replay(body)
    lost.clear()
    if (isNoticed) for (const key of before) if (!used.has(key)) lost.add(key)
  }

  /** A row that was judged when it was written. */
  function replay({ evidence }: JournalBody): void {
    if (evidence?.kind === 'outcome') takeOutcome(evidence.redemptionId, evidence.outcome)
    if (evidence?.kind !== 'claim') return
    const { redemptionId, nonce, rightClass, ordinals } = evidence
    for (const ordinal of ordinals)
      note(`${nonce}/${rightClass}/${ordinal}`, redemptionId, evidence.operatorId !== undefined)
    unsettled.add(redemptionId)
  }

  function takeClaim(claim: Claim, body: JournalBody): void {
    const { redemptionId, nonce, source, rightClass, ordinals, deviceId } = claim
    for (const ordinal of ordinals) {
      const key = `${nonce}/${rightClass}/${ordinal}`
      const before = used.get(key) ?? []
      if (lost.has(key))
        core.violate(
          'I1',
          `${name}: ${key} was used in rows that were lost when the ledger was restored, and again by ${redemptionId}`,
        )
      const isFree = before.every(
        (b) =>
          source === 'receipt' &&
          (b.outcome === 'failed' || (b.outcome === 'unknown' && claim.operatorId !== undefined)),
      )
      if (!isFree)
        core.violate(
          'I1',
          `${name}: ${key} was used by ${before.map((b) => `${b.redemptionId} (${b.outcome ?? 'open'})`).join(', ')} and again by ${redemptionId}`,
        )
      note(key, redemptionId, claim.operatorId !== undefined)
    }
    const deniedAs = source === 'receipt' ? facts.denied.get(nonce) : undefined
    if (deniedAs !== undefined && deniedAs <= denySeq)
      core.violate('I7', `${name} honours the receipt ${nonce} of a cancelled purchase, and has denial ${deniedAs}`)
    const exp = source === 'token' ? facts.tokenEnds.get(nonce) : undefined
    // The agent goes by trusted time: what it writes under the claim must lie before the token's end.
    if (exp !== undefined && body.atMs > exp * 1_000 + 1_000)
      core.violate('I8', `${name}: token ${nonce} ended ${body.atMs - exp * 1_000} ms before it was used`)
    const late = exp === undefined ? 0 : core.scheduler.nowMs - exp * 1_000
    if (late > GUARD_MS && facts.isClockSure())
      core.violate('I8', `${name}: token ${nonce} had ended for ${late} ms when it was used`)
    const lostWith = source === 'token' ? facts.lostWith(nonce) : undefined
    if (lostWith !== undefined && heard.generation > lostWith && heard.atMs < core.scheduler.nowMs) {
      core.violate('I9', `${name} uses the token ${nonce} of a cloud that is lost, and has heard of the one since`)
    }
    const isAlone = source === 'receipt' && body.event?.type === 'protection.device.offline'
    const isUnsure =
      knowsSinceMs !== undefined &&
      core.scheduler.nowMs > knowsSinceMs &&
      core.scheduler.nowMs - knowsSinceMs < ONLINE_ONLY_MS
    if (isAlone && twiceSinceMs !== undefined && core.scheduler.nowMs > twiceSinceMs)
      core.violate('I9', `${name} knows that there are two of it, and honours the receipt ${nonce} alone`)
    if (isAlone && isUnsure && facts.isClockSure())
      core.violate('I9', `${name} was put back, knows so, and honours the receipt ${nonce} alone`)
    unsettled.add(redemptionId)
    open.set(deviceId, [...(open.get(deviceId) ?? []), redemptionId])
  }

  /** Used, until an outcome says otherwise. */
  function note(key: string, redemptionId: string, operator: boolean): void {
    const right = { redemptionId, outcome: null, operator }
    used.set(key, [...(used.get(key) ?? []), right])
    byRedemption.set(redemptionId, [...(byRedemption.get(redemptionId) ?? []), right])
  }

  function takeOutcome(redemptionId: string, outcome: string): void {
    for (const right of byRedemption.get(redemptionId) ?? []) right.outcome ??= outcome
    unsettled.delete(redemptionId)
    for (const [deviceId, waiting] of open)
      open.set(
        deviceId,
        waiting.filter((id) => id !== redemptionId),
      )
  }

  return {
    rows,
    former,
    get generation() {
      return generation
    },
    get anew() {
      return anew
    },
    putBack: (head, noticed = false) => void ([putBackTo, isNoticed] = [head, noticed]),
    takenOver: () => void (isTakenOver = true),
    get unsettled() {
      return [...unsettled]
    },
    get acked() {
      return acked
    },
    committed(connection) {
      const { added, mark, policy } = watch(connection)
      const current = generationOf(mark)
      if (current !== generation) {
        goOnWith(added.all(0))
        // The cloud has seen that the ledger was restored.
        if (current > generation) lost.clear()
        generation = current
        knowsSinceMs = core.scheduler.nowMs
      }
      const before = rows.at(-1)?.seq ?? 0
      for (const { seq, hash, body: text } of added.all(before)) {
        const body = JSON.parse(text) as JournalBody
        const previous = rows.at(-1)?.seq
        if (previous !== undefined && seq !== previous + 1)
          core.violate('I5', `${name}: row ${seq} follows row ${previous}`)
        rows.push({ seq, hash, body })
        facts.onRow?.({ seq, body })
        core.trace.note(name, `row ${seq} ${describe(body)}`)
        if (body.evidence?.kind === 'claim') takeClaim(body.evidence, body)
        if (body.evidence?.kind === 'outcome') takeOutcome(body.evidence.redemptionId, body.evidence.outcome)
      }
      // The newest row was written just now: its time is what the agent takes now to be.
      const newest = rows.at(-1)
      if (
        newest !== undefined &&
        newest.seq > before &&
        facts.isClockSure() &&
        Math.abs(newest.body.atMs - core.scheduler.nowMs) > GUARD_MS
      ) {
        core.violate('I8', `the trusted time of ${name} is wrong by ${newest.body.atMs - core.scheduler.nowMs} ms`)
      }
      const cloudGeneration = Number(mark.get('cloud_generation')?.value ?? 1)
      if (cloudGeneration !== heard.generation) heard = { generation: cloudGeneration, atMs: core.scheduler.nowMs }
      twiceSinceMs = mark.get('forked')?.value === '1' ? (twiceSinceMs ?? core.scheduler.nowMs) : undefined
      acked = Number(mark.get('acked')?.value ?? 0)
      denySeq = Math.max(denySeq, Number(mark.get('deny_seq')?.value ?? 0))
      const now = policy.get() ?? { epoch: 0, ver: 0 }
      if (compareVersions(now, version) < 0)
        core.violate('I15', `${name} went back from policy ${version.epoch}/${version.ver} to ${now.epoch}/${now.ver}`)
      version = now
      const head = rows.at(-1)?.seq ?? 0
      if (rows.length > 0 && acked > head)
        core.violate('I4', `${name}: ${acked} is acknowledged and ${head} was ever written`)
      if (head - acked > JOURNAL_LIMIT) core.violate('I13', `${name}: ${head - acked} rows wait`)
    },
    processEnded: () => open.clear(),
    released(deviceId) {
      const waiting = open.get(deviceId) ?? []
      const redemptionId = waiting.shift()
      if (redemptionId === undefined) {
        const any = rows.some((row) => row.body.evidence?.kind === 'claim' && row.body.evidence.deviceId === deviceId)
        core.violate(any ? 'I3' : 'I2', `${name}: ${deviceId} was released and no durable redemption waited for it`)
      }
    },
  }
}

function describe({ evidence, event }: JournalBody): string {
  if (!evidence) return event?.type ?? 'nothing'
  if (evidence.kind === 'void') return `void ${evidence.nonce.slice(0, 6)}`
  const id = evidence.redemptionId.slice(-6)
  if (evidence.kind === 'outcome' || evidence.kind === 'given_back') return `${evidence.kind} ${id} ${evidence.outcome}`
  if (evidence.kind === 'given')
    return `given ${id} of ${evidence.nonce.slice(0, 6)} ${evidence.rightClass} ${evidence.ordinals.join(',')} to ${evidence.agentId.slice(-6)}`
  return `claim ${id} of ${evidence.source} ${evidence.nonce.slice(0, 6)} ${evidence.rightClass} ${evidence.ordinals.join(',')}`
}
