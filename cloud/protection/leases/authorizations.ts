import { sql, type SqlBool } from 'kysely'
import { CLOUD_LEDGER, DEVICE_LEDGER } from '../../../policy/documents/authorization.ts'
import type { DeviceCapabilities } from '../../../policy/devices.ts'
import type { IdentifierKind } from '../../../policy/item-identifiers.ts'
import type { ProtectionAction, RightClass, ScanSource } from '../../../policy/vocabulary.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import {
  fieldsOf,
  insertChunks,
  prepared,
  preparedRow,
  preparedRows,
  preparedInsert,
} from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { leaseRights, LEASE_GUARD_MS, type Tries, type UnitKey } from '../rights/rights.ts'
import { deriveAuthorizationState, type DerivedAuthorizationState } from '../../../policy/authorization-state.ts'
import { Failure } from '../../platform/foundation/failure.ts'

/** State of an authorization from its row and redemptions. */
export function viewAuthorization(
  row: Row<'protection_authorization'>,
  redemptions: readonly Row<'redemption'>[],
  nowMs: number,
): DerivedAuthorizationState {
  return deriveAuthorizationState(
    {
      expMs: row.exp * 1_000,
      revokedAtMs: row.revoked_ms ?? row.voided_ms ?? undefined,
      evidence: redemptions.map((r) => ({ redemptionId: r.redemption_id, step: r.step, atMs: r.at_ms })),
    },
    nowMs,
  )
}

/**
 *   issued ──redeemed, each step once──▶ redeemed
 *     ├──revoked by the merchant, or recalled for another device──▶ revoked
 *     └──end of its life──▶ expired
 *
 * Rows of issued authorizations. An issued authorization leases the rights of its units to one device (leases.ts).
 * The token is not stored, because the same row always gives the same token.
 */

/** Life of a token, seconds. */
const TOKEN_LIFE = 300

export interface GrantedUnit {
  key: UnitKey
  tries: Tries
}

interface Grant {
  store: Row<'store'>
  device: Row<'device'>
  action: ProtectionAction
  rightClass: RightClass
  /** Item of an item-level token; absent for a purchase-wide token. */
  item?: { kind: IdentifierKind; id: string }
  itemId: string | null
  purchaseId: string | null
  /** Units to lease, in the order of the token's steps; empty if it uses no right. */
  units: readonly GrantedUnit[]
  riskClass: number
  /** Id of the event `protection.authorization.granted`. */
  eventId: string
  operatorId: string | null
  scanSource: ScanSource | undefined
}

const ledgerOfAgent = prepared((db, p: { agentId: string }) =>
  db
    .selectFrom('agent')
    .select(['ledger_id', 'generation', 'revoked_ms', 'fork_ms', 'online_only_until_ms'])
    .where('agent_id', '=', p.agentId),
)

const insertAuthorization = prepared((db, p: Row<'protection_authorization'>) =>
  db
    .insertInto('protection_authorization')
    .values(
      fieldsOf(p, [
        ...([
          'nonce',
          'tenant',
          'store_id',
          'device_id',
          'agent_id',
          'ledger',
          'action',
          'right_class',
          'count',
          'purchase_id',
          'item_id',
        ] as const),
        ...([
          'ith_kind',
          'ith_id',
          'event_id',
          'risk_class',
          'policy_version',
          'key_version',
          'iat',
          'exp',
          'operator_id',
          'scan_source',
          'exchanges',
        ] as const),
      ]),
    ),
)
const insertUnits = preparedInsert((db, rows: readonly Row<'authorization_unit'>[]) =>
  db.insertInto('authorization_unit').values(rows),
)

/** Authorization with this nonce, of any tenant. */
export const findAuthorization = preparedRow((db, nonce: string) =>
  db.selectFrom('protection_authorization').selectAll().where('nonce', '=', nonce),
)

/** Units that the authorization covers, in the order of its steps. */
export const unitsOfAuthorization = preparedRows((db, nonce: string) =>
  db.selectFrom('authorization_unit').selectAll().where('nonce', '=', nonce).orderBy('ordinal'),
)

/** Redemptions of an authorization, oldest first. */
export const redemptionsOf = preparedRows((db, nonce: string) =>
  db.selectFrom('redemption').selectAll().where('nonce', '=', nonce).orderBy('at_ms').orderBy('redemption_id'),
)

