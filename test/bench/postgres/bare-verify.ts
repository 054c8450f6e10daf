import { randomBytes } from 'node:crypto'
import { decide, type DecisionFacts, type ItemFacts } from '../../../policy/decide.ts'
import { newId } from '../../../policy/ids.ts'
import { riskClassOf } from '../../../policy/store-policy.ts'
import { deviceFacts } from '../../../cloud/protection/store-facts/device-queries.ts'
import { policyOf } from '../../../cloud/platform/stores/parsed-policy.ts'
import type { Row } from '../../../cloud/platform/persistence/schema.ts'
import { auditRow, Refused, signed, type BareCall } from './bare-context.ts'
import { FACTS, GRANT } from './statements.ts'

/** Lifetime of a token, s. The lease ends `LEASE_GUARD_MS` later. */
const TOKEN_LIFE = 300
const LEASE_GUARD_MS = 60_000

interface Request {
  deviceId: string
  protectionAction: 'detach_hard_tag'
  epc: string
}

interface Facts {
  device: Row<'device'>
  store: Row<'store'>
  item_id: string
  item_rev: number
  item_status: string
  category: string
  brand: string
  protection_technology: string
  line_id: string
  unit_no: number
  purchase_id: string
  purchase_rev: number
  total_cent: number
  price_cent: number
  state: string | null
  has_agents: boolean
  is_followed: boolean
}

/** Decides, and leases the right to the device if the item may be released. */
export async function verifyProtectedItem(call: BareCall, request: Request): Promise<string> {
  const { caller, ask } = call
  const { deviceId, protectionAction: action, epc } = request
  const [found] = await ask<Facts>(FACTS, [caller.tenant, deviceId, epc])
  if (!found || found.has_agents || found.is_followed)
    throw new Refused('this store takes more than the bare route can do')
  const nonce = randomBytes(16).toString('base64url')
  const facts = factsOf(found, action)
  if (found.state === 'leased' || !decide(facts, policyOf(found.store)).allowed) throw new Refused('not authorized')
  return grant(call, request, { ...found, nonce, facts })
}

function factsOf(found: Facts, action: Request['protectionAction']): DecisionFacts {
  const { category, brand, price_cent: priceCent, item_status: status, protection_technology: technology } = found
  return {
    action,
    storeId: found.store.store_id,
    device: deviceFacts(found.device, found.store),
    clockTrusted: true,
    stage: 'fresh',
    item: { status, category, brand, priceCent, technology } as ItemFacts,
    identifiedBy: ['epc'],
    mustBeRead: false,
    right: 'free',
    hasOperator: false,
  }
}

type Granted = Facts & { nonce: string; facts: DecisionFacts }

async function grant(call: BareCall, request: Request, found: Granted): Promise<string> {
  const { caller, nowMs, platform, ask } = call
  const { nonce, store, item_id, line_id, unit_no, purchase_id } = found
  const eventId = newId('evt', platform)
  const exp = Math.floor(nowMs / 1_000) + TOKEN_LIFE
  const answer = answerOf(call, request, found, { eventId, exp })
  const right = { line_id, unit_no, right_class: 'release', purchase_id, nonce, device_id: request.deviceId }
  const decision = { event_id: eventId, tenant: caller.tenant, store_id: store.store_id, at_ms: nowMs }
  const events = [
    eventRow(call, found, newId('evt', platform), 'protection.authorization.requested', request.epc),
    eventRow(call, found, eventId, 'protection.authorization.granted', request.epc),
  ]
  const [done] = await ask<{ leased: number }>(GRANT, [
    item_id,
    found.item_rev,
    found.purchase_rev,
    JSON.stringify({
      ...right,
      state: 'leased',
      until_ms: exp * 1_000 + LEASE_GUARD_MS,
      failures: 0,
      denied: 0,
      was_given: 0,
    }),
    JSON.stringify(authorizationRow(call, request, found, { eventId, exp })),
    JSON.stringify({ nonce, ordinal: 0, line_id, unit_no }),
    JSON.stringify(events),
    JSON.stringify({ ...decision, facts: JSON.stringify([found.facts]) }),
    auditRow(call, 'verifyProtectedItem', null),
  ])
  if (done?.leased !== 1) throw new Refused('another device was faster')
  return answer
}

interface Made {
  eventId: string
  exp: number
}

function answerOf(
  { caller, key }: BareCall,
  { deviceId, protectionAction, epc }: Request,
  { nonce, item_status: itemStatus }: Granted,
  { eventId, exp }: Made,
): string {
  const claims = { iss: caller.tenant, aud: deviceId, iat: exp - TOKEN_LIFE, exp, jti: nonce }
  return JSON.stringify({
    success: true,
    authorized: true,
    eventId,
    protectionAction,
    itemStatus,
    authorizationState: 'issued',
    authorizationToken: signed({ ...claims, act: protectionAction, cnt: 1, epc, eid: eventId }, key),
    expiresAt: new Date(exp * 1_000).toISOString(),
    redeemedAt: null,
    replayProtectedNonce: nonce,
    itemCount: 1,
  })
}

function authorizationRow(
  { caller }: BareCall,
  { deviceId, protectionAction, epc }: Request,
  { nonce, store, item_id, purchase_id, total_cent }: Granted,
  { eventId, exp }: Made,
): Partial<Row<'protection_authorization'>> {
  return {
    nonce,
    tenant: caller.tenant,
    store_id: store.store_id,
    device_id: deviceId,
    ledger: 'cloud',
    action: protectionAction,
    right_class: 'release',
    count: 1,
    exchanges: 0,
    purchase_id,
    item_id,
    ith_kind: 'epc',
    ith_id: epc,
    event_id: eventId,
    risk_class: riskClassOf(total_cent),
    policy_version: store.policy_version,
    key_version: 1,
    iat: exp - TOKEN_LIFE,
    exp,
  }
}

function eventRow({ caller, nowMs }: BareCall, found: Granted, event_id: string, type: string, epc: string): object {
  const { device, store, purchase_id, item_status: itemStatus, line_id: itemLineId, nonce } = found
  const { device_id, lane_id: laneId, device_type: deviceType } = device
  const at = new Date(nowMs).toISOString()
  const body = JSON.stringify({
    eventId: event_id,
    occurredAt: at,
    processedAt: at,
    type,
    storeId: store.store_id,
    protectionAction: 'detach_hard_tag',
    deviceId: device_id,
    deviceType,
    workflowType: 'self_service',
    laneId,
    purchaseId: purchase_id,
    itemLineId,
    epc,
    itemStatus,
    ...(type.endsWith('granted') && { replayProtectedNonce: nonce, authorizationState: 'issued' }),
  })
  const { tenant } = caller
  const times = { occurred_ms: nowMs, processed_ms: nowMs }
  return { event_id, tenant, store_id: store.store_id, type, device_id, purchase_id, ...times, body }
}
