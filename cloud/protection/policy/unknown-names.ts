import { foldText } from '../../../policy/fold-text.ts'
import { closestNames } from '../../../policy/spelling-hint.ts'
import type { ProtectionPolicy } from '../../../policy/store-policy.ts'
import { yieldToEventLoop } from '../../operations/yield-to-event-loop.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'

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
export async function warningsOfNames(db: Db, storeId: string, policy: Rules): Promise<string[]> {
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
