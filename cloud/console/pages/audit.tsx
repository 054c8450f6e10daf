import type { z } from 'zod'
import { fetchAuditLog } from '../../platform/accounts/audit-operations.ts'
import { fetchApiKeys } from '../../platform/accounts/key-operations.ts'
import { PLATFORM_ROLE, rolesFrom } from '../../platform/foundation/caller.ts'
import { approveStoreRegistration, rejectStoreRegistration } from '../../sales/registrations/registration-operations.ts'
import { setStorePackage } from '../../sales/store-operations/store-package.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchUsers } from '../../platform/users/user-operations.ts'
import { dayOf, isDay, startOfDay } from '../../shop/analytics/store-days.ts'
import { Card, EmptyState } from '../components/card.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { FilterBar, Moment, Pagination, Results, Table } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext } from '../frame/page.ts'

interface Audit {
  readonly log: z.output<typeof fetchAuditLog.response>
  /** Names of users and keys by id. */
  readonly names: ReadonlyMap<string, string>
  readonly userIds: ReadonlySet<string>
  readonly from: string
}

const PAGE_SIZE = 50
/** What only the people who run the cloud, and their keys, may do. Merchants see it in their log. */
const OF_PLATFORM: ReadonlySet<string> = new Set(
  [approveStoreRegistration, rejectStoreRegistration, setStorePackage].map(({ name }) => name),
)
/** Agents whose names the page knows. */
const AGENTS_NAMED = 500
const ENTITY = /^\w{1,128}$/
const isAgent = (id = '') => id.startsWith('agt_')
const hashStart = (hash: string | undefined) => (hash === undefined ? '' : `${hash.slice(0, 10)}…`)

/** The day in the address, else yesterday. */
function dayIn(at: PageContext): string {
  const day = at.query.get('from') ?? ''
  return isDay(day) ? day : dayOf(at.nowMs - 86_400_000)
}

/** Agents report all the time, so their entries are shown on demand, and where one thing is looked for. */
function hasAgents(at: PageContext): boolean {
  return at.query.get('by') === 'all' || (at.query.get('entity')?.trim() ?? '') !== ''
}

/** Who changed what, from a day on. */
export const auditPage = page<Audit>({
  path: '/console/audit',
  roles: [...rolesFrom('admin'), PLATFORM_ROLE],
  scope: 'account',
  navigation: { group: 'developers', icon: 'history' },
  title: (texts) => texts.developers.audit.title,
  lead: (at) => at.texts.developers.audit.lead,
  async load(at) {
    const from = dayIn(at)
    const entityId = at.query.get('entity')?.trim() ?? ''
    const cursor = at.query.get('cursor') ?? undefined
    const log = await at.run(fetchAuditLog, {
      since: new Date(startOfDay(from)).toISOString(),
      latest: true,
      limit: PAGE_SIZE,
      ...(hasAgents(at) ? {} : { withoutAgents: true as const }),
      ...(ENTITY.test(entityId) && { entityId }),
      ...(cursor !== undefined && { cursor }),
    })
    const users = (await at.runIfAllowed(fetchUsers, {}))?.users ?? []
    const keys = (await at.runIfAllowed(fetchApiKeys, {}))?.keys ?? []
    const hasAgent = log.entries.some(({ actor, entityId }) => isAgent(actor) || isAgent(entityId))
    const agents = hasAgent ? ((await at.runIfAllowed(fetchAgents, { limit: AGENTS_NAMED }))?.agents ?? []) : []
    const names = new Map([
      ...agents.map(({ agentId, name }) => [agentId, name] as const),
      ...at.stores.map(({ storeId, tradingName }) => [storeId, tradingName] as const),
      ...users.map(({ userId, name, email }) => [userId, name || email] as const),
      ...keys.map(({ keyId, name }) => [keyId, name] as const),
    ])
    return { log, names, userIds: new Set(users.map(({ userId }) => userId)), from }
  },
  view(at) {
    const t = at.texts.developers.audit
    const { log, names, userIds, from } = at.data
    const { entries, nextCursor } = log
    const named: Readonly<Record<string, string>> = t.actors
    const nameOf = (id: string) => names.get(id) ?? named[id]
    return (
      <div class="stack wide">
        <FilterBar at={at} apply={t.apply}>
          <TextField form={NO_FORM} name="from" type="date" label={t.from} value={from} />
          <Select
            form={NO_FORM}
            name="by"
            label={t.by}
            value={at.query.get('by') ?? 'people'}
            choices={[
              { value: 'people', label: t.withoutAgents },
              { value: 'all', label: t.withAgents },
            ]}
          />
          <TextField
            form={NO_FORM}
            name="entity"
            type="search"
            label={at.texts.developers.optional(t.entity)}
            hint={t.entityHint}
            value={at.query.get('entity') ?? ''}
            maxlength={128}
          />
        </FilterBar>
        <Results>
          <Card title={t.title} flush>
            {entries.length === 0 ? (
              <EmptyState icon="history" title={t.nothing} />
            ) : (
              <Table
                caption={t.title}
                rows={entries}
                columns={[
                  { label: t.operation, kind: 'head', cell: ({ operation }) => <What at={at} operation={operation} /> },
                  {
                    label: t.time,
                    cell: (row) => <Moment ms={Date.parse(row.at)} text={at.formats.moment(Date.parse(row.at))} />,
                  },
                  {
                    label: t.actor,
                    // Who signs in is nobody yet; the entry is about the user.
                    cell: ({ actor, operation, entityId = '' }) =>
                      nameOf(actor === 'anyone' && userIds.has(entityId) ? entityId : actor) ?? (
                        <>
                          {OF_PLATFORM.has(operation) ? `${at.texts.frame.roles.platform} ` : null}
                          <code>{actor}</code>
                        </>
                      ),
                  },
                  {
                    label: t.entity,
                    cell: ({ entityId }) =>
                      entityId === undefined ? (
                        at.texts.developers.none
                      ) : (
                        <a href={`${at.path}?${new URLSearchParams({ from, entity: entityId })}`}>
                          {nameOf(entityId) ?? <code>{entityId}</code>}
                        </a>
                      ),
                  },
                  { label: t.hash, cell: ({ hash }) => <code title={hash}>{hashStart(hash)}</code> },
                ]}
              />
            )}
          </Card>
          <Pagination at={at} shown={entries.length} nextCursor={nextCursor} />
        </Results>
      </div>
    )
  },
})

/** What was done, in the words of the page if it has some, and the name of the operation. */
function What({ at, operation }: { at: PageContext; operation: string }) {
  const words: Readonly<Record<string, string>> = at.texts.auditOperations
  const text = Object.hasOwn(words, operation) ? words[operation] : undefined
  if (text === undefined) return <code>{operation}</code>
  return (
    <>
      {text}
      <span class="sub">
        <code>{operation}</code>
      </span>
    </>
  )
}
