import type { Database as Connection } from 'better-sqlite3'
import type { HomeQuestion } from '../../../policy/documents/home-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { RELEASE_NOTICE_LIFE, type ReleaseNotice } from '../../../policy/documents/release-notice.ts'
import type { Signer } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import type { Evidence, JournalBody } from '../../../policy/journal.ts'
import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import type { Chance } from '../virtual/chance.ts'
import { watchLies, type LieWatch } from '../oracles/lie-oracle.ts'

/** What the lying agent knows of itself and of the store. */
export interface LiarFacts {
  readonly agentId: string
  readonly storeId: string
  readonly signer: Signer
  /** The epoch in which it was the receipt home; undefined until then. */
  readonly ownEpoch: number | undefined
  /** The other agents of the store. */
  readonly others: readonly string[]
  readonly nowMs: number
}

/** Makes up rows that only another agent may send, about what the cloud really has: an attacker may know every id. */
export interface Lies {
  /** A row to send next; undefined when there is nothing yet to lie about. */
  next(db: Connection): JournalBody | undefined
  /** A signed release notice of the liar's own device, whose receipt is none. */
  notice(deviceId: string): string
  /** A question to this home that names another agent as the asker. */
  question(home: string): string
  readonly watch: LieWatch
}

interface Unit {
  cti: string
  ordinal: number
}

/** The newest so many of what there is: old receipts matter to nobody. */
const NEWEST = 6
/** Rights that it gives as the home that it was, at most: each keeps a shopper from one. */
const OWN_GIFTS = 6

