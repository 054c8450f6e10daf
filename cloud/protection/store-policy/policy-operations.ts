import { z } from 'zod'
import { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { storeDocumentChanged, policyOf } from '../../platform/stores/parsed-policy.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { foldText, closestNames } from '../../../policy/fold-text.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { policyClaims } from './policy-document.ts'
import { lossUnder, WorstCaseLoss } from './simulate-policy.ts'

/** Maximum length of header, signature and dots of a signed document, characters. */
const ENVELOPE = 512
/** Reserve for changes that do not check the size, characters: agents, addresses, keys, moves of the receipt home. */
const RESERVE = 32 * 1024

/**
 * Throws 409 `policy_too_large` if the store's policy is longer than agents accept. Agents would reject that policy and
 * all later ones, and after 80 hours only staff could release goods. Call this check for changes that make the policy
 * longer.
 */
export async function assertPolicyFits(
  { db, services, nowMs }: Pick<Call, 'db' | 'services' | 'nowMs'>,
  storeId: string,
): Promise<void> {
  const store = await findStore(db, storeId)
  if (!store) return
  const claims = await policyClaims(db, store, {
    iat: Math.floor(nowMs / 1_000),
    epoch: services.authority.documentEpoch,
  })
  const bytes = Buffer.byteLength(JSON.stringify(claims))
  const limit = ((DOCUMENT_KINDS.policy.maxLength - ENVELOPE - RESERVE) * 3) / 4
  if (bytes <= limit) return
  throw precondition(
    'policy_too_large',
    `devices, operators and policy of the store would have ${bytes} bytes, and agents accept ${limit}: decommission devices, remove operators, or shorten the policy`,
  )
}

/** Maximum number of names in the warnings. */
const WARNINGS_LIMIT = 20
/** Maximum number of names that are compared with others, and of those others. To compare two takes up to 30 µs. */
const COMPARED_LIMIT = 5
const SUGGESTIONS_LIMIT = 1_000
/** Products per page. The loop yields after each page. */
const PAGE = 1_000

interface PolicyName {
  path: string
  kind: 'category' | 'brand'
  name: string
}

type Rules = Pick<ProtectionPolicy, 'allowedActionsByCategory' | 'requiresStaffForBrand' | 'gate'>

/** Warnings about categories and brands of a policy that no product of the store has. A typing error is the usual cause. */
async function warningsOfNames(db: Db, storeId: string, policy: Rules): Promise<string[]> {
  const names = namesOf(policy)
  if (names.length === 0) return []
  const known = await namesOfProducts(db, storeId)
  const unknown = names.filter(({ kind, name }) => !known[kind].has(foldText(name)))
  const warnings: string[] = []
  for (const [index, { path, kind, name }] of unknown.slice(0, WARNINGS_LIMIT).entries()) {
    const compared = index < COMPARED_LIMIT ? [...known[kind].values()].slice(0, SUGGESTIONS_LIMIT) : []
    const [nearest] = closestNames(name, compared, 1)
    const hint = nearest === undefined ? '' : `; did you mean "${nearest}"?`
    warnings.push(`${path}: no product of this store has the ${kind} "${name}"${hint}`)
    await yieldToEventLoop()
  }
  const rest = unknown.length - warnings.length
  return rest > 0 ? [...warnings, `${rest} more names are those of no product of this store`] : warnings
}

function namesOf({ allowedActionsByCategory, requiresStaffForBrand, gate }: Rules): PolicyName[] {
  const named = (path: string, kind: PolicyName['kind'], names: readonly string[]): PolicyName[] =>
    names.map((name) => ({ path: `policy.${path}`, kind, name }))
  const categories = Object.keys(allowedActionsByCategory).filter((name) => foldText(name) !== '*')
  const atGates = gate.severity.flatMap(({ category }) => category ?? [])
  return [
    ...named('allowedActionsByCategory', 'category', categories),
    ...named('requiresStaffForBrand', 'brand', requiresStaffForBrand),
    ...named('gate.severity', 'category', [...new Set(atGates)]),
  ]
}

const pageOfNames = prepared((db, p: { storeId: string; after: string }) =>
  db
    .selectFrom('store_product as s')
    .innerJoin('product as p', 'p.product_id', 's.product_id')
    .select(['s.product_id', 'p.category', 'p.brand'])
    .where('s.store_id', '=', p.storeId)
    .where('s.product_id', '>', p.after)
    .orderBy('s.product_id')
    .limit(PAGE),
)

/** Categories and brands of the store's products, by folded name. */
async function namesOfProducts(db: Db, storeId: string): Promise<Record<PolicyName['kind'], Map<string, string>>> {
  const known = { category: new Map<string, string>(), brand: new Map<string, string>() }
  const typed = { category: new Set<string>(), brand: new Set<string>() }
  for (let after = ''; ;) {
    const rows = await pageOfNames(db, { storeId, after })
    for (const row of rows)
      for (const kind of ['category', 'brand'] as const) {
        const name = row[kind]
        if (name === null || typed[kind].has(name)) continue
        typed[kind].add(name)
        known[kind].set(foldText(name), name)
      }
    const last = rows.at(-1)
    if (!last || rows.length < PAGE) return known
    after = last.product_id
    await yieldToEventLoop()
  }
}

const PolicyAnswer = z.strictObject({
  ...Success,
  policy: ProtectionPolicy,
  version: z.int(),
  worstCaseLoss: WorstCaseLoss,
})

async function describePolicy({ db }: Call, store: Row<'store'>): Promise<z.infer<typeof PolicyAnswer>> {
  const policy = policyOf(store)
  return {
    success: true,
    policy,
    version: store.policy_version,
    worstCaseLoss: await lossUnder(db, store, policy),
  }
}

/**
 * Operations on the protection policy of a store. A new version must be valid and fit into one signed document for the
 * store's agents. `simulateProtectionPolicy` shows which past decisions another policy would change.
 */

export const fetchProtectionPolicy = operation({
  name: 'fetchProtectionPolicy',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Returns the protection policy of a store and the maximum loss while it is offline.',
  changes: false,
  request: z.strictObject({ storeId: Id }),
  response: PolicyAnswer,
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId }) {
    return describePolicy(call, await ownStore(call, storeId))
  },
})

