import { z } from 'zod'
import { foldText } from './fold-text.ts'
import { decodeEpc } from './gs1/epc-schemes.ts'

/** Reaction of a gate to a leaving tag: a record only, the light, or the siren. */
export const SEVERITIES = ['silent', 'notify', 'siren'] as const
export type Severity = (typeof SEVERITIES)[number]

const MASK = 'the first hex digits of an EPC, ? for any digit, such as "3034????5C"'
const Masks = z.array(z.string().regex(/^[0-9A-Fa-f?]{1,124}$/, `must be ${MASK}`)).max(50)

const SeverityRule = z.strictObject({
  category: z
    .string()
    .min(1)
    .max(120)
    .refine((category) => foldText(category) !== '', 'must not be blank')
    .optional()
    .describe('Category of the item; absent: any.'),
  fromValue: z
    .number()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('EUR: items at or above this price. An unknown price does not match.'),
  severity: z.enum(SEVERITIES),
})

/** Rules of exit gates. */
export const GatePolicy = z.strictObject({
  severity: z
    .array(SeverityRule)
    .max(100)
    .default([])
    .describe('The first matching rule sets the severity of an unpaid item. Without a match the siren sounds.'),
  ownPrefixes: z
    .array(z.string().regex(/^\d{6,12}$/, 'must be a GS1 company prefix, 6 to 12 digits'))
    .max(50)
    .default([])
    .describe(
      'GS1 company prefixes of this store’s tags, in any EPC scheme of GS1. If ownPrefixes or ownMasks are set, gates ignore all other unregistered tags.',
    ),
  ownMasks: Masks.default([]).describe(`Beginnings of this store’s EPCs: ${MASK}.`),
  alarmMasks: Masks.default([]).describe('Beginnings of EPCs that always alarm, such as unregistered hard tags.'),
  bulk: z
    .strictObject({ tags: z.int().min(2).max(100).default(5), seconds: z.int().min(1).max(30).default(3) })
    .default({ tags: 5, seconds: 3 })
    .describe('This many unpaid items within this many seconds are one bulk alarm, which always sounds the siren.'),
  replenishment: z
    .strictObject({
      tags: z.int().min(0).max(10_000).default(100),
      seconds: z.int().min(1).max(60).default(10),
      muteSeconds: z.int().min(1).max(3_600).default(120),
    })
    .default({ tags: 100, seconds: 10, muteSeconds: 120 })
    .describe(
      'This many tags within this many seconds count as goods that staff move. After the first alarm the siren stays silent for muteSeconds. 0 tags: never.',
    ),
})
export type GatePolicy = z.infer<typeof GatePolicy>

export const DEFAULT_GATE_POLICY: GatePolicy = GatePolicy.parse({})

/**
 * Severity of an unpaid item, and the number of the matching rule. Numbers start at 1; 0 means that no rule matches.
 * `priceCent` undefined: unknown.
 */
export function severityOf(
  { severity: rules }: GatePolicy,
  item: { category?: string | undefined; priceCent?: number | undefined },
): { severity: Severity; rule: number } {
  const category = foldText(item.category ?? '')
  const fits = (rule: z.infer<typeof SeverityRule>) =>
    (rule.category === undefined || foldText(rule.category) === category) &&
    (rule.fromValue === undefined ||
      (item.priceCent !== undefined && item.priceCent >= Math.round(rule.fromValue * 100)))
  const index = rules.findIndex(fits)
  return { severity: rules[index]?.severity ?? 'siren', rule: index + 1 }
}

/**
 * Owner of an unregistered tag. `alarm`: the tag matches `alarmMasks`. `unclear`: the policy sets neither `ownPrefixes`
 * nor `ownMasks`.
 */
export type TagOwner = 'own' | 'foreign' | 'unclear' | 'alarm'

/**
 * Finds the owner by the beginning of the EPC (upper-case hex) and by the company prefix of any GS1 scheme. No company
 * prefix begins with another one. `epc` is undefined for a tag without EPC.
 */
export function tagOwnerOf({ alarmMasks, ownMasks, ownPrefixes }: GatePolicy, epc: string | undefined): TagOwner {
  if (epc === undefined) return ownMasks.length + ownPrefixes.length === 0 ? 'unclear' : 'foreign'
  if (alarmMasks.some((mask) => fitsMask(mask, epc))) return 'alarm'
  if (ownMasks.length + ownPrefixes.length === 0) return 'unclear'
  if (ownMasks.some((mask) => fitsMask(mask, epc))) return 'own'
  const owner = ownPrefixes.length > 0 ? decodeEpc(epc)?.owner : undefined
  return owner !== undefined && ownPrefixes.some((prefix) => owner.startsWith(prefix)) ? 'own' : 'foreign'
}

function fitsMask(mask: string, epc: string): boolean {
  if (mask.length > epc.length) return false
  for (let i = 0; i < mask.length; i++) if (mask[i] !== '?' && mask[i]?.toUpperCase() !== epc[i]) return false
  return true
}