/** The lies of one agent. `facts` is asked for at each. */
export function liesOf(chance: Chance, facts: () => LiarFacts): Lies {
  const watch = watchLies()
  const gifts: (Unit & { redemptionId: string; asker: string; rightClass: HomeQuestion['rightClass'] })[] = []
  let count = 0

  const newId = (kind: string) => `${kind}_lie_${++count}`
  const one = <T>(rows: readonly T[]) => (rows.length === 0 ? undefined : chance.one(rows))
  const row = (evidence: Evidence): JournalBody => ({ atMs: Math.floor(facts().nowMs), evidence })

  function unitIn(db: Connection): Unit | undefined {
    const units = db
      .prepare<[string, number], Unit>(
        `SELECT p.cti AS cti, u.receipt_index AS ordinal FROM purchase p JOIN purchase_unit u ON u.purchase_id = p.purchase_id
         WHERE p.store_id = ? AND p.cti IS NOT NULL AND u.receipt_index IS NOT NULL ORDER BY u.rowid DESC LIMIT ?`,
      )
      .all(facts().storeId, NEWEST)
    return one(units)
  }

  function tokenIn(db: Connection): { nonce: string; device: string } | undefined {
    const tokens = db
      .prepare<[string, number], { nonce: string; device: string }>(
        'SELECT nonce, device_id AS device FROM protection_authorization WHERE agent_id IS NOT NULL AND agent_id <> ? ORDER BY rowid DESC LIMIT ?',
      )
      .all(facts().agentId, NEWEST)
    return one(tokens)
  }

  /** Signed by the liar, whoever it says that it is. */
  function report(claims: Partial<HomeQuestion>): string {
    const { agentId, signer, others, nowMs } = facts()
    const iat = Math.floor(nowMs / 1_000)
    const made: HomeQuestion = {
      aud: agentId,
      iat,
      exp: iat + 60,
      iss: chance.one([agentId, ...others]),
      jti: 'a'.repeat(22),
      homeEpoch: facts().ownEpoch ?? 0,
      redemptionId: '',
      cti: 'ab'.repeat(16),
      rightClass: 'release',
      candidates: [0, 1, 2],
      all: false,
      receiptExp: iat,
      outcome: 'failed',
      ...claims,
    }
    return signDocument(DOCUMENT_KINDS.homeQuestion, made, signer)
  }

  const given = (unit: Unit, redemptionId: string, change: Partial<Extract<Evidence, { kind: 'given' }>>) =>
    row({
      kind: 'given',
      redemptionId,
      nonce: unit.cti,
      rightClass: chance.one(RIGHT_CLASSES),
      ordinals: [unit.ordinal],
      agentId: chance.one(facts().others),
      ...change,
    })

  const kinds: ((db: Connection) => JournalBody | undefined)[] = [
    function givenByNoHome(db) {
      const { storeId, ownEpoch } = facts()
      const unit = unitIn(db)
      const store = db.prepare<[string], { policy: string }>('SELECT policy FROM store WHERE store_id = ?').get(storeId)
      if (!unit || !store) return undefined
      const { homeEpoch: present = 0 } = JSON.parse(store.policy) as { homeEpoch?: number }
      const epochs = [present, present + 1, 0, undefined].filter((epoch) => epoch !== ownEpoch)
      const homeEpoch = chance.one(epochs)
      const redemptionId = newId('rdm')
      watch.given.add(redemptionId)
      return given(unit, redemptionId, homeEpoch === undefined ? {} : { homeEpoch })
    },
    function givenToNobody(db) {
      const { ownEpoch } = facts()
      const unit = unitIn(db)
      if (!unit || ownEpoch === undefined) return undefined
      const redemptionId = newId('rdm')
      watch.given.add(redemptionId)
      return given(unit, redemptionId, { homeEpoch: ownEpoch, agentId: 'agt_of_nobody' })
    },
    // The home that it was might have given this: it counts.
    function givenInItsOwnEpoch(db) {
      const { ownEpoch, others } = facts()
      const unit = unitIn(db)
      if (!unit || ownEpoch === undefined || gifts.length >= OWN_GIFTS) return undefined
      const gift = {
        ...unit,
        redemptionId: newId('rdm'),
        asker: chance.one(others),
        rightClass: chance.one(RIGHT_CLASSES),
      }
      gifts.push(gift)
      const { redemptionId, asker: agentId, rightClass } = gift
      return given(unit, redemptionId, { homeEpoch: ownEpoch, agentId, rightClass })
    },
    function givenBackWithoutTheAsker() {
      const gift = one(gifts)
      if (!gift) return undefined
      const { redemptionId, asker, cti, rightClass, ordinal } = gift
      watch.gifts.add(redemptionId)
      const forged = report({ iss: asker, redemptionId, cti, rightClass, candidates: [ordinal] })
      const text = chance.one([undefined, forged, report({ redemptionId, cti, rightClass, candidates: [ordinal] })])
      return row({ kind: 'given_back', redemptionId, outcome: 'failed', ...(text !== undefined && { report: text }) })
    },
    function givenBackForAnotherHome(db) {
      const known = db
        .prepare<[string, number], { redemption_id: string }>(
          "SELECT redemption_id FROM given_right WHERE home_agent_id <> ? AND state <> 'failed' ORDER BY rowid DESC LIMIT ?",
        )
        .all(facts().agentId, NEWEST)
      const redemptionId = one(known)?.redemption_id
      if (redemptionId === undefined) return undefined
      watch.givenBack.add(redemptionId)
      const outcome = chance.one(['failed', 'unknown'] as const)
      return row({ kind: 'given_back', redemptionId, outcome, report: report({ redemptionId, outcome }) })
    },
    function outcomeOfAnother(db) {
      const known = db
        .prepare<[string, number], { redemption_id: string }>(
          'SELECT redemption_id FROM redemption WHERE agent_id IS NOT NULL AND agent_id <> ? ORDER BY rowid DESC LIMIT ?',
        )
        .all(facts().agentId, NEWEST)
      const redemptionId = one(known)?.redemption_id
      if (redemptionId === undefined) return undefined
      watch.outcomes.add(redemptionId)
      return row({ kind: 'outcome', redemptionId, outcome: chance.one(['confirmed', 'failed', 'unknown'] as const) })
    },
    function claimOfAnothersToken(db) {
      const token = tokenIn(db)
      if (!token) return undefined
      const redemptionId = newId('rdm')
      watch.claims.add(redemptionId)
      const claim = { kind: 'claim', redemptionId, nonce: token.nonce, source: 'token' } as const
      return row({ ...claim, rightClass: chance.one(RIGHT_CLASSES), ordinals: [0], deviceId: token.device })
    },
    function voidOfAnothersToken(db) {
      const token = tokenIn(db)
      if (!token) return undefined
      watch.voids.add(token.nonce)
      return row({ kind: 'void', nonce: token.nonce })
    },
    function eventOfAnothersUse(db) {
      const token = tokenIn(db)
      if (!token) return undefined
      const { storeId, nowMs } = facts()
      const eventId = newId('evt')
      watch.events.add(eventId)
      const type = chance.one(['protection.action.completed', 'protection.action.failed'] as const)
      const occurredAt = new Date(nowMs).toISOString()
      const event = { type, eventId, occurredAt, storeId, deviceId: token.device, replayProtectedNonce: token.nonce }
      return { atMs: Math.floor(nowMs), event }
    },
  ]

  return {
    watch,
    next: (db) => chance.one(kinds)(db),
    notice(deviceId) {
      const { agentId, storeId, signer, nowMs } = facts()
      const releasedS = Math.floor(nowMs / 1_000)
      const claims: ReleaseNotice = {
        aud: storeId,
        iat: releasedS,
        exp: releasedS + RELEASE_NOTICE_LIFE,
        iss: agentId,
        deviceId,
        protectionAction: 'deactivate_label',
        releasedS,
        ...(chance.happens(0.3) && { epc: 'E28000000000000000000001' }),
        proof: chance.one([{ receipt: '2KCE3IQBE4CE', ordinal: 0 }, { token: 'a.b.c' }]),
      }
      return signDocument(DOCUMENT_KINDS.release, claims, signer)
    },
    question: (home) => {
      const others = facts().others.filter((other) => other !== home)
      return report({ aud: home, iss: one(others) ?? 'agt_of_nobody', outcome: chance.one([undefined, 'failed']) })
    },
  }
}
