import type { Database as Connection, Statement } from 'better-sqlite3'
import type { Evidence } from '../../../../policy/journal.ts'
import { RECEIPT_LIFE } from '../../../../policy/receipts/receipt-token.ts'
import type { AgentNode } from '../nodes/agent-node.ts'
import type { Core } from '../virtual/core.ts'
import type { LedgerOracle } from './ledger-oracle.ts'

/**
 * Reads the durable ledgers, and checks which rights the receipt home delegates and which rights agents use. Each right
 * may be used only once, even if the home has moved. Two exceptions are allowed. An isolated agent may release the same
 * goods again. A receipt home that is offline may release the same goods for which the cloud issues a token.
 */
export interface ReceiptHomeOracle {
  /** Called after each durable commit of the agent's ledger, when the ledger oracle has checked this commit. */
  committed(node: AgentNode, connection: Connection): void
  /**
   * True if an agent used the right before or at this true time, ms, and the use still counts. For a release by staff,
   * unresolved redemptions do not count.
   */
  isUsed(right: string, atMs: number, byStaff: boolean): boolean
  /**
   * Called after a restore of the ledger. Until the cloud reports the lost delegations and claims, the agent may repeat
   * them.
   */
  ledgerRestored(name: string): void
  /** Called after a restore of the cloud, because the restored cloud may assign an epoch a second time. */
  forgetEpochs(): void
}

type Claim = Extract<Evidence, { kind: 'claim' }>

interface RightUse {
  ledger: string
  redemptionId: string
  /** True for a right that the home delegated, false for a claim in the ledger of any agent. */
  isDelegated: boolean
  /** The agent that holds the delegated right. */
  agentId: string | undefined
  /**
   * True for a claim with a token of the cloud. The cloud sends no request to the receipt home, so a receipt home that
   * is offline may release the same goods.
   */
  isByToken: boolean
  /** Epoch of the home that decided. Undefined if another agent or the cloud decided. */
  homeEpoch: number | undefined
  atMs: number
}

interface LedgerStatements {
  grants: Statement<[], { redemption_id: string; agent_id: string; answer: string; state: string }>
  rights: Statement<[string], { cti: string; right_class: string; ordinal: number }>
  isolated: Statement<[], { value: string }>
}

/**
 * Creates the oracle for all ledgers. `receiptEnd` takes a receipt id (hex) and returns the time at which the receipt
 * expires, s.
 */
export function receiptHomeOracle(
  core: Core,
  ledgers: ReadonlyMap<string, LedgerOracle>,
  receiptEnd: (cti: string) => number | undefined,
): ReceiptHomeOracle {
  return new Homes(core, ledgers, receiptEnd)
}

class Homes implements ReceiptHomeOracle {
  readonly #core: Core
  readonly #ledgers: ReadonlyMap<string, LedgerOracle>
  readonly #receiptEnd: (cti: string) => number | undefined
  readonly #usesByRight = new Map<string, RightUse[]>()
  /** Delegations by redemption id, from the home's durable ledger. */
  readonly #delegated = new Map<string, { ordinals: readonly number[] }>()
  /** State of each delegation in the home's ledger. */
  readonly #states = new Map<string, string>()
  readonly #outcomes = new Map<string, string>()
  readonly #seen = new Map<string, { rows: number; anew: number; isolated: string }>()
  /** Statements by ledger, for the current connection. */
  readonly #watches = new Map<string, { db: Connection; watch: LedgerStatements }>()

  constructor(core: Core, ledgers: ReadonlyMap<string, LedgerOracle>, receiptEnd: (cti: string) => number | undefined) {
    this.#core = core
    this.#ledgers = ledgers
    this.#receiptEnd = receiptEnd
  }

