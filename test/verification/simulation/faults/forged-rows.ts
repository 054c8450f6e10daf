import type { Database as Connection } from 'better-sqlite3'
import {
  type HomeRequest,
  RELEASE_NOTICE_LIFE,
  type ReleaseNotice,
} from '../../../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import type { Signer } from '../../../../policy/documents/keys.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import { TILL_NOTICE_LIFE, type TillNotice } from '../../../../policy/documents/till-notice.ts'
import type { Evidence, JournalBody } from '../../../../policy/journal.ts'
import { RIGHT_CLASSES } from '../../../../policy/vocabulary.ts'
import type { Chance } from '../virtual/chance.ts'
import { forgedAlarms } from './forged-alarms.ts'
import { noForgedIds, type ForgedIds } from '../oracles/forgery-oracle.ts'

/** Facts about the lying agent and its store. */
export interface LiarFacts {
  readonly agentId: string
  readonly storeId: string
  readonly signer: Signer
  /** The epoch in which the liar was the receipt home; undefined before that. */
  readonly ownEpoch: number | undefined
  /** Honest agents of the store. */
  readonly others: readonly string[]
  readonly nowMs: number
}

/**
 * Forges rows that only an honest agent may send. The rows contain real ids from the cloud, because an attacker may
 * have seen these ids.
 */
export interface ForgedRows {
  /** The next forged row; undefined if the cloud has no suitable data yet. */
  next(db: Connection): JournalBody | undefined
  /** Forges a release notice with an invalid proof, signed for the liar's own device. */
  notice(deviceId: string): string
  /** Forges a notice that a till sold goods of the store. Undefined if the cloud has no goods for sale. */
  saleNotice(db: Connection): string | undefined
  /** Forges a home request to `home` in the name of another agent. */
  question(home: string): string
  readonly watch: ForgedIds
}

interface Unit {
  cti: string
  ordinal: number
}

/** Number of newest rows of the cloud that forgeries use, because forgeries with old receipts have no effect. */
const NEWEST = 6
/**
 * Maximum number of rights that the liar delegates as a former home. Each of these delegations blocks a right of a
 * shopper.
 */
const OWN_DELEGATIONS_LIMIT = 6

/** Creates the forged rows of one agent. Calls `facts` for each row. */
export function forgedRows(chance: Chance, facts: () => LiarFacts): ForgedRows {
  return new DrawnForgeries(chance, facts)
}

class DrawnForgeries implements ForgedRows {
  readonly #chance: Chance
  readonly #facts: () => LiarFacts
  readonly watch: ForgedIds
  readonly #ownDelegations: (Unit & { redemptionId: string; holder: string; rightClass: HomeRequest['rightClass'] })[] =
    []
  #count = 0
  readonly #kinds: ((db: Connection) => JournalBody | undefined)[]

