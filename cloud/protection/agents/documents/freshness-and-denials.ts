import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import type { DenyClaims, DenyEntry, FreshClaims } from '../../../../policy/documents/store-documents.ts'
import type { Tenant } from '../../../platform/foundation/caller.ts'
import type { Services } from '../../../platform/operations/operation.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'
import type { StoreRow } from '../../../platform/persistence/tables/stores.ts'
import { policyOfStore, type StorePolicy } from '../../store-policy/store-policy.ts'
import { itemsHead } from './item-pages.ts'

/**
 * The freshness document, which names the current version of every other document of a store, and pages of the deny
 * list.
 */

const FRESH_LIFE = 80 * 3_600
const DENY_LIFE = 80 * 3_600
/** Maximum number of entries in a page of the deny list. */
const DENY_PAGE = 500
/**
 * Maximum size of a page's entries, characters. Base64url adds a third, and the page must fit into one signed document.
 */
const DENY_CHARACTERS = 150_000

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

/**
 * Signs the current versions of a store's documents and the time. `policy`: the store's policy, if the caller has
 * already read it.
 */
export async function freshnessDocument(
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

/** Signs one page of the deny list: unexpired entries after sequence number `after`. */
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

/** Fills one page. `ver` is the number up to which the page covers the list. On the last page, `ver` is the head. */
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
