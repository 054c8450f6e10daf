import { layoutsOf } from '../../shop/catalogue/scanned-product.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import {
  contentHash,
  LEDGER_DAYS,
  REVOKED_TILLS_LIMIT,
  type OperatorRecord,
  lotKey,
  type PolicyClaims,
} from '../../../policy/documents/store-documents.ts'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import type { SecurityTagMode } from '../../../policy/vocabulary.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { readValue, writeValue } from '../../platform/persistence/installation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { recallsIn, stopsWholeProduct } from '../items/recalls.ts'
import { isMoveOpen } from '../receipt-home/home-move.ts'
import { deviceFacts, publishedDevices } from '../store-facts/device-queries.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'

/**
 * Builds the policy document of a store, at every request, from the rows of the store, its operators, agents and
 * devices. The store row contains the version of the document.
 */

const POLICY_LIFE = 80 * 3_600
const AGENTS_LIMIT = 200

const operatorsOf = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('operator')
    .innerJoin('store_key', 'store_key.store_id', 'operator.store_id')
    .select(['operator.operator_id', 'operator.name', 'operator.verifiers', 'store_key.key_id'])
    .where('operator.store_id', '=', p.storeId)
    .where('operator.removed_ms', 'is', null)
    .orderBy('operator.operator_id'),
)
const revokedTillsIn = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('till_revocation')
    .select(['till_id', 'since_ms'])
    .where('store_id', '=', p.storeId)
    .orderBy('till_id')
    .limit(REVOKED_TILLS_LIMIT),
)
const agentsHere = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('agent')
    .select(['agent_id', 'x', 'next_x', 'home_url'])
    .where('store_id', '=', p.storeId)
    .where('revoked_ms', 'is', null)
    .orderBy('agent_id')
    .limit(AGENTS_LIMIT),
)
const moveOf = prepared((db, p: { storeId: string }) =>
  db.selectFrom('home_move').selectAll().where('store_id', '=', p.storeId),
)
/** Claims of the store's current policy with their content hash. */
export async function policyDocumentOf(db: Db, store: Row<'store'>, { authority }: Services): Promise<PolicyDocument> {
  const claims = await policyClaims(db, store, {
    iat: Math.floor(authority.clock.nowMs() / 1_000),
    epoch: authority.documentEpoch,
  })
  return { claims, hash: contentHash(claims) }
}

/**
 * Claims of the policy with the issue time `iat` (s). The caller passes the time: a signed policy needs trusted time,
 * the size check does not.
 */
export async function policyClaims(
  db: Db,
  store: Row<'store'>,
  { iat, epoch }: { iat: number; epoch: number },
): Promise<PolicyClaims> {
  const operators = await operatorsOf(db, { storeId: store.store_id })
  // `minAgent` is outside `policy`: an older agent that cannot parse `policy` can still read `minAgent`.
  const { minAgent, ...policy } = policyOf(store)
  return {
    iss: store.tenant,
    aud: store.store_id,
    iat,
    exp: iat + POLICY_LIFE,
    epoch,
    ver: store.document_version,
    securityTagMode: store.security_tag_mode as SecurityTagMode,
    ...(minAgent !== undefined && { minAgent }),
    policy,
    storeName: store.trading_name,
    agents: await agentsOf(db, store.store_id),
    ...(await homeMoveOf(db, store.store_id)),
    ...(await ledgerDaysOf(db)),
    devices: (await publishedDevices(db, store.store_id)).map((row) => ({
      ...deviceFacts(row, store),
      name: row.name,
    })),
    operators: operators.map((row) => ({
      operatorId: row.operator_id,
      name: row.name,
      ...(JSON.parse(row.verifiers) as Pick<OperatorRecord, 'pin' | 'badge' | 'card'>),
    })),
    ...(operators[0] && { storeKey: operators[0].key_id }),
    ...(await recalledGoodsOf(db, store)),
    ...(await revokedTillsOf(db, store.store_id)),
    ...(store.in_store_codes !== null && { inStoreCodes: layoutsOf(store) }),
  }
}

export interface PolicyDocument {
  readonly claims: PolicyClaims
  readonly hash: string
}

/** Signs the policy for agents. */
export function signPolicy({ claims }: PolicyDocument, { authority }: Services): string {
  return signDocument(DOCUMENT_KINDS.policy, claims, authority.policySigner)
}

async function agentsOf(db: Db, storeId: string): Promise<NonNullable<PolicyClaims['agents']>> {
  const rows = await agentsHere(db, { storeId })
  return rows.map((row) => ({
    agentId: row.agent_id,
    keys: [row.x, ...(row.next_x === null ? [] : [row.next_x])],
    url: row.home_url,
  }))
}

async function recalledGoodsOf(
  db: Db,
  store: Row<'store'>,
): Promise<Pick<PolicyClaims, 'recalledGtins' | 'recalledLots'>> {
  const here = (await recallsIn(db, store)).all
  const gtins = here.flatMap((recall) => (stopsWholeProduct(recall) ? (toGtin14(recall.ean) ?? []) : []))
  const lots = here.flatMap(({ ean, lot }) => (lot === null ? [] : lotKey(toGtin14(ean) ?? ean, lot)))
  return {
    ...(gtins.length > 0 && { recalledGtins: [...new Set(gtins)].sort() }),
    ...(lots.length > 0 && { recalledLots: [...new Set(lots)].sort() }),
  }
}

async function revokedTillsOf(db: Db, storeId: string): Promise<Pick<PolicyClaims, 'revokedTills'>> {
  const rows = await revokedTillsIn(db, { storeId })
  return rows.length > 0
    ? { revokedTills: rows.map((row) => ({ tillId: row.till_id, since: Math.floor(row.since_ms / 1_000) })) }
    : {}
}

async function homeMoveOf(db: Db, storeId: string): Promise<Pick<PolicyClaims, 'homeMove'>> {
  const [row] = await moveOf(db, { storeId })
  if (!row) return {}
  // Until the move ends, the cloud does not know which deny list number the receipt home needs.
  const denySeq = (await isMoveOpen(db, storeId)) ? Number.MAX_SAFE_INTEGER : row.deny_seq
  return { homeMove: { atS: row.moved_s, denySeq } }
}

/** How long agents keep acknowledged rows. The policies of all stores contain the number unless it is the default. */
const LEDGER_DAYS_NAME = 'retention/ledger'

/** Days for which agents keep acknowledged rows, for a policy. Empty for the default. */
async function ledgerDaysOf(db: Db): Promise<{ ledgerDays?: number }> {
  const days = Number((await readValue(db, LEDGER_DAYS_NAME)) ?? LEDGER_DAYS)
  return days === LEDGER_DAYS ? {} : { ledgerDays: days }
}

/** Stores the number of days. If it changed, every store gets a new policy. */
export async function publishLedgerDays(db: Db, days: number): Promise<void> {
  if (Number((await readValue(db, LEDGER_DAYS_NAME)) ?? LEDGER_DAYS) === days) return
  await writeValue(db, LEDGER_DAYS_NAME, String(days))
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .execute()
}