  constructor(chance: Chance, facts: () => LiarFacts) {
    this.#chance = chance
    this.#facts = facts
    this.watch = noForgedIds()
    this.#kinds = [
      this.#delegatedByNoHome,
      this.#delegatedToUnknownAgent,
      this.#delegatedInOwnEpoch,
      this.#returnedWithoutReport,
      this.#returnedForOtherHome,
      this.#outcomeOfAnother,
      this.#claimOfAnothersToken,
      this.#voidOfAnothersToken,
      this.#eventOfAnothersUse,
      this.#saleOfNoTill,
      ...forgedAlarms(chance, facts, this.watch.alarmOperators),
    ]
  }

  next(db: Connection): JournalBody | undefined {
    return this.#chance.one(this.#kinds)(db)
  }

  notice(deviceId: string): string {
    const { agentId, storeId, signer, nowMs } = this.#facts()
    const releasedS = Math.floor(nowMs / 1_000)
    const claims: ReleaseNotice = {
      aud: storeId,
      iat: releasedS,
      exp: releasedS + RELEASE_NOTICE_LIFE,
      iss: agentId,
      deviceId,
      protectionAction: 'deactivate_label',
      releasedS,
      ...(this.#chance.happens(0.3) && { epc: 'E28000000000000000000001' }),
      proof: this.#chance.one([{ receipt: '2KCE3IQBE4CE', ordinal: 0 }, { token: 'a.b.c' }]),
    }
    return signDocument(DOCUMENT_KINDS.release, claims, signer)
  }

  saleNotice(db: Connection): string | undefined {
    const epc = this.#epcForSale(db)
    if (epc === undefined) return undefined
    const { agentId, storeId, signer, nowMs } = this.#facts()
    const iat = Math.floor(nowMs / 1_000)
    const tags = [{ name: `E${epc}`, status: 'paid' as const, rank: 1, epoch: 0, ver: null, sale: null }]
    const claims: TillNotice = {
      aud: storeId,
      iat,
      exp: iat + TILL_NOTICE_LIFE,
      iss: agentId,
      tags,
      codes: [],
      pieces: [],
    }
    return signDocument(DOCUMENT_KINDS.tillNotice, claims, signer)
  }

  question(home: string): string {
    const others = this.#facts().others.filter((other) => other !== home)
    return this.#report({
      aud: home,
      iss: this.#one(others) ?? 'agt_of_nobody',
      outcome: this.#chance.one([undefined, 'failed']),
    })
  }

  #newId(kind: string) {
    return `${kind}_lie_${++this.#count}`
  }

  #one<T>(rows: readonly T[]) {
    return rows.length === 0 ? undefined : this.#chance.one(rows)
  }

  #row(evidence: Evidence): JournalBody {
    return { atMs: Math.floor(this.#facts().nowMs), evidence }
  }

  #unitIn(db: Connection): Unit | undefined {
    const units = db
      .prepare<[string, number], Unit>(
        `SELECT p.cti AS cti, u.receipt_index AS ordinal FROM purchase p JOIN purchase_unit u ON u.purchase_id = p.purchase_id
         WHERE p.store_id = ? AND p.cti IS NOT NULL AND u.receipt_index IS NOT NULL ORDER BY u.rowid DESC LIMIT ?`,
      )
      .all(this.#facts().storeId, NEWEST)
    return this.#one(units)
  }

  #tokenIn(db: Connection): { nonce: string; device: string } | undefined {
    const tokens = db
      .prepare<[string, number], { nonce: string; device: string }>(
        'SELECT nonce, device_id AS device FROM protection_authorization WHERE agent_id IS NOT NULL AND agent_id <> ? ORDER BY rowid DESC LIMIT ?',
      )
      .all(this.#facts().agentId, NEWEST)
    return this.#one(tokens)
  }

  /** Signs an outcome report as the liar; `iss` may name an honest agent. */
  #report(claims: Partial<HomeRequest>): string {
    const { agentId, signer, others, nowMs } = this.#facts()
    const iat = Math.floor(nowMs / 1_000)
    const made: HomeRequest = {
      aud: agentId,
      iat,
      exp: iat + 60,
      iss: this.#chance.one([agentId, ...others]),
      jti: 'a'.repeat(22),
      homeEpoch: this.#facts().ownEpoch ?? 0,
      redemptionId: '',
      cti: 'ab'.repeat(16),
      rightClass: 'release',
      candidates: [0, 1, 2],
      all: false,
      receiptExp: iat,
      outcome: 'failed',
      ...claims,
    }
    return signDocument(DOCUMENT_KINDS.homeRequest, made, signer)
  }

  #delegated(unit: Unit, redemptionId: string, change: Partial<Extract<Evidence, { kind: 'delegated' }>>) {
    return this.#row({
      kind: 'delegated',
      redemptionId,
      nonce: unit.cti,
      rightClass: this.#chance.one(RIGHT_CLASSES),
      ordinals: [unit.ordinal],
      agentId: this.#chance.one(this.#facts().others),
      ...change,
    })
  }

  readonly #delegatedByNoHome = (db: Connection): JournalBody | undefined => {
    const { storeId, ownEpoch } = this.#facts()
    const unit = this.#unitIn(db)
    const store = db.prepare<[string], { policy: string }>('SELECT policy FROM store WHERE store_id = ?').get(storeId)
    if (!unit || !store) return undefined
    const { homeEpoch: present = 0 } = JSON.parse(store.policy) as { homeEpoch?: number }
    const epochs = [present, present + 1, 0, undefined].filter((epoch) => epoch !== ownEpoch)
    const homeEpoch = this.#chance.one(epochs)
    const redemptionId = this.#newId('rdm')
    this.watch.delegations.add(redemptionId)
    return this.#delegated(unit, redemptionId, homeEpoch === undefined ? {} : { homeEpoch })
  }

  readonly #delegatedToUnknownAgent = (db: Connection): JournalBody | undefined => {
    const { ownEpoch } = this.#facts()
    const unit = this.#unitIn(db)
    if (!unit || ownEpoch === undefined) return undefined
    const redemptionId = this.#newId('rdm')
    this.watch.delegations.add(redemptionId)
    return this.#delegated(unit, redemptionId, { homeEpoch: ownEpoch, agentId: 'agt_of_nobody' })
  }

  // A valid delegation from the epoch in which the liar was the home. The cloud must accept it.
  readonly #delegatedInOwnEpoch = (db: Connection): JournalBody | undefined => {
    const { ownEpoch, others } = this.#facts()
    const unit = this.#unitIn(db)
    if (!unit || ownEpoch === undefined || this.#ownDelegations.length >= OWN_DELEGATIONS_LIMIT) return undefined
    const delegation = {
      ...unit,
      redemptionId: this.#newId('rdm'),
      holder: this.#chance.one(others),
      rightClass: this.#chance.one(RIGHT_CLASSES),
    }
    this.#ownDelegations.push(delegation)
    const { redemptionId, holder: agentId, rightClass } = delegation
    return this.#delegated(unit, redemptionId, { homeEpoch: ownEpoch, agentId, rightClass })
  }

  // The policy names the liar not in `tillSales.agents`.
  readonly #saleOfNoTill = (db: Connection): JournalBody | undefined => {
    const epc = this.#epcForSale(db)
    if (epc === undefined) return undefined
    const saleId = this.#newId('sale')
    this.watch.sales.add(saleId)
    const occurredAt = new Date(this.#facts().nowMs).toISOString()
    const lines = [{ name: 'Lüge', quantity: 1, priceUnit: 100, vat: 19 as const, epcs: [epc] }]
    return this.#row({ kind: 'sale', sale: { saleId, occurredAt, lines, codeHashes: [] }, items: [0, 0] })
  }

  #epcForSale(db: Connection): string | undefined {
    const sql =
      "SELECT epc FROM protected_item WHERE store_id = ? AND epc IS NOT NULL AND item_status = 'sellable' ORDER BY rowid DESC LIMIT ?"
    return this.#one(db.prepare<[string, number], { epc: string }>(sql).all(this.#facts().storeId, NEWEST))?.epc
  }

  readonly #returnedWithoutReport = (): JournalBody | undefined => {
    const delegation = this.#one(this.#ownDelegations)
    if (!delegation) return undefined
    const { redemptionId, holder, cti, rightClass, ordinal } = delegation
    this.watch.unreportedReturns.add(redemptionId)
    const forged = this.#report({ iss: holder, redemptionId, cti, rightClass, candidates: [ordinal] })
    const text = this.#chance.one([
      undefined,
      forged,
      this.#report({ redemptionId, cti, rightClass, candidates: [ordinal] }),
    ])
    return this.#row({
      kind: 'delegation_returned',
      redemptionId,
      outcome: 'failed',
      ...(text !== undefined && { report: text }),
    })
  }

  readonly #returnedForOtherHome = (db: Connection): JournalBody | undefined => {
    const known = db
      .prepare<[string, number], { redemption_id: string }>(
        "SELECT redemption_id FROM delegated_right WHERE home_agent_id <> ? AND state <> 'failed' ORDER BY rowid DESC LIMIT ?",
      )
      .all(this.#facts().agentId, NEWEST)
    const redemptionId = this.#one(known)?.redemption_id
    if (redemptionId === undefined) return undefined
    this.watch.foreignReturns.add(redemptionId)
    const outcome = this.#chance.one(['failed', 'unknown'] as const)
    return this.#row({
      kind: 'delegation_returned',
      redemptionId,
      outcome,
      report: this.#report({ redemptionId, outcome }),
    })
  }

  readonly #outcomeOfAnother = (db: Connection): JournalBody | undefined => {
    const known = db
      .prepare<[string, number], { redemption_id: string }>(
        'SELECT redemption_id FROM redemption WHERE agent_id IS NOT NULL AND agent_id <> ? ORDER BY rowid DESC LIMIT ?',
      )
      .all(this.#facts().agentId, NEWEST)
    const redemptionId = this.#one(known)?.redemption_id
    if (redemptionId === undefined) return undefined
    this.watch.outcomes.add(redemptionId)
    return this.#row({
      kind: 'outcome',
      redemptionId,
      outcome: this.#chance.one(['confirmed', 'failed', 'unknown'] as const),
    })
  }

  readonly #claimOfAnothersToken = (db: Connection): JournalBody | undefined => {
    const token = this.#tokenIn(db)
    if (!token) return undefined
    const redemptionId = this.#newId('rdm')
    this.watch.claims.add(redemptionId)
    const claim = { kind: 'claim', redemptionId, nonce: token.nonce, source: 'token' } as const
    return this.#row({ ...claim, rightClass: this.#chance.one(RIGHT_CLASSES), ordinals: [0], deviceId: token.device })
  }

  readonly #voidOfAnothersToken = (db: Connection): JournalBody | undefined => {
    const token = this.#tokenIn(db)
    if (!token) return undefined
    this.watch.voids.add(token.nonce)
    return this.#row({ kind: 'void', nonce: token.nonce })
  }

  readonly #eventOfAnothersUse = (db: Connection): JournalBody | undefined => {
    const token = this.#tokenIn(db)
    if (!token) return undefined
    const { storeId, nowMs } = this.#facts()
    const eventId = this.#newId('evt')
    this.watch.events.add(eventId)
    const type = this.#chance.one(['protection.action.completed', 'protection.action.failed'] as const)
    const occurredAt = new Date(nowMs).toISOString()
    const event = { type, eventId, occurredAt, storeId, deviceId: token.device, replayProtectedNonce: token.nonce }
    return { atMs: Math.floor(nowMs), event }
  }
}
