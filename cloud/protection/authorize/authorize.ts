import { restsOnOperator, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { decideUnits } from '../../../policy/decide-units.ts'
import { DEFAULT_POLICY, riskClass, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import { rightClass, type DenyReason } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { askHolders } from '../leases/ask-void.ts'
import { isDoubted, issueAuthorization, redemptionsOf, signToken } from '../leases/authorizations.ts'
import { take, type LeaseView } from '../leases/leases.ts'
import { receiptRights, tellHome } from '../receipt-home/receipt-rights.ts'
import { policyOf } from '../store-documents/policy.ts'
import { describeAuthorization, NO_AUTHORIZATION, type AuthorizationAnswer } from './answer.ts'
import { approvalFacts, approvalsOf, noteApproval, type Approvals } from './approvals.ts'
import { itemSubject } from './item-subject.ts'
import { overrideLease } from './override-lease.ts'
import { purchaseSubject } from './purchase-subject.ts'
import type { Question } from './question.ts'
import { eventIdsOf, recordDenied, recordGranted, type Asking } from './record.ts'
import type { AskedUnit, Subject } from './subject.ts'

/** The answer to a device, with the subject and the decision it rests on. */
export interface Authorized {
  subject: Subject
  decision: Decision
  answer: AuthorizationAnswer & {
    authorized: boolean
    eventId: string
    reason?: DenyReason
    retryAfter?: number
    receiptRights?: Awaited<ReturnType<typeof receiptRights>>['receiptRights']
  }
}

/**
 *   read question ─▶ load facts ─▶ decide ─┬─ yes ─▶ lease ─▶ sign ─▶ record ─▶ answer
 *                                          └─ no ──────────────────▶ record ─▶ answer
 *
 *   load facts   item-subject.ts or purchase-subject.ts: the units, their rights, and who holds these
 *   decide       policy/decide-units.ts, by the store's policy
 *   lease        ../leases/authorizations.ts, `issueAuthorization`: the rights go to this device until the token ends
 *   sign         ../leases/authorizations.ts, `signToken`
 *   record       record.ts: two events, and the facts that the decision rested on
 *   answer       answer.ts
 *
 * How the cloud answers a device. A question about an item, a purchase, a receipt or a token takes these steps alike. They differ in
 * how the question is read (question.ts, verify-purchase.ts) and which facts are loaded (item-subject.ts, purchase-subject.ts).
 * An agent that works without the cloud decides by the same function, policy/decide-units.ts.
 */
export async function authorize(call: Call, question: Question): Promise<Authorized> {
  const { asked, action } = question
  const policy = asked.store ? policyOf(asked.store) : DEFAULT_POLICY
  const approvals = await approvalsOf(call, asked, action)
  const subject = await loadSubject(call, question, approvals)
  const facts = factsOf(subject)
  const { decision, allowed } = decideUnits(facts, policy)
  const asking: Asking = { question, subject, facts, eventIds: eventIdsOf(call, question) }
  if (!decision.allowed) {
    const answer = await refuse(call, asking, decision.reason, subject)
    return { subject, decision, answer }
  }

  const { device, store } = asked
  // The cloud records a question about the past, or about a status, and issues no token for it.
  if (action === 'verify_item_status' || asked.isPast || !device || !store || !subject.isKnown) {
    const eventId = await recordGranted(call, asking, undefined)
    return { subject, decision, answer: { authorized: true, ...NO_AUTHORIZATION, eventId } }
  }

  const units = subject.units.filter((_, n) => allowed.includes(n))
  const own = units.findLast((unit) => unit.lease.own)?.lease.own
  const authorization = own ?? (await leaseUnits(call, asking, { subject, units, device: device.row, store, policy }))
  const token = signToken(authorization, call.services)
  const eventId = own ? own.event_id : await recordGranted(call, asking, authorization)
  const redemptions = own ? await redemptionsOf(call.db, own.nonce) : []
  const answer = {
    authorized: true,
    ...describeAuthorization(call, authorization, token, redemptions),
    eventId,
    // Repeated with every answer, because the agent may not have received the first one.
    ...(asked.caller.kind === 'agent' &&
      subject.purchase &&
      (await receiptRights(call.db, subject.purchase, authorization))),
  }
  return { subject, decision, answer }
}

async function loadSubject(call: Call, question: Question, approvals: Approvals | undefined): Promise<Subject> {
  const subject = await (question.item ? itemSubject(call, question) : purchaseSubject(call, question))
  const withApprovals = (unit: AskedUnit): AskedUnit => ({
    ...unit,
    facts: { ...unit.facts, ...approvalFacts(approvals, unit.lease) },
  })
  const [first, ...others] = subject.units
  return { ...subject, units: [withApprovals(first), ...others.map(withApprovals)] }
}

function factsOf({ units: [first, ...others] }: Subject): [DecisionFacts, ...DecisionFacts[]] {
  return [first.facts, ...others.map((unit) => unit.facts)]
}

interface Granted {
  subject: Subject
  /** Those that are allowed. */
  units: readonly AskedUnit[]
  device: DeviceRow
  store: StoreRow
  policy: ProtectionPolicy
}

/** Revokes the leases of other devices that may be revoked, then leases the units' rights to this device until its new token ends. */
async function leaseUnits(
  call: Call,
  { question, eventIds }: Asking,
  { subject, units, device, store, policy }: Granted,
): Promise<ProtectionAuthorizationRow> {
  const { asked, action, item, scanSource } = question
  for (const row of distinct(units, ({ takeable }) => takeable)) await take(call, row, device)
  for (const row of distinct(units, ({ overridden }) => overridden)) await overrideLease(call, row, asked.operatorId)

  // A token that is for one request only covers one release: the next unit is asked for by the next request.
  const isForOne =
    units.length > 1 &&
    asked.caller.kind === 'agent' &&
    rightClass(action) === 'release' &&
    (await isDoubted(call, device))
  const given = isForOne ? units.slice(0, 1) : units
  const authorization = await issueAuthorization(call, asked.caller.tenant, {
    store,
    device,
    action,
    rightClass: rightClass(action) ?? 'fixture',
    ...(item && { item }),
    itemId: subject.item?.item_id ?? null,
    purchaseId: subject.purchase?.purchase_id ?? null,
    units: given.flatMap(({ right }) => right ?? []),
    riskClass: riskClass(subject.purchase?.total_cent ?? subject.units[0].facts.item?.priceCent ?? 0),
    eventId: eventIds.decided,
    operatorId: asked.operatorId,
    scanSource,
  })
  const isApproval = given.some(({ facts }) => facts.approvals !== undefined && restsOnOperator(facts, policy))
  if (isApproval) await noteApproval(call, authorization)
  if (subject.purchase) await tellHome(call, store, subject.purchase, authorization)
  return authorization
}

async function refuse(call: Call, asking: Asking, reason: DenyReason, { units }: Subject) {
  const isOutstanding = reason === 'authorization_outstanding'
  const held = distinct(units, (lease) => lease.held)
  if (isOutstanding && !asking.question.asked.isPast) askHolders(call, held)
  const ends = units.flatMap(({ lease }) => lease.endsAt ?? [])
  const endsAt = ends.length > 0 ? Math.min(...ends) : undefined
  const retryAfter =
    isOutstanding && endsAt !== undefined ? Math.max(1, endsAt - Math.floor(call.nowMs / 1_000)) : undefined
  const eventId = await recordDenied(call, asking, reason)
  return { authorized: false, reason, ...NO_AUTHORIZATION, eventId, ...(retryAfter !== undefined && { retryAfter }) }
}

/** The authorizations that `of` picks from the leases of these units, each once. */
function distinct(
  units: readonly AskedUnit[],
  of: (lease: LeaseView) => ProtectionAuthorizationRow | undefined,
): ProtectionAuthorizationRow[] {
  const rows = units.flatMap(({ lease }) => of(lease) ?? [])
  return [...new Map(rows.map((row) => [row.nonce, row])).values()]
}
