import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database as Connection } from 'better-sqlite3'
import { openItemFile } from '../../../../edge-agent/items/item-file.ts'
import { openLedgerFile } from '../../../../edge-agent/ledger/file/ledger-file.ts'
import { openLedger } from '../../../../edge-agent/ledger/ledger.ts'
import { recoverClaims } from '../../../../edge-agent/startup/stored.ts'
import { readIdentity, type Identity } from '../../../../edge-agent/identity/identity.ts'
import type { JournalBody } from '../../../../policy/journal.ts'
import { realPlatform } from '../../../../host/platform.ts'
import { secretFiles } from '../../../../host/secret-files.ts'
import { answerIn, documentsIn, newTally, type Promises } from './promises.ts'
import type { Platform } from '../../../../policy/platform.ts'
import type { DiskEvent } from './disk-log.ts'

/**
 * The journal at the end of the recording. On the disk of an earlier power cut, the journal must be a prefix of this
 * journal.
 */
interface Reference {
  hashes: string[]
  bodies: JournalBody[]
  /** By device: the journal row of its first claim, of its second claim, and so on. */
  claims: Map<string, number[]>
  /** Journal row by event id. */
  rowOf: Map<string, number>
  /** Text of all claims after each journal row; see `claimsText`. */
  claimsAfter: string[]
}

