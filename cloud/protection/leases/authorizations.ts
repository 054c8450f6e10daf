import {
  CLOUD_LEDGER,
  itemHash,
  signAuthorization,
  type AuthorizationClaims,
} from '../../../policy/documents/authorization.ts'
import type { IdentifierKind } from '../../../policy/identifiers.ts'
import type { ProtectionAction, RightClass, ScanSource } from '../../../policy/vocabulary.ts'
import type { Tenant } from '../../foundation/caller.ts'
import type { Call, Services } from '../../operations/operation.ts'
import type { Db } from '../../persistence/database.ts'
import { fieldsOf, prepared } from '../../persistence/prepared.ts'
import type {
  AuthorizationUnitRow,
  ProtectionAuthorizationRow,
  RedemptionRow,
} from '../../persistence/tables/protection.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { assertResynced } from './resync.ts'
import { leaseRight, LEASE_GUARD_MS, type Tries, type UnitKey } from '../rights/rights.ts'

/**
 *   issued ──redeemed, each step once──▶ redeemed
 *     ├──revokeProtectionAuthorization, or another device asks──▶ revoked
 *     └──its end──▶ expired
 *
 * Issued authorizations as rows. While one is issued it leases the rights of its units to one device (./leases.ts says who may have
 * them instead). The token is not kept: the same row signs the same text again.
 */

/** Life of a token, seconds. */
export const TOKEN_LIFE = 300

export interface GrantedUnit {
  key: UnitKey
  tries: Tries
}

export interface Grant {
  store: StoreRow
  device: DeviceRow
  action: ProtectionAction
  rightClass: RightClass
  /** What an item-level token is for; absent for a purchase-wide one. */
  item?: { kind: IdentifierKind; id: string }
  itemId: string | null
  purchaseId: string | null
  /** The units whose rights are leased, in the order of the token's steps; none for fixtures. */
  units: readonly GrantedUnit[]
  riskClass: number
  /** Of the event that tells that it was granted. */
  eventId: string
  operatorId: string | null
  scanSource: ScanSource | undefined
}

const authorizationByNonce = prepared((db, p: { nonce: string }) =>
  db.selectFrom('protection_authorization').selectAll().where('nonce', '=', p.nonce),
)
const unitsByNonce = prepared((db, p: { nonce: string }) =>
  db.selectFrom('authorization_unit').selectAll().where('nonce', '=', p.nonce).orderBy('ordinal'),
)
const redemptionsByNonce = prepared((db, p: { nonce: string }) =>
  db.selectFrom('redemption').selectAll().where('nonce', '=', p.nonce).orderBy('at_ms').orderBy('redemption_id'),
)
const ledgerOfAgent = prepared((db, p: { agentId: string }) =>
  db
    .selectFrom('agent')
    .select(['ledger_id', 'generation', 'revoked_ms', 'fork_ms', 'online_only_until_ms'])
    .where('agent_id', '=', p.agentId),
)

const insertAuthorization = prepared((db, p: ProtectionAuthorizationRow) =>
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
        ] as const),
      ]),
    ),
)
const insertUnit = prepared((db, p: { nonce: string; ordinal: number; lineId: string; unitNo: number }) =>
  db
    .insertInto('authorization_unit')
    .values({ nonce: p.nonce, ordinal: p.ordinal, line_id: p.lineId, unit_no: p.unitNo }),
)

/** The authorization with this nonce, of any tenant. */
export async function findAuthorization(db: Db, nonce: string): Promise<ProtectionAuthorizationRow | undefined> {
  const [row] = await authorizationByNonce(db, { nonce })
  return row
}

/** The units that it covers, in their order. */
export function unitsOfAuthorization(db: Db, nonce: string): Promise<AuthorizationUnitRow[]> {
  return unitsByNonce(db, { nonce })
}

/** All that was reported of it, the oldest first. */
export function redemptionsOf(db: Db, nonce: string): Promise<RedemptionRow[]> {
  return redemptionsByNonce(db, { nonce })
}

