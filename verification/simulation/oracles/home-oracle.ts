import type { Database as Connection, Statement } from 'better-sqlite3'
import type { Evidence } from '../../../policy/journal.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Core } from '../virtual/core.ts'
import type { LedgerOracle } from './ledger-oracle.ts'

/**
 *   own claims ─┐
 *               ├─ one use for each right of a receipt ─ the home moves ─▶ and none that a former home has used
 *   given away ─┘
 *
 * What a home of receipts gives to other agents and what it uses itself, known from outside. Agents that decide alone because they
 * are cut off may let the same goods out twice (not promised), and so may a home that is cut off while the cloud gives a token; whoever
 * decides about a receipt as the home, or by its word, must not.
 */
export interface HomeOracle {
  /** A commit of this agent's ledger is on its disk, and its own oracle has seen it. */
  committed(node: AgentNode, connection: Connection): void
  /** Whether what was used of a right at this true time (ms) still counts; for staff, who look, not where nobody knows whether it worked. */
  isUsed(right: string, atMs: number, byStaff: boolean): boolean
  /** The ledger was put back: what it forgot it may give and use again, until it hears of it. */
  putBack(name: string): void
  /** Epochs of homes may be given a second time: the cloud has forgotten some. */
  forgetEpochs(): void
}

type Claim = Extract<Evidence, { kind: 'claim' }>

interface Use {
  ledger: string
  redemptionId: string
  /** Its own, or what it gave to another agent. */
  isGiven: boolean
  /** To whom it was given. */
  agentId: string | undefined
  /** The cloud gave a token for it, for which no home is asked: one that is cut off may let the same goods out. */
  isByToken: boolean
  /** As the home of this epoch; undefined when it decided otherwise. */
  homeEpoch: number | undefined
  atMs: number
}

interface Watch {
  grants: Statement<[], { redemption_id: string; agent_id: string; answer: string; state: string }>
  rights: Statement<[string], { cti: string; right_class: string; ordinal: number }>
  isolated: Statement<[], { value: string }>
}

/** An oracle over the ledgers of all agents. `receiptEnd`: when the receipt with this identity (hex) ends, s. */
export function homeOracle(
  core: Core,
  ledgers: ReadonlyMap<string, LedgerOracle>,
  receiptEnd: (cti: string) => number | undefined,
): HomeOracle {
  return new Homes(core, ledgers, receiptEnd)
}

class Homes implements HomeOracle {
  readonly #core: Core
  readonly #ledgers: ReadonlyMap<string, LedgerOracle>
  readonly #receiptEnd: (cti: string) => number | undefined
  readonly #uses = new Map<string, Use[]>()
  /** What was given under a redemption, as it was made durable. */
  readonly #given = new Map<string, { ordinals: readonly number[] }>()
  /** What stands of it in the ledger of the home: it may have been given back since. */
  readonly #states = new Map<string, string>()
  readonly #outcomes = new Map<string, string>()
  readonly #seen = new Map<string, { rows: number; anew: number; isolated: string }>()
  /** By ledger, on the connection of its newest process. */
  readonly #watches = new Map<string, { db: Connection; watch: Watch }>()

  constructor(core: Core, ledgers: ReadonlyMap<string, LedgerOracle>, receiptEnd: (cti: string) => number | undefined) {
    this.#core = core
    this.#ledgers = ledgers
    this.#receiptEnd = receiptEnd
  }

