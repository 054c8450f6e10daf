import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'
import {
  contentHash,
  type DenyClaims,
  type DenyEntry,
  type FreshClaims,
  type OperatorRecord,
  type PolicyClaims,
} from '../../../policy/documents/store-documents.ts'
import type { SecurityTagMode } from '../../../policy/vocabulary.ts'
import type { Tenant } from '../../foundation/caller.ts'
import type { Services } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { deviceFacts, devicesTold } from '../../protection/store-documents/device-queries.ts'
import { isAnyoneWaitedFor } from '../../protection/receipt-home/home-move.ts'
import { itemsHead } from './item-pages.ts'
import { policyOf } from '../../protection/store-documents/policy.ts'

/**
 * What the agents of a store are told, made from the rows whenever somebody asks: signing takes
 * microseconds, and a copy that is not kept cannot be out of date. Versions are kept with the rows.
 */

const POLICY_LIFE = 80 * 3_600
const FRESH_LIFE = 80 * 3_600
const DENY_LIFE = 80 * 3_600
/** Entries in one page of the deny list. */
const DENY_PAGE = 500
/** Base64url makes four characters of three, and the whole stays below a bundle: an entry names up to all units of a purchase. */
const DENY_CHARACTERS = 150_000
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
const entriesBehind = prepared((db, p: { storeId: string; after: number; nowS: number }) =>
  db
    .selectFrom('deny_entry')
    .selectAll()
    .where('store_id', '=', p.storeId)
    .where('seq', '>', p.after)
    .where('until_s', '>', p.nowS)
    .orderBy('seq')
    .limit(DENY_PAGE),
)

/** The store's current policy and operators with the hash of what they say; signed by whoever sends them. */
export async function policyOfStore(db: Db, store: StoreRow, { authority }: Services): Promise<StorePolicy> {
  const claims = await policyClaims(db, store, {
    iat: Math.floor(authority.clock.nowMs() / 1_000),
    epoch: authority.documentEpoch,
  })
  return { claims, hash: contentHash(claims) }
}

/** What it says, issued at this time (s); of nothing that is signed the clock need not be sure. */
export async function policyClaims(
  db: Db,
  store: StoreRow,
  { iat, epoch }: { iat: number; epoch: number },
): Promise<PolicyClaims> {
  const operators = await operatorsOf(db, { storeId: store.store_id })
  // Beside the policy and not in it: an older release could not read the one and must find the other.
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
    devices: (await devicesTold(db, store.store_id)).map((row) => ({ ...deviceFacts(row, store), name: row.name })),
    operators: operators.map((row) => ({
      operatorId: row.operator_id,
      name: row.name,
      ...(JSON.parse(row.verifiers) as Pick<OperatorRecord, 'pin' | 'badge' | 'card'>),
    })),
    ...(operators[0] && { storeKey: operators[0].key_id }),
  }
}

export interface StorePolicy {
  readonly claims: PolicyClaims
  readonly hash: string
}

/** The policy as agents take it. */
export function signPolicy({ claims }: StorePolicy, { authority }: Services): string {
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

async function homeMoveOf(db: Db, storeId: string): Promise<Pick<PolicyClaims, 'homeMove'>> {
  const [row] = await moveOf(db, { storeId })
  if (!row) return {}
  // Nobody knows yet how far the list will go: further than any list does.
  const denySeq = (await isAnyoneWaitedFor(db, storeId)) ? Number.MAX_SAFE_INTEGER : row.deny_seq
  return { homeMove: { atS: row.moved_s, denySeq } }
}

/** The heads of everything a store's agents should have, with the time. `policy`: as it was read for the same answer. */
export async function freshDocument(
  db: Db,
  store: StoreRow,
  services: Services,
  policy?: StorePolicy,
): Promise<string> {
  const { authority } = services
  const timeMs = authority.clock.nowMs()
  const iat = Math.floor(timeMs / 1_000)
  const { keySet, timeEpoch } = await authority.readyWithin(db, store.tenant as Tenant)
  const { claims: named, hash } = policy ?? (await policyOfStore(db, store, services))
  const claims: FreshClaims = {
    aud: store.store_id,
    iat,
    exp: iat + FRESH_LIFE,
    timeMs,
    timeEpoch,
    cloudGeneration: authority.cloudGeneration,
    policy: { epoch: named.epoch, ver: named.ver, hash },
    keys: { epoch: keySet.epoch, ver: keySet.ver, hash: keySet.hash },
    deny: { epoch: 0, ver: store.deny_seq },
    items: await itemsHead(db, store.store_id, services),
  }
  return signDocument(DOCUMENT_KINDS.fresh, claims, authority.freshnessSigner)
}

/** The deny list behind entry `after`, as far as one page goes: without what has ended, so that nobody turns the pages of years. */
export async function denyPage(
  db: Db,
  store: StoreRow,
  after: number,
  { authority }: Services,
): Promise<{ jws: string; ver: number }> {
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const { entries, ver } = fill(await entriesBehind(db, { storeId: store.store_id, after, nowS: iat }), store.deny_seq)
  const claims: DenyClaims = {
    aud: store.store_id,
    iat,
    exp: iat + DENY_LIFE,
    epoch: 0,
    ver,
    after,
    entries,
  }
  return { jws: signDocument(DOCUMENT_KINDS.deny, claims, authority.freshnessSigner), ver }
}

/** As many as one page holds; `ver` is the head when nothing was left out. */
function fill(rows: readonly { seq: number; body: string }[], head: number): { entries: DenyEntry[]; ver: number } {
  const entries: DenyEntry[] = []
  let characters = 0
  for (const { seq, body } of rows) {
    characters += body.length + 1
    if (entries.length > 0 && characters > DENY_CHARACTERS) return { entries, ver: seq - 1 }
    entries.push(JSON.parse(body) as DenyEntry)
  }
  return { entries, ver: rows.length < DENY_PAGE ? head : (rows.at(-1)?.seq ?? head) }
}
