import { z } from 'zod'
import { toApiDecision, type DecisionFacts } from '../../../policy/decide.ts'
import { decideUnits, predictIsolatedDecision, worstCaseLoss } from '../../../policy/decide-units.ts'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { DENY_REASONS, ITEM_FACT_NAMES, PROTECTION_ACTIONS, type DenyReason } from '../../../policy/vocabulary.ts'
import { holderOf, sharedSlots } from '../../platform/foundation/shared-slots.ts'
import { Id, iso, definedFields, Success, Timestamp } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { KEEP_DECISIONS_MS, readDecisions } from '../records/decision-records.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { deviceFacts } from '../store-facts/device-queries.ts'

/** Field of answers with the maximum loss under a policy. */
export const WorstCaseLoss = z
  .number()
  .nullable()
  .describe(
    'Maximum loss in EUR while every agent is isolated, without what staff approve (`operatorOverridesPerHour` limits that). 0 if isolated agents release nothing without staff; null if there is no limit.',
  )

/** Maximum number of decisions per simulation, newest first. */
const DECISIONS_LIMIT = 5_000
/** Maximum number of changed decisions in the response. */
const CHANGED_LIMIT = 500
/**
 * Each simulation may keep a core busy for seconds. More concurrent simulations would delay requests of gates and
 * tills. None waits, because a simulation runs in a transaction.
 */
const withSlot = sharedSlots(
  { atWork: 2, atWorkOfOne: 1, waiting: 0, waitingOfOne: 0 },
  { text: 'too many simulations are running: try again', retryAfter: 5 },
)

const Verdict = z.strictObject({
  authorized: z.boolean(),
  reason: z.enum(DENY_REASONS).optional(),
  detail: z.string().optional(),
})

const Offline = z
  .strictObject({
    authorized: z.boolean(),
    reason: z.enum(DENY_REASONS).optional(),
    unknownFacts: z
      .array(z.enum(ITEM_FACT_NAMES))
      .describe('Facts about the item that a rule needs but the agent does not know.'),
  })
  .describe(
    "Decision of the device's agent about a receipt, right after it lost the connections to cloud and receipt home.",
  )

export const simulateProtectionPolicy = operation({
  name: 'simulateProtectionPolicy',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Applies another protection policy to recent requests and returns the decisions that would change.',
  description:
    `Covers the cloud’s decisions of the last 30 days, at most the newest ${DECISIONS_LIMIT}. Decisions of agents are not included. ` +
    `Send \`policy\` as for updateProtectionPolicy. The call changes nothing. \`changed[]\` contains the newest ${CHANGED_LIMIT} of \`changedTotal\`.`,
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    storeId: Id,
    policy: ProtectionPolicy.partial({ home: true, homeEpoch: true }),
    since: Timestamp.optional(),
  }),
  response: z.strictObject({
    ...Success,
    decisions: z.int().describe('Number of decisions that were replayed.'),
    changedTotal: z.int(),
    worstCaseLoss: WorstCaseLoss,
    changed: z.array(
      z.strictObject({
        eventId: z.string(),
        occurredAt: z.string(),
        deviceId: z.string().optional(),
        protectionAction: z.enum(PROTECTION_ACTIONS),
        before: Verdict,
        after: Verdict,
        offline: Offline,
      }),
    ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', policy: { requiresManualOverrideAboveValue: 50 } },
  async run(call, { storeId, policy, since }) {
    const store = await ownStore(call, storeId)
    const oldest = call.nowMs - KEEP_DECISIONS_MS
    const sinceMs = since === undefined ? oldest : Math.max(oldest, Date.parse(since))
    const tried = policy as ProtectionPolicy
    const done = await withSlot(holderOf(call.caller), () => simulate(call, storeId, sinceMs, tried))
    return { success: true as const, ...done, worstCaseLoss: await lossUnder(call.db, store, tried) }
  },
})

async function simulate({ db }: Call, storeId: string, sinceMs: number, policy: ProtectionPolicy) {
  const changed: ReturnType<typeof changesOf> = []
  let [decisions, changedTotal] = [0, 0]
  for await (const row of readDecisions(db, storeId, sinceMs, DECISIONS_LIMIT)) {
    const differs = changesOf(row, policy)
    decisions++
    changedTotal += differs.length
    if (changed.length < CHANGED_LIMIT) changed.push(...differs)
  }
  return { decisions, changedTotal, changed }
}

function changesOf(row: Row<'protection_decision'>, policy: ProtectionPolicy) {
  const [first, ...others] = JSON.parse(row.facts) as DecisionFacts[]
  if (!first) return []
  const before = { authorized: row.reason === null, ...definedFields({ reason: row.reason as DenyReason | null }) }
  const after: z.infer<typeof Verdict> = toApiDecision(decideUnits([first, ...others], policy).decision)
  if (after.authorized === before.authorized && after.reason === before.reason) return []
  return [
    {
      eventId: row.event_id,
      occurredAt: iso(row.at_ms),
      ...(first.device && { deviceId: first.device.deviceId }),
      protectionAction: first.action,
      before,
      after,
      offline: predictIsolatedDecision([first, ...others], policy),
    },
  ]
}

/** Maximum loss of a store with its present devices under a policy, EUR; null if there is no limit. */
export async function lossUnder(db: Db, store: Row<'store'>, policy: ProtectionPolicy): Promise<number | null> {
  const rows = await db
    .selectFrom('device')
    .selectAll()
    .where('store_id', '=', store.store_id)
    .where('revoked_ms', 'is', null)
    .execute()
  return worstCaseLoss(
    policy,
    rows.map((row) => deviceFacts(row, store)),
  )
}
