import type { z } from 'zod'
import { GATE_ALARMS, type DenyReason } from '../../../policy/vocabulary.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { addDays, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import { fetchProtectedItem } from '../../protection/items/item-operations.ts'
import { fetchProtectionEvents } from '../../protection/records/event-operations.ts'
import { fetchProtectionPolicy } from '../../protection/store-policy/policy-operations.ts'
import { alarmHref } from '../components/alarm-card.tsx'
import { Card, EmptyState, Pairs } from '../components/card.tsx'
import { TextField } from '../components/fields.tsx'
import { FilterBar, Moment, Results, Table } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'
import { namesIn } from './purchase-history.ts'
import { categoryName, ruleLines } from './rule-words.ts'
import { tagOf } from './tags.tsx'

type Event = z.output<typeof fetchProtectionEvents.response>['events'][number]
type Policy = z.output<typeof fetchProtectionPolicy.response>['policy']

/** What the page shows. */
interface DecisionsView {
  readonly asked: string
  /** The latest first. */
  readonly events: readonly Event[]
  /** The event whose number was asked for, with its facts. */
  readonly chosen: Event | undefined
  /** Names of devices and staff by id. */
  readonly names: ReadonlyMap<string, string>
  /** The policy that applies now, while an event is chosen. */
  readonly policy: Policy | undefined
  /** The days of which only decisions without a connection are shown; undefined: all decisions are shown. */
  readonly alone: Days | undefined
}

/** First and last day. */
interface Days {
  readonly from: string
  readonly to: string
}

type View = ViewContext<DecisionsView>

/** Events among which a tag is searched: the newest ones. */
const SEARCHED = 500
const SHOWN = 50
const PATH = '/console/rules/decisions'

/** Topics of the rules that lead to a reason. */
const TOPICS_OF: Readonly<Record<string, readonly (keyof PageContext['texts']['rules']['topics'])[]>> = {
  manual_assistance_required: ['overrideAbove', 'brands', 'maxRiskClass'],
  limit_exceeded: ['overridesPerHour', 'storeBound', 'hardCount', 'isolatedMinutes', 'salesPerHour', 'valuePerHour'],
  gate_alarm: ['severity', 'unknownTag', 'ownTags', 'alarmMasks'],
  gate_bulk_alarm: ['bulk'],
}

/** Why a past decision was made, found by tag or by the number of the event. */
export const decisionsPage = page<DecisionsView>({
  path: PATH,
  roles: rolesFrom('manager'),
  scope: 'store',
  title: (texts) => texts.decisions.title,
  lead: (at) => at.texts.decisions.lead,
  async load(at) {
    const storeId = at.store?.storeId ?? ''
    const asked = (at.query.get('q') ?? '').trim().slice(0, 200)
    const names = await namesIn(at, storeId)
    const chosen = await eventOf(at, storeId, asked)
    if (chosen) {
      const policy = (await at.runIfAllowed(fetchProtectionPolicy, { storeId }))?.policy
      return { asked, events: [], chosen, names, policy, alone: undefined }
    }
    const alone = asked === '' ? daysAlone(at) : undefined
    if (alone) {
      const events = await eventsAlone(at, storeId, alone)
      return { asked, events: events.slice(0, SHOWN), chosen: undefined, names, policy: undefined, alone }
    }
    const latest = await at.runIfAllowed(fetchProtectionEvents, { storeId, latest: true, limit: SEARCHED })
    const all = latest?.events ?? []
    const events = asked === '' ? all.filter(isDecision) : await eventsOfTag(at, storeId, asked, all)
    return { asked, events: events.slice(0, SHOWN), chosen, names, policy: undefined, alone }
  },
  view(at) {
    const t = at.texts.decisions
    return (
      <div class="stack wide">
        <FilterBar at={at} apply={t.search}>
          <TextField
            form={NO_FORM}
            name="q"
            type="search"
            label={t.find}
            hint={t.findHint}
            value={at.data.asked}
            maxlength={200}
          />
        </FilterBar>
        <Results>{at.data.chosen ? <Chosen at={at} event={at.data.chosen} /> : <Found at={at} />}</Results>
        <p class="row">
          {at.data.alone ? (
            <a class="button" href={PATH}>
              {t.all}
            </a>
          ) : null}
          <a class="button" href="/console/rules">
            {t.toRules}
          </a>
        </p>
      </div>
    )
  },
})

/** The event with this number; undefined if there is none. */
async function eventOf(at: PageContext, storeId: string, eventId: string): Promise<Event | undefined> {
  if (!/^[\x21-\x7e]{1,128}$/.test(eventId)) return undefined
  return (await at.runIfAllowed(fetchProtectionEvents, { storeId, eventId }))?.events[0]
}

/** The days whose decisions without a connection the address names, as a link of the figures does. */
function daysAlone({ query }: PageContext): Days | undefined {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  return query.has('alone') && isDay(from) && isDay(to) ? { from, to } : undefined
}