/**
 * Stores a new authorization. Leases the units to the device until the authorization expires, plus `LEASE_GUARD_MS`.
 */
export async function issueAuthorization(
  call: Call,
  tenant: Tenant,
  grant: Grant,
): Promise<Row<'protection_authorization'>> {
  const { db, services } = call
  const { platform, authority } = services
  await assertResynced(call, grant.store.store_id)
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const { ledger } = await tokenLedger(call, grant.device)
  const row: Row<'protection_authorization'> = {
    nonce: Buffer.from(platform.random.bytes(16)).toString('base64url'),
    tenant,
    store_id: grant.store.store_id,
    device_id: grant.device.device_id,
    agent_id: ledger === CLOUD_LEDGER ? null : grant.device.agent_id,
    ledger,
    action: grant.action,
    right_class: grant.rightClass,
    count: Math.max(1, grant.units.length),
    purchase_id: grant.purchaseId,
    item_id: grant.itemId,
    ith_kind: grant.item?.kind ?? null,
    ith_id: grant.item?.id ?? null,
    event_id: grant.eventId,
    risk_class: grant.riskClass,
    policy_version: grant.store.document_version,
    key_version: authority.keysOf(tenant).keySet.ver,
    iat,
    exp: iat + TOKEN_LIFE,
    revoked_ms: null,
    voided_ms: null,
    void_asked_ms: null,
    exchanges: 0,
    operator_id: grant.operatorId,
    scan_source: grant.scanSource ?? null,
  }
  await insertAuthorization(db, row)
  const lease = { nonce: row.nonce, deviceId: row.device_id, untilMs: row.exp * 1_000 + LEASE_GUARD_MS }
  const units = grant.units.map(({ key }, ordinal) => ({
    nonce: row.nonce,
    ordinal,
    line_id: key.lineId,
    unit_no: key.unitNo,
  }))
  for (const chunk of insertChunks(units)) await insertUnits(db, chunk)
  await leaseRights(db, grant.units, lease)
  return row
}

/**
 * True if only the cloud can claim the authorization, so that the cloud can end its lease at once. Another
 * authorization may be used until it has expired, because its ledger may be offline.
 */
export function isClaimedByCloud({ ledger }: Pick<Row<'protection_authorization'>, 'ledger'>): boolean {
  return ledger === CLOUD_LEDGER
}

/**
 * Ledger that may redeem a token for this device, and whether the agent's ledger is untrusted. For an untrusted ledger
 * only the agent itself gets a token, for one request. A program gets a token for the cloud's ledger. When the agent
 * reads such a token, the agent sends the token to the cloud and gets a token for its own ledger.
 */
async function tokenLedger(call: Call, device: Row<'device'>): Promise<{ ledger: string; isUntrusted: boolean }> {
  const [agent] = device.agent_id === null ? [] : await ledgerOfAgent(call.db, { agentId: device.agent_id })
  if (device.agent_id === null) return { ledger: ledgerWithoutAgent(device), isUntrusted: false }
  if (!agent || agent.revoked_ms !== null) return { ledger: CLOUD_LEDGER, isUntrusted: false }
  const { fork_ms, online_only_until_ms } = agent
  const isUntrusted = fork_ms !== null || (online_only_until_ms !== null && online_only_until_ms > call.nowMs)
  const isOwnRequest = call.caller.kind === 'agent' && call.caller.agentId === device.agent_id
  return { ledger: isUntrusted && !isOwnRequest ? CLOUD_LEDGER : ledgerName(agent), isUntrusted }
}

/** Name of an agent's ledger in tokens. */
export function ledgerName({ ledger_id, generation }: Pick<Row<'agent'>, 'ledger_id' | 'generation'>): string {
  return `${ledger_id}.${generation}`
}

function ledgerWithoutAgent({ capabilities }: Row<'device'>): string {
  return (JSON.parse(capabilities) as DeviceCapabilities).supportsOfflineAuth ? DEVICE_LEDGER : CLOUD_LEDGER
}

/** True if each claim at this device needs the cloud. */
export async function isLedgerUntrusted(call: Call, device: Row<'device'>): Promise<boolean> {
  return (await tokenLedger(call, device)).isUntrusted
}

/**
 * True if the device may get this authorization again. An authorization for an untrusted ledger works for one request
 * only.
 */
export async function mayReissue(
  call: Call,
  row: Row<'protection_authorization'>,
  device: Row<'device'>,
): Promise<boolean> {
  const { ledger, isUntrusted } = await tokenLedger(call, device)
  return row.ledger === ledger && (ledger === CLOUD_LEDGER || !isUntrusted)
}