  isUsed(right: string, atMs: number, byStaff: boolean): boolean {
    return (this.#uses.get(right) ?? []).some(
      (use) =>
        !use.isGiven &&
        use.atMs <= atMs &&
        this.#stands(use) &&
        !(byStaff && this.#outcomes.get(use.redemptionId) === 'unknown'),
    )
  }

  readonly putBack = (name: string): void => {
    this.#seen.delete(name)
    for (const [key, all] of this.#uses)
      this.#uses.set(
        key,
        all.filter((use) => use.ledger !== name),
      )
  }

  forgetEpochs(): void {
    for (const use of [...this.#uses.values()].flat()) use.homeEpoch = undefined
  }

  committed(node: AgentNode, db: Connection): void {
    const { name, agent, identity } = node
    const { grants, rights, isolated } = this.#watchOf(name, db)
    const before = this.#seen.get(name) ?? { rows: 0, anew: 0, isolated: '0' }
    const policy = agent?.trust.policy?.policy
    const homeEpoch = policy?.home === identity.agentId ? policy.homeEpoch : undefined
    const now = { ...before, isolated: isolated.get()?.value ?? '0' }
    const { rows = [], anew = 0 } = this.#ledgers.get(name) ?? {}
    now.anew = anew
    for (const { body } of rows.slice(anew === before.anew ? before.rows : 0)) {
      if (body.evidence?.kind === 'outcome') this.#outcomes.set(body.evidence.redemptionId, body.evidence.outcome)
      // Decided alone, and not by the rules for who is cut off: then as the home.
      const isAlone = body.event?.type === 'protection.device.offline' && now.isolated === before.isolated
      if (body.evidence?.kind === 'claim') this.#takeClaim(node, body.evidence, isAlone ? homeEpoch : undefined)
    }
    now.rows = rows.length
    for (const { redemption_id: redemptionId, agent_id: agentId, answer, state } of grants.all()) {
      if (state !== 'delegated' && this.#states.get(`${name}/${redemptionId}`) !== state)
        this.#core.trace.note(name, `what was asked under ${redemptionId.slice(-6)} is ${state}`)
      this.#states.set(`${name}/${redemptionId}`, state)
      if (this.#given.has(redemptionId)) continue
      const { ordinals } = JSON.parse(answer) as { ordinals: number[] }
      this.#given.set(redemptionId, { ordinals })
      if (
        ordinals.length > 0 &&
        !rows.some(({ body: { evidence } }) => evidence?.kind === 'delegated' && evidence.redemptionId === redemptionId)
      ) {
        this.#core.violate('I1', `${name} gives ${ordinals.join(',')} under ${redemptionId}, and tells nobody`)
      }
      if (ordinals.length > 0)
        this.#core.trace.note(name, `gives ${ordinals.join(',')} under ${redemptionId.slice(-6)}`)
      for (const { cti, right_class: rightClass, ordinal } of rights.all(redemptionId))
        this.#use(
          `${cti}/${rightClass}/${ordinal}`,
          {
            ledger: name,
            redemptionId,
            isGiven: true,
            agentId,
            isByToken: false,
            homeEpoch,
            atMs: this.#core.scheduler.nowMs,
          },
          node,
        )
    }
    this.#seen.set(name, now)
  }

  #watchOf(name: string, db: Connection): Watch {
    const known = this.#watches.get(name)
    if (known?.db === db) return known.watch
    const watch: Watch = {
      grants: db.prepare('SELECT redemption_id, agent_id, answer, state FROM home_grant ORDER BY redemption_id'),
      rights: db.prepare('SELECT cti, right_class, ordinal FROM used_right WHERE redemption_id = ?'),
      isolated: db.prepare("SELECT value FROM mark WHERE name = 'isolated_count'"),
    }
    this.#watches.set(name, { db, watch })
    return watch
  }

  /** What failed, and what was given back, has used nothing up; where nobody knows it is for staff, who are not counted. */
  #stands({ redemptionId, isGiven, ledger }: Use) {
    return isGiven
      ? ['delegated', 'unknown'].includes(this.#states.get(`${ledger}/${redemptionId}`) ?? '')
      : this.#outcomes.get(redemptionId) !== 'failed'
  }

  #use(key: string, made: Use, node: AgentNode): void {
    // Its rows began anew in another generation: this is an old one under a new number.
    if (
      this.#uses
        .get(key)
        ?.some(
          ({ ledger, redemptionId, isGiven }) =>
            ledger === made.ledger && redemptionId === made.redemptionId && isGiven === made.isGiven,
        )
    )
      return
    /** Whoever had it asks for it again: its own ledger sees to it that staff stand there. */
    const isTheirs = ({ isGiven, agentId, ledger, redemptionId }: Use) =>
      isGiven && made.isGiven && agentId === made.agentId && this.#states.get(`${ledger}/${redemptionId}`) === 'unknown'
    const standing = (this.#uses.get(key) ?? []).filter(
      (before) => before.redemptionId !== made.redemptionId && this.#stands(before) && !isTheirs(before),
    )
    for (const before of standing) {
      // Its own claims twice over are looked at by the ledger's own oracle.
      if (before.ledger === made.ledger && (before.isGiven || made.isGiven)) {
        this.#core.violate(
          'I1',
          `${made.ledger} has ${wordOf(before)} the right ${key} under ${before.redemptionId}, and ${wordOf(made)} it again under ${made.redemptionId}`,
        )
      }
      const isFormer =
        !made.isByToken &&
        before.ledger !== made.ledger &&
        before.homeEpoch !== undefined &&
        made.homeEpoch !== undefined &&
        before.homeEpoch < made.homeEpoch
      if (isFormer && this.#isFromBeforeMove(key, node)) {
        this.#core.violate(
          'I1',
          `${made.ledger} as the home of epoch ${made.homeEpoch} has ${wordOf(made)} the right ${key}, which ${before.ledger} had ${wordOf(before)} as the home of epoch ${before.homeEpoch}`,
        )
      }
    }
    this.#uses.set(key, [...(this.#uses.get(key) ?? []), made])
  }

  /** Receipts from after the move a new home honours at once: nobody has shown them to a former one that knows of it. */
  #isFromBeforeMove(key: string, { agent }: AgentNode): boolean {
    const end = this.#receiptEnd(key.split('/')[0] ?? '')
    const movedS = agent?.trust.policy?.homeMove?.atS
    return end !== undefined && movedS !== undefined && end - RECEIPT_LIFE < movedS
  }

  #takeClaim(node: AgentNode, claim: Claim, homeEpoch: number | undefined): void {
    const { name } = node
    const { redemptionId, rightClass, operatorId } = claim
    const receipt = claim.source === 'receipt' ? { cti: claim.nonce, ordinals: claim.ordinals } : claim.receipt
    const gift = this.#given.get(redemptionId)
    if (gift && claim.ordinals.some((ordinal) => !gift.ordinals.includes(ordinal))) {
      this.#core.violate(
        'I1',
        `${name} used ${claim.ordinals.join(',')} under ${redemptionId}, and the home gave it ${gift.ordinals.join(',')}`,
      )
    }
    // What was unknown an operator has looked at, and it may be tried again.
    if (!receipt || operatorId !== undefined) return
    for (const ordinal of receipt.ordinals)
      this.#use(
        `${receipt.cti}/${rightClass}/${ordinal}`,
        {
          ledger: name,
          redemptionId,
          isGiven: false,
          agentId: undefined,
          isByToken: claim.source === 'token',
          homeEpoch: gift ? undefined : homeEpoch,
          atMs: this.#core.scheduler.nowMs,
        },
        node,
      )
  }
}

function wordOf({ isGiven }: Use): string {
  return isGiven ? 'given away' : 'used'
}

/** When a receipt ends, as the cloud knows it, s; undefined while there is no cloud or no such receipt. */
export function receiptEnd(db: Connection | undefined, cti: string): number | undefined {
  return (
    db?.prepare<[string], { end: number | null }>('SELECT receipt_exp AS end FROM purchase WHERE cti = ?').get(cti)
      ?.end ?? undefined
  )
}