export const updateProtectionPolicy = operation({
  name: 'updateProtectionPolicy',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('admin'),
  summary: 'Replaces the protection policy of a store.',
  description:
    'Send the whole policy as fetchProtectionPolicy returns it; missing fields get their defaults. `home` and `homeEpoch` stay unchanged (see moveReceiptHome). ' +
    'Two categories or two brands that differ only in case, blanks or Unicode form are refused. `warnings` names categories and brands that no product of the store has.',
  refusals: ['version_moved', 'policy_too_large'],
  changes: true,
  request: z.strictObject({
    storeId: Id,
    policy: ProtectionPolicy.partial({ home: true, homeEpoch: true }),
    expectedVersion: z.int().optional().describe('Returns 409 if the policy has another version.'),
  }),
  response: PolicyAnswer.extend({ warnings: z.array(z.string()).optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', policy: { requiresManualOverrideAboveValue: 150 } },
  // Reads the products of the store, which takes too long for a transaction.
  async prepare(call, { storeId, policy }) {
    await ownStore(call, storeId)
    return warningsOfNames(call.db, storeId, policy)
  },
  async run(call, { storeId, policy, expectedVersion }, warnings) {
    const store = await ownStore(call, storeId)
    if (expectedVersion !== undefined && expectedVersion !== store.policy_version) {
      throw precondition(
        'version_moved',
        `the policy has version ${store.policy_version}, not ${expectedVersion}: read it again`,
      )
    }
    const { home, homeEpoch, tillSales } = policyOf(store)
    const sent = policy as ProtectionPolicy
    if (sent.home !== undefined && sent.home !== 'cloud' && sent.home !== home)
      throw invalid('policy.home', 'cannot be changed here: use moveReceiptHome')
    const next = JSON.stringify({ ...sent, home, homeEpoch })
    await call.db
      .updateTable('store')
      .set({ policy: next, policy_version: store.policy_version + 1, min_agent: sent.minAgent ?? null })
      .where('store_id', '=', storeId)
      .execute()
    await endTillAgents(
      call,
      storeId,
      tillSales.agents.filter((agentId) => !sent.tillSales.agents.includes(agentId)),
    )
    // Accepts a shorter policy without this check, so that a store above the limit can shorten its policy.
    if (Buffer.byteLength(next) > Buffer.byteLength(store.policy)) await assertPolicyFits(call, storeId)
    await storeDocumentChanged(call, storeId)
    call.changed(storeId)
    const changed = await findStore(call.db, storeId)
    return { ...(await describePolicy(call, changed ?? store)), ...(warnings.length > 0 && { warnings }) }
  },
})

/** Notes when these agents ceased to record sales of tills: what they stored before still counts. */
async function endTillAgents({ db, nowMs }: Call, storeId: string, agentIds: readonly string[]): Promise<void> {
  if (agentIds.length === 0) return
  await db
    .updateTable('agent')
    .set({ till_until_ms: nowMs })
    .where('store_id', '=', storeId)
    .where('agent_id', 'in', agentIds)
    .execute()
}