/** Writes a new authorization and leases the rights of its units to the device until its end and a guard. */
export async function issueAuthorization(
  call: Call,
  tenant: Tenant,
  grant: Grant,
): Promise<ProtectionAuthorizationRow> {
  const { db, services } = call
  const { platform, authority } = services
  await assertResynced(call, grant.store.store_id)
  const iat = Math.floor(authority.clock.nowMs() / 1_000)
  const { ledger } = await tokenLedger(call, grant.device)
  const row: ProtectionAuthorizationRow = {
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
    operator_id: grant.operatorId,
    scan_source: grant.scanSource ?? null,
  }
  await insertAuthorization(db, row)
  const lease = { nonce: row.nonce, deviceId: row.device_id, untilMs: row.exp * 1_000 + LEASE_GUARD_MS }
  for (const [ordinal, { key, tries }] of grant.units.entries()) {
    await insertUnit(db, { nonce: row.nonce, ordinal, lineId: key.lineId, unitNo: key.unitNo })
    await leaseRight(db, key, lease, tries)
  }
  return row
}

/**
 * The ledger that a token for this device may be claimed in, and whether each claim needs our yes: while an agent's ledger may
 * exist twice, or has begun anew, its token is for the very request that asked, never handed out again and to nobody else. What
 * a program is given then is of our own ledger; the agent that is shown it asks us for another in its place (../authorize/presented-token.ts).
 */
async function tokenLedger(call: Call, device: DeviceRow): Promise<{ ledger: string; isDoubted: boolean }> {
  const [agent] = device.agent_id === null ? [] : await ledgerOfAgent(call.db, { agentId: device.agent_id })
  if (!agent || agent.revoked_ms !== null) return { ledger: CLOUD_LEDGER, isDoubted: false }
  const { fork_ms, online_only_until_ms } = agent
  const isDoubted = fork_ms !== null || (online_only_until_ms !== null && online_only_until_ms > call.nowMs)
  const isAsking = call.caller.kind === 'agent' && call.caller.agentId === device.agent_id
  return { ledger: isDoubted && !isAsking ? CLOUD_LEDGER : `${agent.ledger_id}.${agent.generation}`, isDoubted }
}

/** Whether each claim at this device needs our yes. */
export async function isLedgerUntrusted(call: Call, device: DeviceRow): Promise<boolean> {
  return (await tokenLedger(call, device)).isDoubted
}

/** Whether an authorization may be given to its device again: it is for the ledger that one would be for now, and not for one request only. */
export async function mayReissue(call: Call, row: ProtectionAuthorizationRow, device: DeviceRow): Promise<boolean> {
  const { ledger, isDoubted } = await tokenLedger(call, device)
  return row.ledger === ledger && (ledger === CLOUD_LEDGER || !isDoubted)
}

/** Signs the token of an authorization. The same row gives the same text, because Ed25519 signatures are deterministic. */
export function signToken(row: ProtectionAuthorizationRow, { authority }: Services): string {
  const tenant = row.tenant as Tenant
  const claims: AuthorizationClaims = {
    iss: tenant,
    aud: row.device_id,
    iat: row.iat,
    exp: row.exp,
    jti: row.nonce,
    led: row.ledger,
    act: row.action as ProtectionAction,
    cnt: row.count,
    ...(row.ith_kind &&
      row.ith_id && { ith: itemHash(row.device_id, row.nonce, row.ith_kind as IdentifierKind, row.ith_id) }),
    eid: row.event_id,
    rc: row.risk_class,
    pv: row.policy_version,
    kv: row.key_version,
  }
  return signAuthorization(claims, authority.keysOf(tenant).token)
}

/** Writes changed columns of an authorization. */
export async function updateAuthorization(
  db: Db,
  row: ProtectionAuthorizationRow,
  change: Partial<ProtectionAuthorizationRow>,
): Promise<ProtectionAuthorizationRow> {
  await db.updateTable('protection_authorization').set(change).where('nonce', '=', row.nonce).execute()
  return { ...row, ...change }
}
