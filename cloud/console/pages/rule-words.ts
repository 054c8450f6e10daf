import { riskClassCeiling, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import { PROTECTION_ACTIONS, type DenyReason, type ProtectionAction } from '../../../policy/vocabulary.ts'
import type { PageContext } from '../frame/page.ts'

/** What a rule of the policy says. Rules of two policies with the same topic are the same rule. */
interface RuleLine {
  readonly topic: string
  readonly text: string
}

/** A rule that differs between two policies; without a text the policy lacks it. */
interface RuleDifference {
  readonly topic: string
  readonly before: string
  readonly after: string
}

type Texts = Pick<PageContext, 'texts' | 'formats'>
type Names = ReadonlyMap<string, string>

const NO_NAMES: Names = new Map()

/** Each field of a policy as a sentence, without the categories. `names`: names of agents by id. */
export function ruleLines(at: Texts, policy: ProtectionPolicy, names: Names = NO_NAMES): readonly RuleLine[] {
  const { topics, sentences: says } = at.texts.rules
  const lines: [keyof typeof topics, string][] = [
    ...staffLines(at, policy),
    ...offlineLines(at, policy),
    ...gateLines(at, policy),
    ...tillLines(at, policy),
    ['minAgent', policy.minAgent === undefined ? says.noMinAgent : says.minAgent(policy.minAgent)],
    ['home', policy.home === 'cloud' ? says.homeCloud : says.homeAgent(names.get(policy.home) ?? policy.home)],
  ]
  return lines.map(([topic, text]) => ({ topic: topics[topic], text }))
}

type Lines = [keyof PageContext['texts']['rules']['topics'], string][]

function staffLines({ texts, formats }: Texts, policy: ProtectionPolicy): Lines {
  const { sentences: says } = texts.rules
  const { requiresManualOverrideAboveValue: above, requiresStaffForBrand: brands, spotCheckRate } = policy
  return [
    ['overrideAbove', above === null ? says.noOverride : says.overrideAbove(formats.money(above))],
    ['brands', brands.length === 0 ? says.noBrands : says.brands(brands.join(', '))],
    ['overridesPerHour', says.overridesPerHour(formats.number(policy.operatorOverridesPerHour))],
    ['spotCheck', spotCheckRate === 0 ? says.noSpotCheck : says.spotCheck(formats.percent(spotCheckRate))],
  ]
}

function offlineLines({ texts, formats }: Texts, { offline }: ProtectionPolicy): Lines {
  const { sentences: says } = texts.rules
  const { storeBound, maxRiskClass, hardCount, maxIsolatedSeconds } = offline
  const below = riskClassCeiling(maxRiskClass)
  return [
    ['storeBound', storeBound === 'deny' ? says.storeBoundDeny : says.storeBoundRisk],
    ['maxRiskClass', below === null ? says.anyRiskClass : says.maxRiskClass(formats.money(below / 100))],
    ['hardCount', says.hardCount(formats.number(hardCount))],
    ['isolatedMinutes', says.isolatedMinutes(formats.number(maxIsolatedSeconds / 60))],
  ]
}

function gateLines({ texts, formats }: Texts, { gate, unknownTag }: ProtectionPolicy): Lines {
  const { sentences: says, reactions, unknownTags } = texts.rules
  const { number, money } = formats
  const rules = gate.severity.map(({ category, fromValue, severity }) => {
    const goods = category ?? says.anyItem
    return says.severityRule(
      fromValue === undefined ? goods : says.fromPrice(goods, money(fromValue)),
      reactions[severity],
    )
  })
  const own = [...gate.ownPrefixes, ...gate.ownMasks]
  const { bulk, replenishment: moved } = gate
  return [
    ['unknownTag', unknownTags[unknownTag]],
    ['severity', rules.length === 0 ? says.noSeverity : says.severity(rules.join(' '))],
    ['ownTags', own.length === 0 ? says.anyTags : says.ownTags(own.join(', '))],
    ['alarmMasks', gate.alarmMasks.length === 0 ? says.noAlarmMasks : says.alarmMasks(gate.alarmMasks.join(', '))],
    ['bulk', says.bulk(number(bulk.tags), number(bulk.seconds))],
    [
      'replenishment',
      moved.tags === 0
        ? says.noReplenishment
        : says.replenishment(number(moved.tags), number(moved.seconds), number(moved.muteSeconds)),
    ],
  ]
}

function tillLines({ texts, formats }: Texts, { tillSales }: ProtectionPolicy): Lines {
  const { sentences: says } = texts.rules
  const { agents, salesPerHour, valuePerHour, codes, passByProduct } = tillSales
  return [
    ['tillAgents', agents.length === 0 ? says.noTillAgents : says.tillAgents(formats.number(agents.length))],
    ['salesPerHour', says.salesPerHour(formats.number(salesPerHour))],
    ['valuePerHour', says.valuePerHour(formats.money(valuePerHour))],
    ['codes', codes === 'release' ? says.codesRelease : says.codesBarrier],
    ['passByProduct', passByProduct === 0 ? says.noPasses : says.passByProduct(formats.number(passByProduct))],
  ]
}

type Allowed = ProtectionPolicy['allowedActionsByCategory'][string]

/** Name of a category for people: the entry `*` is of all others. */
export function categoryName({ texts }: Texts, category: string): string {
  return category.trim() === '*' ? texts.rules.allOther : category
}

/** Topic of the rules of a category. */
function topicOf(at: Texts, category: string): string {
  const name = categoryName(at, category)
  return name === category ? at.texts.rules.ofCategory(name) : name
}

/** The workflows in which an action is allowed; undefined if it is not. */
export function workflowsOf({ texts }: Texts, allowed: Allowed, action: ProtectionAction): string | undefined {
  const workflows = allowed[action] ?? []
  return workflows.length === 0 ? undefined : workflows.map((each) => texts.rules.workflows[each]).join(', ')
}

function categoryLine(at: Texts, allowed: Allowed): string {
  const { sentences: says, actions } = at.texts.rules
  const parts = PROTECTION_ACTIONS.flatMap((action) => {
    const workflows = workflowsOf(at, allowed, action)
    return workflows === undefined ? [] : [says.action(actions[action], workflows)]
  })
  return parts.length === 0 ? says.nothing : parts.join(' ')
}

/** What differs between two policies, in words. */
export function differencesOf(
  at: Texts,
  before: ProtectionPolicy,
  after: ProtectionPolicy,
  names: Names = NO_NAMES,
): readonly RuleDifference[] {
  const then = new Map(ruleLines(at, after, names).map(({ topic, text }) => [topic, text]))
  const rules = ruleLines(at, before, names).flatMap(({ topic, text }) => {
    const now = then.get(topic) ?? ''
    return now === text ? [] : [{ topic, before: text, after: now }]
  })
  const [old, next] = [before.allowedActionsByCategory, after.allowedActionsByCategory]
  const { removed } = at.texts.rules.sentences
  const lineOf = (entry: Allowed | undefined) => (entry === undefined ? removed : categoryLine(at, entry))
  const categories = [...new Set([...Object.keys(old), ...Object.keys(next)])].flatMap((name) => {
    const [was, is] = [lineOf(old[name]), lineOf(next[name])]
    return was === is ? [] : [{ topic: topicOf(at, name), before: was, after: is }]
  })
  return [...rules, ...categories]
}

/** Result of a decision in words. */
export function verdictOf(
  { texts }: Pick<PageContext, 'texts'>,
  { authorized, reason }: { authorized: boolean; reason?: DenyReason | undefined },
): string {
  const t = texts.rules
  return authorized ? t.preview.allowed : t.preview.denied(reason === undefined ? '' : t.reasons[reason])
}