  isUsed(right: string, atMs: number, byStaff: boolean): boolean {
    return (this.#usesByRight.get(right) ?? []).some(
      (use) =>
        !use.isDelegated &&
        use.atMs <= atMs &&
        this.#countsAsUsed(use) &&
        !(byStaff && this.#outcomes.get(use.redemptionId) === 'unknown'),
    )
  }

  readonly ledgerRestored = (name: string): void => {
    this.#seen.delete(name)
    for (const [key, all] of this.#usesByRight)
      this.#usesByRight.set(
        key,
        all.filter((use) => use.ledger !== name),
      )
  }

  forgetEpochs(): void {
    for (const use of [...this.#usesByRight.values()].flat()) use.homeEpoch = undefined
  }

  committed(node: AgentNode, db: Connection): void {
    const { name, agent, identity } = node
    const { grants, rights, isolated } = this.#watchOf(name, db)
    const before = this.#seen.get(name) ?? { rows: 0, anew: 0, isolated: '0' }
    const policy = agent?.trust.policy?.policy
    const homeEpoch = policy?.home === identity.agentId ? policy.homeEpoch : undefined
    const now = { ...before, isolated: isolated.get()?.value ?? '0' }
    const { rows = [], restarts = 0 } = this.#ledgers.get(name) ?? {}
    now.anew = restarts
    for (const { body } of rows.slice(restarts === before.anew ? before.rows : 0)) {
      if (body.evidence?.kind === 'outcome') this.#outcomes.set(body.evidence.redemptionId, body.evidence.outcome)
      // If an agent decided offline and its isolated count did not rise, it decided as the receipt home.
      const isAlone = body.event?.type === 'protection.device.offline' && now.isolated === before.isolated
      if (body.evidence?.kind === 'claim') this.#takeClaim(node, body.evidence, isAlone ? homeEpoch : undefined)
    }
    now.rows = rows.length
    for (const { redemption_id: redemptionId, agent_id: agentId, answer, state } of grants.all()) {
      if (state !== 'delegated' && this.#states.get(`${name}/${redemptionId}`) !== state)
        this.#core.trace.add(name, `delegation ${redemptionId.slice(-6)} is ${state}`)
      this.#states.set(`${name}/${redemptionId}`, state)
      if (this.#delegated.has(redemptionId)) continue
      const { ordinals } = JSON.parse(answer) as { ordinals: number[] }
      this.#delegated.set(redemptionId, { ordinals })
      if (
        ordinals.length > 0 &&
        !rows.some(({ body: { evidence } }) => evidence?.kind === 'delegated' && evidence.redemptionId === redemptionId)
      ) {
        this.#core.violate('I1', `${name} delegates ${ordinals.join(',')} under ${redemptionId} without a journal row`)
      }
      if (ordinals.length > 0)
        this.#core.trace.add(name, `delegates ${ordinals.join(',')} under ${redemptionId.slice(-6)}`)
      for (const { cti, right_class: rightClass, ordinal } of rights.all(redemptionId))
        this.#use(
          `${cti}/${rightClass}/${ordinal}`,
          {
            ledger: name,
            redemptionId,
            isDelegated: true,
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

  #watchOf(name: string, db: Connection): LedgerStatements {
    const known = this.#watches.get(name)
    if (known?.db === db) return known.watch
    const watch: LedgerStatements = {
      grants: db.prepare('SELECT redemption_id, agent_id, answer, state FROM home_grant ORDER BY redemption_id'),
      rights: db.prepare('SELECT cti, right_class, ordinal FROM used_right WHERE redemption_id = ?'),
      isolated: db.prepare("SELECT value FROM mark WHERE name = 'isolated_count'"),
    }
    this.#watches.set(name, { db, watch })
    return watch
  }

  /** True if the use still counts. Failed claims and returned delegations do not count. Unresolved uses count. */
  #countsAsUsed({ redemptionId, isDelegated, ledger }: RightUse) {
    return isDelegated
      ? ['delegated', 'unknown'].includes(this.#states.get(`${ledger}/${redemptionId}`) ?? '')
      : this.#outcomes.get(redemptionId) !== 'failed'
  }

  #use(key: string, made: RightUse, node: AgentNode): void {
    // In a new generation, the ledger repeats old rows under new numbers.
    if (
      this.#usesByRight
        .get(key)
        ?.some(
          ({ ledger, redemptionId, isDelegated }) =>
            ledger === made.ledger && redemptionId === made.redemptionId && isDelegated === made.isDelegated,
        )
    )
      return
    /** The agent that holds an unresolved right may request the right again. Its own ledger then requires staff. */
    const isByHolder = ({ isDelegated, agentId, ledger, redemptionId }: RightUse) =>
      isDelegated &&
      made.isDelegated &&
      agentId === made.agentId &&
      this.#states.get(`${ledger}/${redemptionId}`) === 'unknown'
    const otherUses = (this.#usesByRight.get(key) ?? []).filter(
      (before) => before.redemptionId !== made.redemptionId && this.#countsAsUsed(before) && !isByHolder(before),
    )
    for (const before of otherUses) {
      // Skips two claims of the same ledger, because the ledger oracle compares them.
      if (before.ledger === made.ledger && (before.isDelegated || made.isDelegated)) {
        this.#core.violate(
          'I1',
          `${made.ledger} has ${verbOf(before)} the right ${key} under ${before.redemptionId}, and ${verbOf(made)} it again under ${made.redemptionId}`,
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
          `${made.ledger} as the home of epoch ${made.homeEpoch} has ${verbOf(made)} the right ${key}, which ${before.ledger} had ${verbOf(before)} as the home of epoch ${before.homeEpoch}`,
        )
      }
    }
    this.#usesByRight.set(key, [...(this.#usesByRight.get(key) ?? []), made])
  }

  /**
   * True if the receipt is older than the home's last move. A new home honours later receipts at once, because no
   * former home can have used them.
   */
  #isFromBeforeMove(key: string, { agent }: AgentNode): boolean {
    const end = this.#receiptEnd(key.split('/')[0] ?? '')
    const movedS = agent?.trust.policy?.homeMove?.atS
    return end !== undefined && movedS !== undefined && end - RECEIPT_LIFE < movedS
  }

  #takeClaim(node: AgentNode, claim: Claim, homeEpoch: number | undefined): void {
    const { name } = node
    const { redemptionId, rightClass, operatorId } = claim
    const receipt = claim.source === 'receipt' ? { cti: claim.nonce, ordinals: claim.ordinals } : claim.receipt
    const delegation = this.#delegated.get(redemptionId)
    if (delegation && claim.ordinals.some((ordinal) => !delegation.ordinals.includes(ordinal))) {
      this.#core.violate(
        'I1',
        `${name} used ${claim.ordinals.join(',')} under ${redemptionId}, but the home delegated ${delegation.ordinals.join(',')}`,
      )
    }
    // An operator has checked the tag, so the right may be used again.
    if (!receipt || operatorId !== undefined) return
    for (const ordinal of receipt.ordinals)
      this.#use(
        `${receipt.cti}/${rightClass}/${ordinal}`,
        {
          ledger: name,
          redemptionId,
          isDelegated: false,
          agentId: undefined,
          isByToken: claim.source === 'token',
          homeEpoch: delegation ? undefined : homeEpoch,
          atMs: this.#core.scheduler.nowMs,
        },
        node,
      )
  }
}

function verbOf({ isDelegated }: RightUse): string {
  return isDelegated ? 'delegated' : 'used'
}

/**
 * Time at which a receipt expires according to the cloud database, s. Undefined if the cloud is down or has no such
 * receipt.
 */
export function receiptEnd(db: Connection | undefined, cti: string): number | undefined {
  return (
    db?.prepare<[string], { end: number | null }>('SELECT receipt_exp AS end FROM purchase WHERE cti = ?').get(cti)
      ?.end ?? undefined
  )
}
