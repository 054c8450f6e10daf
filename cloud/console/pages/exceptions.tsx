import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { iso } from '../../platform/operations/fields.ts'
import { addDays, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import { fetchExceptions } from '../../protection/records/exception-operations.ts'
import { Card, EmptyState } from '../components/card.tsx'
import { ActiveEmergency, activeEmergencies, type ActiveEmergencies } from '../components/emergency.tsx'
import { EXCEPTION_ACTIONS, ExceptionCard } from '../components/exception-card.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { isKnownKind } from '../components/fixes.ts'
import { Live } from '../components/live.tsx'
import { FilterBar, Pagination, Results } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext } from '../frame/page.ts'

type Listing = z.output<typeof fetchExceptions.response>

const PAGE = 20

/** Exceptions and unresolved releases, with an explanation of each kind. */
export const exceptionsPage = page<Partial<Listing> & { active: ActiveEmergencies }>({
  path: '/console/exceptions',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'warning', tasks: ['emergency', 'release', 'refund', 'exception'] },
  live: ['protection', 'agents', 'payments'],
  title: (texts) => texts.exceptions.title,
  lead: (at) => (at.has(rolesFrom('associate')) ? at.texts.exceptions.lead : at.texts.exceptions.leadOfViewer),
  actions: EXCEPTION_ACTIONS,
  async load(at) {
    const cursor = at.query.get('cursor') ?? undefined
    const [state, kind] = [at.query.get('state') ?? 'open', at.query.get('kind') ?? '']
    const found = await at.runIfAllowed(fetchExceptions, {
      ...(at.store && { storeId: at.store.storeId }),
      ...(state !== 'all' && { state: state === 'acknowledged' ? 'acknowledged' : 'open' }),
      ...(isKnownKind(kind) && { kind }),
      ...raisedIn(daysIn(at)),
      withoutAlarms: true,
      limit: PAGE,
      ...(cursor !== undefined && { cursor }),
    })
    return { ...found, active: await activeEmergencies(at) }
  },
  view(at) {
    const t = at.texts.exceptions
    const { exceptions = [], total, nextCursor } = at.data
    const kind = at.query.get('kind') ?? ''
    return (
      <>
        <FilterBar at={at}>
          <Select
            form={NO_FORM}
            name="state"
            label={at.texts.frame.state}
            value={at.query.get('state') ?? 'open'}
            choices={[
              ...(['open', 'acknowledged'] as const).map((value) => ({ value, label: t.states[value] })),
              { value: 'all', label: t.allStates },
            ]}
          />
          {isKnownKind(kind) ? (
            <Select
              form={NO_FORM}
              name="kind"
              label={t.kind}
              value={kind}
              choices={[
                { value: '', label: t.allKinds },
                { value: kind, label: at.texts.exceptionTitles[kind] },
              ]}
            />
          ) : null}
          {Object.entries(daysIn(at)).map(([name, value]) => (
            <TextField form={NO_FORM} name={name} type="date" label={t[name as 'from' | 'to']} value={value} />
          ))}
        </FilterBar>
        <Results>
          <Live at={at} id="exceptions">
            <ActiveEmergency at={at} active={at.data.active} />
            {exceptions.length === 0 && nextCursor === undefined ? (
              <Card>
                <EmptyState title={t.nothing}>{t.nothingText}</EmptyState>
              </Card>
            ) : (
              exceptions.map((exception) => <ExceptionCard at={at} exception={exception} active={at.data.active} />)
            )}
            <Pagination at={at} shown={exceptions.length} total={total} nextCursor={nextCursor} />
          </Live>
        </Results>
      </>
    )
  },
})

/** First and last day, if the address names them, as links of the figures do. */
function daysIn({ query }: PageContext): { from?: string; to?: string } {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  return { ...(isDay(from) && { from }), ...(isDay(to) && { to }) }
}

function raisedIn({ from, to }: { from?: string; to?: string }) {
  return {
    ...(from !== undefined && { since: iso(startOfDay(from)) }),
    ...(to !== undefined && { until: iso(startOfDay(addDays(to, 1))) }),
  }
}
