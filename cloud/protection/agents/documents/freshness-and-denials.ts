import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import type { DenyClaims, DenyEntry, FreshClaims } from '../../../../policy/documents/store-documents.ts'
import type { Tenant } from '../../../platform/foundation/caller.ts'
import type { Services, Call } from '../../../platform/operations/operation.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { policyDocumentOf, type PolicyDocument } from '../../store-policy/policy-document.ts'
import { itemsHead } from './item-pages.ts'
import type { CommandClaims } from '../../../../policy/documents/agent-messages.ts'
import type { AgentCommand } from '../../../platform/foundation/ports.ts'

/** Commands for an agent. The cloud sends them over the broker and with the agent's documents. */

const COMMAND_LIFE = 60
/** Time after the expiry of a token in which an agent with a slow clock may still honour the token, s. */
const GUARD_SECONDS = 60
/** Maximum number of void commands in one response. The next response contains the rest. */
const VOIDS_AT_ONCE = 50

/** Signs a command for this agent (`cmd+jwt`). */
export function signCommand(
  agentId: string,
  command: AgentCommand,
  { authority, platform }: Pick<Services, 'authority' | 'platform'>,
): string {
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const jti = Buffer.from(platform.random.bytes(16)).toString('base64url')
  const claims: CommandClaims = { aud: agentId, iat, exp: iat + COMMAND_LIFE, jti, ...command }
  return signDocument(DOCUMENT_KINDS.command, claims, authority.freshnessSigner)
}

const openVoids = prepared((db, p: { agentId: string; sinceS: number }) =>
  db
    .selectFrom('protection_authorization')
    .select('nonce')
    .where('agent_id', '=', p.agentId)
    .where('void_asked_ms', 'is not', null)
    .where('voided_ms', 'is', null)
    .where('exp', '>', p.sinceS)
    .orderBy('exp')
    .limit(VOIDS_AT_ONCE),
)

/** Signed commands that the agent has not answered yet. */
export async function pendingCommands({ db, nowMs, services }: Call, agentId: string): Promise<string[]> {
  const rows = await openVoids(db, { agentId, sinceS: Math.floor(nowMs / 1_000) - GUARD_SECONDS })
  return rows.map(({ nonce }) => signCommand(agentId, { command: 'void', nonce }, services))
}

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
  store: Row<'store'>,
  services: Services,
  policy?: PolicyDocument,
): Promise<string> {
  const { authority } = services
  const timeMs = authority.clock.nowMs()
  const iat = Math.floor(timeMs / 1_000)
  const { keySet, timeEpoch } = await authority.readyWithin(db, store.tenant as Tenant)
  const { claims: named, hash } = policy ?? (await policyDocumentOf(db, store, services))
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
  store: Row<'store'>,
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