/** Releases and refusals that agents decided alone in these days, the latest first. */
async function eventsAlone(at: PageContext, storeId: string, { from, to }: Days): Promise<Event[]> {
  const [sinceMs, endMs] = [startOfDay(from), startOfDay(addDays(to, 1))]
  const events: Event[] = []
  for (const type of ['protection.device.offline', 'protection.authorization.denied'] as const) {
    const about = { storeId, type, since: iso(sinceMs), latest: true, limit: SEARCHED } as const
    events.push(...((await at.runIfAllowed(fetchProtectionEvents, about))?.events ?? []))
  }
  return events
    .filter(({ offline, occurredAt }) => {
      const ms = Date.parse(occurredAt)
      return offline === true && ms >= sinceMs && ms < endMs
    })
    .toSorted((a, b) => Date.parse(b.occurredAt) - Date.parse(a.occurredAt))
}

/** True for what was decided: a release, its refusal, or an alarm. */
function isDecision({ type, reason = '' }: Event): boolean {
  return (
    type === 'protection.authorization.granted' ||
    type === 'protection.device.offline' ||
    type === 'protection.authorization.denied' ||
    (type === 'protection.exception.raised' && GATE_ALARMS.has(reason))
  )
}

/** Events about a tag: those that name it, and those of the purchase of its item. The latest first. */
async function eventsOfTag(
  at: PageContext,
  storeId: string,
  asked: string,
  latest: readonly Event[],
): Promise<readonly Event[]> {
  const tag = asked.toUpperCase().replaceAll(':', '')
  const isTag = ({ epc, tagUid, tagId }: Event) =>
    [epc, tagUid, tagId].some((each) => each !== undefined && each.toUpperCase().replaceAll(':', '') === tag)
  const purchaseId = await purchaseOf(at, storeId, asked)
  const sold =
    purchaseId === undefined
      ? []
      : ((await at.runIfAllowed(fetchProtectionEvents, { storeId, purchaseId, latest: true, limit: SEARCHED }))
          ?.events ?? [])
  const byId = new Map([...latest.filter(isTag), ...sold].map((event) => [event.eventId, event]))
  return [...byId.values()].toSorted((a, b) => Date.parse(b.occurredAt) - Date.parse(a.occurredAt))
}

/** Purchase of the item with this tag; undefined if the store has no such item, or it is not sold. */
async function purchaseOf(at: PageContext, storeId: string, asked: string): Promise<string | undefined> {
  try {
    return (await at.runIfAllowed(fetchProtectedItem, { storeId, ...tagOf(asked) }))?.purchaseId
  } catch (error) {
    const { code } = asFailure(error)
    if (code === 'not-found' || code === 'invalid-argument' || code === 'failed-precondition') return undefined
    throw error
  }
}

function tagIn({ epc, tagUid, tagId }: Event): string | undefined {
  return epc ?? tagUid ?? tagId
}

/** The result of an event in words. */
function resultOf(at: PageContext, { type }: Event): string {
  return at.texts.decisions.types[type]
}

/** The reason of an event in words; undefined without one. */
function reasonOf(at: PageContext, { reason }: Event): string | undefined {
  if (reason === undefined) return undefined
  const titles: Readonly<Record<string, string>> = at.texts.exceptionTitles
  const reasons: Readonly<Record<string, string>> = at.texts.rules.reasons satisfies Record<DenyReason, string>
  return reasons[reason] ?? titles[reason] ?? reason
}

function Found({ at }: { at: View }) {
  const t = at.texts.decisions
  const { asked, events, names, alone } = at.data
  const day = (date: string) => at.formats.date(startOfDay(date))
  const title = alone ? t.alone(day(alone.from), day(alone.to)) : asked === '' ? t.newest : t.found(asked)
  const nothing = alone ? t.aloneNothing : asked === '' ? t.nothing : t.notFound
  const limit = alone && events.length >= SHOWN ? t.aloneLimit(at.formats.number(SHOWN)) : undefined
  return (
    <Card title={title} flush aside={limit === undefined ? null : <span class="soft small">{limit}</span>}>
      {events.length === 0 ? (
        <EmptyState icon="info" title={nothing}>
          {asked === '' ? undefined : t.notFoundText(at.formats.number(SEARCHED))}
        </EmptyState>
      ) : (
        <Table
          caption={title}
          rows={events}
          columns={[
            {
              label: t.when,
              kind: 'head',
              cell: ({ eventId, occurredAt }) => (
                <a href={`${PATH}?${new URLSearchParams({ q: eventId })}`}>
                  <Moment ms={Date.parse(occurredAt)} text={at.formats.moment(Date.parse(occurredAt))} />
                </a>
              ),
            },
            {
              label: t.what,
              cell: ({ protectionAction }) => (protectionAction ? at.texts.rules.actions[protectionAction] : '–'),
            },
            {
              label: t.result,
              cell: (event) => (
                <>
                  {resultOf(at, event)}
                  <span class="sub">{reasonOf(at, event)}</span>
                </>
              ),
            },
            { label: t.device, cell: ({ deviceId = '' }) => names.get(deviceId) ?? (deviceId || '–') },
            { label: t.tag, cell: (event) => <span class="number">{tagIn(event) ?? '–'}</span> },
          ]}
        />
      )}
    </Card>
  )
}

