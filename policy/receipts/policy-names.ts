import { createHash } from 'node:crypto'
import { byFoldedName, foldText } from '../fold-text.ts'
import type { ProtectionPolicy } from '../store-policy.ts'
import { encodeCbor, type ReceiptClaims, type UnitFacts } from './receipt-claims.ts'

/**
 * Categories and brands of a receipt as numbers of the names in the policy. They take less room than texts, and tell
 * every rule of that policy which goods it is about. An agent whose policy has other names cannot read the numbers:
 * category and brand are then unknown, so the strictest rule that could apply decides.
 */

export type NamingPolicy = Pick<ProtectionPolicy, 'allowedActionsByCategory' | 'requiresStaffForBrand'>

interface PolicyNames {
  /** Names as the policy has them, in the order of their folded UTF-8 bytes. The first name has the number 1. */
  categories: readonly string[]
  brands: readonly string[]
  /** First 4 bytes of SHA-256 over the CBOR array of the folded categories and the folded brands. */
  digest: Uint8Array
}

/** Number of a category or brand that the policy does not name, or that the unit lacks. */
const NOT_NAMED = 0
const DIGEST_BYTES = 4
/** Entry of the policy for all categories that it does not name. */
const OTHERS = '*'

/** Cache: a policy may have 1,000 names. */
const known = new WeakMap<NamingPolicy, PolicyNames>()

function namesOf(policy: NamingPolicy): PolicyNames {
  const cached = known.get(policy)
  if (cached) return cached
  const categories = sorted(byFoldedName(policy.allowedActionsByCategory)).filter(([folded]) => folded !== OTHERS)
  const brands = sorted(byFoldedName(policy.requiresStaffForBrand))
  const folded = [categories, brands].map((names) => names.map(([name]) => name))
  const digest = createHash('sha256').update(encodeCbor(folded)).digest().subarray(0, DIGEST_BYTES)
  const names = { categories: categories.map(([, name]) => name), brands: brands.map(([, name]) => name), digest }
  known.set(policy, names)
  return names
}

function sorted(names: ReadonlyMap<string, string>): [folded: string, name: string][] {
  return [...names].toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

/** Replaces categories and brands by their numbers in the policy. */
export function numberFacts(
  facts: readonly UnitFacts[],
  policy: NamingPolicy,
): Required<Pick<ReceiptClaims, 'facts' | 'namesDigest'>> {
  const { categories, brands, digest } = namesOf(policy)
  const [byCategory, byBrand] = [numbersOf(categories), numbersOf(brands)]
  const numbered = facts.map(({ category, brand, priceCent }) => ({
    category: byCategory.get(foldText(category)) ?? NOT_NAMED,
    brand: byBrand.get(foldText(brand)) ?? NOT_NAMED,
    priceCent,
  }))
  return { facts: numbered, namesDigest: digest }
}

function numbersOf(names: readonly string[]): Map<string, number> {
  return new Map(names.map((name, n) => [foldText(name), n + 1]))
}

/**
 * Facts of a unit under `policy`, the live policy of the reader. Category and brand are absent if unknown. The text is
 * empty if the unit has none or the policy does not name it: both mean the same to every rule.
 */
export function readUnitFacts(
  { facts, namesDigest }: Pick<ReceiptClaims, 'facts' | 'namesDigest'>,
  unit: number,
  policy: NamingPolicy | undefined,
): Partial<UnitFacts> {
  const signed = facts?.[unit]
  if (!signed) return {}
  const { category, brand, priceCent } = signed
  if (typeof category === 'string' && typeof brand === 'string') return { category, brand, priceCent }
  const names = policy && namesOf(policy)
  if (!names || !namesDigest || Buffer.compare(names.digest, namesDigest) !== 0) return { priceCent }
  return { ...named('category', names.categories, category), ...named('brand', names.brands, brand), priceCent }
}

/** The name with this number. Absent if the policy has fewer names. */
function named(
  fact: 'category' | 'brand',
  names: readonly string[],
  number: string | number,
): { category?: string; brand?: string } {
  const name = number === NOT_NAMED ? '' : names[Number(number) - 1]
  return name === undefined ? {} : { [fact]: name }
}