/** Updates columns of an authorization. Returns the changed row. */
export async function updateAuthorization(
  db: Db,
  row: Row<'protection_authorization'>,
  change: Partial<Row<'protection_authorization'>>,
): Promise<Row<'protection_authorization'>> {
  await db.updateTable('protection_authorization').set(change).where('nonce', '=', row.nonce).execute()
  return { ...row, ...change }
}

/** Time after the expiry of a token in which an agent with a slow clock may still honour the token, s. */
const GUARD_SECONDS = 60

/**
 * Latest expiry of the authorizations of a device that is moving to another agent, s since 1970; null if there are none.
 * Only authorizations that the former agent may still honour: not voided, not used up, and expired at most a minute ago.
 */
export async function outstandingUntil(
  db: Db,
  device: Pick<Row<'device'>, 'device_id' | 'agent_id'>,
  nowMs: number,
): Promise<number | null> {
  if (device.agent_id === null) return null
  const { exp } = await db
    .selectFrom('protection_authorization as a')
    .select((eb) => eb.fn.max('exp').as('exp'))
    .where('device_id', '=', device.device_id)
    .where('agent_id', '=', device.agent_id)
    .where('exp', '>', Math.floor(nowMs / 1_000) - GUARD_SECONDS)
    // The move has recalled all these leases, so this condition excludes none of them. The condition only makes the
    // query faster, because it excludes other rows early.
    .where('void_asked_ms', 'is not', null)
    .where('voided_ms', 'is', null)
    .where(sql<SqlBool>`(SELECT COUNT(*) FROM redemption r WHERE r.nonce = a.nonce) < a.count`)
    .executeTakeFirstOrThrow()
  return exp === null ? null : Number(exp)
}

/** Latest time at which a device's move ends, s since 1970. */
export async function moveEndsAt(db: Db, device: Row<'device'>, nowMs: number): Promise<number> {
  const exp = await outstandingUntil(db, device, nowMs)
  return Math.max(Math.ceil(nowMs / 1_000), exp === null ? 0 : exp + GUARD_SECONDS)
}

/** Time after a restore in which agents may still use tokens that the restored cloud does not know, ms (ADR restored-cloud). */
export const RESYNC_MS = 11 * 60_000
const RETRY_SECONDS = 10

/**
 * Throws `unavailable` with `retryAfter` while agents of the store may know of uses that the restored cloud lost, or
 * devices that work offline may hold tokens that it lost.
 */
export async function assertResynced(
  { db, nowMs, services }: Pick<Call, 'db' | 'nowMs' | 'services'>,
  storeId: string,
): Promise<void> {
  const leftMs = services.authority.restoredMs + RESYNC_MS - nowMs
  if (leftMs <= 0) return
  const awaited = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('store_id', '=', storeId)
    .where('resync', '=', 'awaited')
    .where('revoked_ms', 'is', null)
    .limit(1)
    .executeTakeFirst()
  if (!awaited && !(await hasOfflineDevice(db, storeId))) return
  const retryAfter = Math.min(RETRY_SECONDS, Math.ceil(leftMs / 1_000))
  throw new Failure(
    'unavailable',
    'the cloud was restored from a backup and grants nothing here until the store’s agents have reported recent uses: try again',
    { reason: 'resyncing', retryAfter },
  )
}

/** True if a device without an agent may hold a token that the restored cloud does not know. */
async function hasOfflineDevice(db: Db, storeId: string): Promise<boolean> {
  const rows = await db
    .selectFrom('device')
    .select('capabilities')
    .where('store_id', '=', storeId)
    .where('agent_id', 'is', null)
    .where('revoked_ms', 'is', null)
    .execute()
  return rows.some(({ capabilities }) => (JSON.parse(capabilities) as DeviceCapabilities).supportsOfflineAuth)
}

/** Marks that the agent has sent all its rows again to the restored cloud. */
export async function markResynced(
  { db, services }: Pick<Call, 'db' | 'services'>,
  agentId: string,
  cloudGeneration: number,
): Promise<void> {
  if (cloudGeneration !== services.authority.cloudGeneration) return
  await db
    .updateTable('agent')
    .set({ resync: null })
    .where('agent_id', '=', agentId)
    .where('resync', 'is not', null)
    .execute()
}