/** Modbus TCP request that switches coil 0 on. */
const COIL_ON = /^..\0\0\0\x06.\x05\0\0\xff\0/s
const HAVE = /"have":\{(?:"keys":\[(\d+),(\d+)\],)?(?:"policy":\[(\d+),(\d+)\],)?"deny":\[0,(\d+)\]/
const NEW_KEY = /"publicJwk":\{[^}]*"x":"([\w-]{43})"/
const EVENT_ID = /"eventId":"(evt_\w+)"/

/**
 * Checks the guarantees of an agent on a disk after a power cut. Each movement has a claim (P1, P2). The journal
 * contains each event that the agent reported (P3). Acknowledged denials and the identity remain.
 *
 * @param last The agent's folder at the end of the recording.
 */
export function agentPromises(last: string, deviceAt: Readonly<Record<string, string>>): Promises {
  return new AgentPromises(last, deviceAt)
}

class AgentPromises implements Promises {
  readonly #deviceAt: Readonly<Record<string, string>>
  readonly #count: (kind: string) => void
  readonly counts: Record<string, number>
  readonly #reference: Reference
  readonly #identity: Identity
  readonly #platform: Platform
  /** Number of the last row that the journal must contain. */
  #row = 0
  #why = 'nothing'
  #isEnrolled = false
  readonly #moved = new Map<string, number>()
  readonly #confirmed = { denySeq: 0, keys: 0, policy: 0 }
  readonly #offered: string[] = []
  readonly folder: 'cloud' | 'edge' = 'edge'

  constructor(last: string, deviceAt: Readonly<Record<string, string>>) {
    this.#deviceAt = deviceAt
    const { count, counts } = newTally()
    this.#count = count
    this.counts = counts
    this.#reference = readReference(join(last, 'ledger.db'))
    const identity = readIdentity(last, secretFiles)
    if (!identity) throw new Error('the recorded agent was not enrolled')
    this.#identity = identity
    this.#platform = realPlatform()
  }

  addOutput({ to, text }: Extract<DiskEvent, { kind: 'output' }>): void {
    if (to === 'standard output' && text.startsWith('enrolled ')) {
      this.#isEnrolled = true
      this.#count('enrolled')
    }
    const device = this.#deviceAt[/->[^:]*:(\d+)\]$/.exec(to)?.[1] ?? '']
    if (device !== undefined && COIL_ON.test(text)) {
      const n = this.#moved.get(device) ?? 0
      this.#moved.set(device, n + 1)
      this.#requireRow(this.#reference.claims.get(device)?.[n] ?? Number.POSITIVE_INFINITY, 'a release')
    }
    const eventId = EVENT_ID.exec(answerIn(text) ?? '')?.[1]
    if (eventId !== undefined) this.#requireRow(this.#reference.rowOf.get(eventId), 'an answer')
    for (const { typ, claims } of documentsIn(text)) {
      if (typ === 'pevt+jwt') this.#requireRow(Number(claims['seqTo']), 'what the agent reported to the cloud')
      if (typ === 'assert+jwt') this.#requireRow(Number(claims['seq'] ?? 0), 'the reported end of the journal')
    }
    const [, , keys, , policy, deny] = HAVE.exec(text) ?? []
    if (deny !== undefined) {
      this.#count('denials confirmed')
      this.#confirmed.denySeq = Math.max(this.#confirmed.denySeq, Number(deny))
      this.#confirmed.keys = Math.max(this.#confirmed.keys, Number(keys ?? 0))
      this.#confirmed.policy = Math.max(this.#confirmed.policy, Number(policy ?? 0))
    }
    const key = NEW_KEY.exec(text)?.[1]
    if (key !== undefined && this.#isEnrolled) {
      this.#count('a new key')
      this.#offered.push(key)
    }
  }

  async check(folder: string): Promise<string[]> {
    const wrong: string[] = []
    try {
      wrong.push(...this.#checkIdentity(folder))
      const file = join(folder, 'ledger.db')
      if (!existsSync(file)) return this.#row > 0 || this.#isEnrolled ? [...wrong, 'the ledger is gone'] : wrong
      wrong.push(...this.#checkStart(file, this.#identity))
      if (existsSync(join(folder, 'items.db'))) wrong.push(...checkItems(join(folder, 'items.db')))
    } catch (error) {
      wrong.push(`it does not start: ${String(error)}`)
    }
    return wrong
  }

  #requireRow(seq: number | undefined, what: string): void {
    this.#count(what)
    if (seq === undefined || seq <= this.#row) return
    this.#row = seq
    this.#why = what
  }

  #checkLedger(db: Connection): string[] {
    const wrong: string[] = []
    const damage = db.pragma('integrity_check', { simple: true })
    if (damage !== 'ok') wrong.push(`the ledger is damaged: ${String(damage)}`)
    const hashes = db.prepare<[], string>('SELECT hash FROM journal ORDER BY seq').pluck().all()
    const different = hashes.findIndex((hash, i) => hash !== this.#reference.hashes[i])
    if (different >= 0) wrong.push(`row ${different + 1} of the journal differs from the row that was written`)
    if (hashes.length < this.#row)
      wrong.push(`the journal ends at ${hashes.length}, but ${this.#why} needs row ${this.#row}`)
    const claims = claimsText(db.prepare<[], ClaimRow>('SELECT redemption_id AS id, ordinal, state FROM claim').all())
    if (claims !== (this.#reference.claimsAfter[hashes.length] ?? ''))
      wrong.push(`the claims differ from those after row ${hashes.length}`)
    const mark = db.prepare<[string], string>('SELECT value FROM mark WHERE name = ?').pluck()
    const acked = Number(mark.get('acked') ?? 0)
    if (acked > hashes.length) wrong.push(`${acked} rows are acknowledged, but the journal has ${hashes.length}`)
    const denySeq = Number(mark.get('deny_seq') ?? 0)
    if (denySeq < this.#confirmed.denySeq)
      wrong.push(`denial ${this.#confirmed.denySeq} was confirmed, but the ledger has ${denySeq}`)
    const ver = db.prepare<[string], number>('SELECT ver FROM document WHERE kind = ?').pluck()
    for (const kind of ['keys', 'policy'] as const)
      if ((ver.get(kind) ?? 0) < this.#confirmed[kind])
        wrong.push(`${kind} ${this.#confirmed[kind]} was confirmed, but the ledger has ${ver.get(kind) ?? 'none'}`)
    return wrong
  }

  /**
   * Starts the ledger after the power cut. Each open claim must become `unknown` once, and each used right must stay
   * used.
   */
  #checkStart(file: string, { ledgerId, storeId }: Identity): string[] {
    const wrong: string[] = []
    const ledger = openLedger({
      file,
      ledgerId,
      generation: 1,
      onFailure(failure) {
        throw failure
      },
      open: (name) => {
        const db = openLedgerFile(name)
        wrong.push(...this.#checkLedger(db))
        return db
      },
    })
    const [open, head] = [ledger.claims.unsettled().length, ledger.journal.head.seq]
    recoverClaims(ledger, storeId, this.#platform.clock.wall(), this.#platform)
    if (ledger.claims.unsettled().length > 0) wrong.push('claims are open after the recovery')
    if (ledger.journal.head.seq !== head + open)
      wrong.push(`${open} claims were open, but ${ledger.journal.head.seq - head} became unknown`)
    const used = this.#reference.bodies
      .slice(0, head)
      .findLast((body) => body.evidence?.kind === 'claim' && body.evidence.source === 'token')?.evidence
    if (used?.kind === 'claim') {
      const request = {
        ...used,
        redemptionId: 'rdm_again',
        candidates: used.ordinals,
        all: false,
        exp: Number.MAX_SAFE_INTEGER,
        nowMs: this.#platform.clock.wall(),
      }
      if (ledger.commits.now(() => ledger.claims.claim(request)).ok)
        wrong.push(`${used.nonce} was claimed, but the ledger accepts a second claim`)
    }
    ledger.close()
    return wrong
  }

  #checkIdentity(folder: string): string[] {
    const found = readIdentity(folder, secretFiles)
    if (!found) return this.#isEnrolled ? ['the agent was enrolled but has no identity'] : []
    const wrong = found.agentId === this.#identity?.agentId ? [] : ['the agent id changed']
    const latest = this.#offered.at(-1)
    const keys = [found.x, found.next?.x, ...(found.former ?? []).map((key) => key.x)]
    if (latest !== undefined && !keys.includes(latest))
      wrong.push('the agent sent a new key to the cloud but lost its private half')
    return wrong
  }
}

function checkItems(file: string): string[] {
  const wrong: string[] = []
  const items = openItemFile(file, (error) => void wrong.push(`the items are damaged: ${String(error)}`))
  const { progress, rows } = items.read()
  const known = [...rows()].length
  if (known > 0 && !progress) wrong.push('there are items without a progress number')
  items.close()
  return wrong
}

interface ClaimRow {
  id: string
  ordinal: number
  state: string
}

/** Text of the claims with their outcomes. */
function claimsText(rows: readonly ClaimRow[]): string {
  return rows
    .map(({ id, ordinal, state }) => `${id}/${ordinal} ${state}`)
    .toSorted()
    .join('\n')
}

function readReference(file: string): Reference {
  const db = openLedgerFile(file)
  const rows = db
    .prepare<[], { seq: number; hash: string; body: string }>('SELECT seq, hash, body FROM journal ORDER BY seq')
    .all()
  db.close()
  const claims = new Map<string, number[]>()
  const rowOf = new Map<string, number>()
  const claimed: ClaimRow[] = []
  const claimsAfter = ['']
  const bodies = rows.map((row) => JSON.parse(row.body) as JournalBody)
  for (const [i, { evidence, event }] of bodies.entries()) {
    if (event) rowOf.set(event.eventId, i + 1)
    if (evidence?.kind === 'claim') {
      claims.set(evidence.deviceId, [...(claims.get(evidence.deviceId) ?? []), i + 1])
      for (const ordinal of evidence.ordinals) claimed.push({ id: evidence.redemptionId, ordinal, state: 'claimed' })
    }
    if (evidence?.kind === 'outcome')
      for (const claim of claimed) if (claim.id === evidence.redemptionId) claim.state = evidence.outcome
    claimsAfter.push(claimsText(claimed))
  }
  return { hashes: rows.map((row) => row.hash), bodies, claims, rowOf, claimsAfter }
}