/** One decision: what, why, its facts, and what the rules say now. */
function Chosen({ at, event }: { at: View; event: Event }) {
  const t = at.texts.decisions
  const { names } = at.data
  const { deviceId = '', operatorId = '', protectionAction, purchaseId, itemStatus, unknownFacts } = event
  const ms = Date.parse(event.occurredAt)
  const isAlarm = GATE_ALARMS.has(event.reason ?? '')
  const pairs = [
    [t.when, <Moment ms={ms} text={at.formats.moment(ms)} />],
    [t.what, protectionAction && at.texts.rules.actions[protectionAction]],
    [t.why, reasonOf(at, event)],
    [t.device, names.get(deviceId) ?? (deviceId || undefined)],
    [t.tag, tagIn(event)],
    [t.item, itemStatus && at.texts.alarms.itemStatuses[itemStatus]],
    [t.operator, names.get(operatorId) ?? (operatorId || undefined)],
    [t.offline, event.offline ? t.yes : undefined],
    [t.unknownFacts, unknownFacts?.map((name) => t.factNames[name]).join(', ')],
    [t.detail, event.detail === undefined ? undefined : <span lang="en">{event.detail}</span>],
    [t.number, <code>{event.eventId}</code>],
  ] as const
  return (
    <>
      <Card title={resultOf(at, event)}>
        <div class="stack">
          <Pairs pairs={pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))} />
          <div class="row">
            {isAlarm && at.opens('/console/alarms') ? (
              <a class="button" href={alarmHref(event.eventId)}>
                {t.openAlarm}
              </a>
            ) : null}
            {purchaseId !== undefined && at.opens('/console/purchases') ? (
              <a class="button" href={`/console/purchases?purchase=${purchaseId}`}>
                {t.openPurchase}
              </a>
            ) : null}
            <a class="button" href={PATH}>
              {t.all}
            </a>
          </div>
        </div>
      </Card>
      <Facts at={at} event={event} />
      <RulesNow at={at} event={event} />
    </>
  )
}

function Facts({ at, event }: { at: View; event: Event }) {
  const t = at.texts.decisions
  if (!event.facts)
    return (
      <Card>
        <p class="soft">{t.noFacts}</p>
      </Card>
    )
  return (
    <>
      {event.facts.map((unit, index) => {
        const status = unit.itemStatus && at.texts.alarms.itemStatuses[unit.itemStatus]
        const pairs = [
          [t.item, unit.recalled ? t.recalled : status],
          [t.category, unit.category],
          [t.brand, unit.brand],
          [t.price, unit.price === undefined ? undefined : at.formats.money(unit.price)],
          [t.right, t.rights[unit.right]],
          [t.approved, unit.hasOperator ? t.approvals.yes : t.approvals.no],
          [t.stage, t.stages[unit.policyStage]],
        ] as const
        return (
          <Card title={t.facts(at.formats.number(index + 1))}>
            <Pairs
              pairs={pairs.flatMap(([name, value]) =>
                value === undefined || value === '' ? [] : [[name, value] as const],
              )}
            />
          </Card>
        )
      })}
    </>
  )
}

/** The rules behind the reason, as they are now. */
function RulesNow({ at, event }: { at: View; event: Event }) {
  const { policy } = at.data
  if (!policy) return null
  const names = at.texts.rules.topics
  const topics = new Set((TOPICS_OF[event.reason ?? ''] ?? []).map((topic) => names[topic]))
  const lines = ruleLines(at, policy).filter(({ topic }) => topics.has(topic))
  const isCategory = event.reason === 'action_not_allowed' || event.reason === 'workflow_not_allowed'
  const categories = isCategory ? Object.keys(policy.allowedActionsByCategory) : []
  if (lines.length === 0 && !isCategory) return null
  return (
    <Card title={at.texts.decisions.ruleNow}>
      <ul class="stack tight">
        {lines.map(({ topic, text }) => (
          <li>
            <strong>{topic}</strong>: {text}
          </li>
        ))}
        {isCategory ? (
          <li>
            <a href="/console/rules">{at.texts.rules.categories}</a>:{' '}
            {categories.length === 0
              ? at.texts.rules.sentences.noCategories
              : categories.map((name) => categoryName(at, name)).join(', ')}
          </li>
        ) : null}
      </ul>
    </Card>
  )
}
