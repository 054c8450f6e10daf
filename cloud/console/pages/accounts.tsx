import type { z } from 'zod'
import { PACKAGES, PLATFORM_ROLE } from '../../platform/foundation/caller.ts'
import { fetchAccount, fetchAccounts, fetchAccountStores } from '../../sales/registrations/account-operations.ts'
import { setStorePackage, simulateStorePackage } from '../../sales/store-operations/store-package.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { Badge, Card, EmptyState, Pairs } from '../components/card.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { Notice } from '../components/notice.tsx'
import { FilterBar, Moment, Pagination, Results, Table } from '../components/table.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Accounts = z.output<typeof fetchAccounts.response>
type Account = z.output<typeof fetchAccount.response>
type Stores = z.output<typeof fetchAccountStores.response>
type Change = z.output<typeof simulateStorePackage.response>

const LIST = '/console/accounts'
const PAGE_SIZE = 50
const SEARCH_LENGTH = 160

/** The package in the address, if it is one. */
const packageIn = (at: PageContext) => PACKAGES.find((name) => name === at.query.get('package'))

/** How long ago; a text if never. */
function Ago({ at, time }: { at: PageContext; time: string | undefined }) {
  if (time === undefined) return <>{at.texts.accounts.never}</>
  return <Moment ms={Date.parse(time)} text={at.formats.ago(Date.parse(time), at.nowMs)} />
}

/** All merchants of the cloud. */
export const accountsPage = page<Accounts>({
  path: LIST,
  roles: [PLATFORM_ROLE],
  scope: 'account',
  navigation: { group: 'platform', icon: 'people' },
  title: (texts) => texts.accounts.title,
  lead: (at) => at.texts.accounts.lead,
  load(at) {
    const search = at.query.get('q')?.trim().slice(0, SEARCH_LENGTH) ?? ''
    const wanted = packageIn(at)
    const cursor = at.query.get('cursor')
    return at.run(fetchAccounts, {
      limit: PAGE_SIZE,
      ...(search !== '' && { search }),
      ...(wanted !== undefined && { package: wanted }),
      ...(cursor !== null && { cursor }),
    })
  },
  view(at) {
    const t = at.texts.accounts
    const { accounts, nextCursor } = at.data
    const { number } = at.formats
    return (
      <div class="stack wide">
        <FilterBar at={at}>
          <TextField
            form={NO_FORM}
            name="q"
            type="search"
            label={t.search}
            value={at.query.get('q') ?? ''}
            maxlength={SEARCH_LENGTH}
          />
          <Select
            form={NO_FORM}
            name="package"
            label={t.package}
            value={packageIn(at) ?? ''}
            choices={[{ value: '', label: t.anyPackage }, ...PACKAGES.map((value) => ({ value, label: value }))]}
          />
        </FilterBar>
        <Results>
          <Card flush>
            {accounts.length === 0 ? (
              <EmptyState icon="people" title={t.nothing} />
            ) : (
              <Table
                caption={t.title}
                rows={accounts}
                columns={[
                  {
                    label: t.account,
                    kind: 'head',
                    cell: ({ accountId, name }) => <a href={`${LIST}/${accountId}`}>{name}</a>,
                  },
                  { label: t.package, cell: (row) => <Badge>{row.package}</Badge> },
                  { label: t.stores, kind: 'number', cell: ({ stores }) => number(stores) },
                  { label: t.devices, kind: 'number', cell: ({ devices }) => number(devices) },
                  { label: t.lastActive, cell: ({ lastActiveAt }) => <Ago at={at} time={lastActiveAt} /> },
                ]}
              />
            )}
          </Card>
          <Pagination at={at} shown={accounts.length} nextCursor={nextCursor} />
        </Results>
      </div>
    )
  },
})

interface AccountData {
  readonly account: Account
  readonly stores: Stores
  /** The store whose package the address is about, and what another one would change. */
  readonly change: Change | undefined
}

type View = ViewContext<AccountData | undefined>

/** One merchant, and the packages of the stores. */
export const accountPage = page<AccountData | undefined>({
  path: `${LIST}/:accountId`,
  roles: [PLATFORM_ROLE],
  scope: 'account',
  title: (texts) => texts.accounts.account,
  lead: (at) => at.data?.account.name,
  actions: {
    change: {
      operation: setStorePackage,
      input: (form) => ({
        storeId: form.text('storeId'),
        package: form.text('package'),
        expectedPackage: form.text('expectedPackage'),
      }),
      done: (texts) => texts.accounts.changed,
      next: (_, at) => at.path,
    },
  },
  async load(at) {
    const accountId = at.params['accountId'] ?? ''
    const cursor = at.query.get('cursor')
    try {
      return {
        account: await at.run(fetchAccount, { accountId }),
        stores: await at.run(fetchAccountStores, {
          accountId,
          limit: PAGE_SIZE,
          ...(cursor !== null && { cursor }),
        }),
        change: await changeIn(at, accountId),
      }
    } catch (error) {
      if (asFailure(error).code !== 'not-found') throw error
      return undefined
    }
  },
  view(at) {
    const t = at.texts.accounts
    return (
      <div class="stack wide">
        <nav class="row" aria-label={t.back}>
          <a class="button" href={LIST}>
            {t.back}
          </a>
        </nav>
        {at.data ? (
          <>
            {at.data.change ? <ChangeCard at={at} change={at.data.change} /> : null}
            <Overview at={at} account={at.data.account} />
            <StoresCard at={at} stores={at.data.stores} />
            <Limits at={at} account={at.data.account} />
          </>
        ) : (
          <Card>
            <EmptyState icon="people" title={t.unknown}>
              {t.unknownText}
            </EmptyState>
          </Card>
        )}
      </div>
    )
  },
})

/** What the change in the address would do; undefined without a store of this account. */
async function changeIn(at: PageContext, accountId: string): Promise<Change | undefined> {
  const storeId = at.query.get('store_id')
  if (storeId === null) return undefined
  const wanted = packageIn(at)
  const change = await at.run(simulateStorePackage, { storeId, ...(wanted !== undefined && { package: wanted }) })
  return change.accountId === accountId ? change : undefined
}

function Overview({ at, account }: { at: View; account: Account }) {
  const t = at.texts.accounts
  const { number, date } = at.formats
  return (
    <Card title={t.overview} aside={<Badge>{account.package}</Badge>}>
      <Pairs
        pairs={[
          [t.stores, number(account.stores)],
          [t.agents, number(account.agents)],
          [t.devices, number(account.devices)],
          [t.users, number(account.users)],
          [t.created, date(Date.parse(account.createdAt))],
          [t.lastActive, <Ago at={at} time={account.lastActiveAt} />],
          [t.id, <code>{account.accountId}</code>],
        ]}
      />
    </Card>
  )
}

function Limits({ at, account: { limits } }: { at: View; account: Account }) {
  const t = at.texts.accounts
  const { number } = at.formats
  const names = Object.entries(t.limitNames) as [keyof typeof limits, string][]
  return (
    <Card title={t.limits}>
      <div class="stack">
        <p class="soft">{t.limitsText}</p>
        <Pairs
          pairs={names.map(([name, label]) => [label, t.used(number(limits[name].used), number(limits[name].limit))])}
        />
      </div>
    </Card>
  )
}

function StoresCard({ at, stores: { stores, nextCursor } }: { at: View; stores: Stores }) {
  const t = at.texts.accounts
  const { number } = at.formats
  const hrefOf = (storeId: string) => {
    const query = new URLSearchParams({ store_id: storeId })
    const cursor = at.query.get('cursor')
    if (cursor !== null) query.set('cursor', cursor)
    return `${at.path}?${query}`
  }
  return (
    <Card title={t.storesOf} flush>
      {stores.length === 0 ? (
        <EmptyState icon="store" title={t.noStores} />
      ) : (
        <Table
          caption={t.storesOf}
          rows={stores}
          columns={[
            {
              label: t.store,
              kind: 'head',
              cell: ({ tradingName, city }) => (
                <>
                  {tradingName}
                  <span class="sub">{city}</span>
                </>
              ),
            },
            { label: t.mode, cell: ({ mode }) => at.texts.frame[mode] },
            { label: t.package, cell: (row) => <Badge>{row.package}</Badge> },
            { label: t.agents, kind: 'number', cell: ({ agents }) => number(agents) },
            { label: t.devices, kind: 'number', cell: ({ devices }) => number(devices) },
            { label: t.lastSeen, cell: ({ lastSeenAt }) => <Ago at={at} time={lastSeenAt} /> },
            {
              label: t.change,
              kind: 'actions',
              cell: ({ storeId, tradingName }) => (
                <a class="button" href={hrefOf(storeId)} aria-label={`${t.change}: ${tradingName}`}>
                  {t.change}
                </a>
              ),
            },
          ]}
        />
      )}
      <Pagination at={at} shown={stores.length} nextCursor={nextCursor} />
    </Card>
  )
}

/** Chooses a package, shows what it would change, and then asks to change it. */
function ChangeCard({ at, change }: { at: View; change: Change }) {
  const t = at.texts.accounts
  const { storeId, tradingName, mode } = change
  const chosen = packageIn(at)
  return (
    <Card title={t.changeOf(tradingName)} aside={<Badge>{at.texts.frame[mode]}</Badge>}>
      <div class="stack">
        <form class="stack" method="get" action={at.path}>
          <input type="hidden" name="store_id" value={storeId} />
          <Select
            form={NO_FORM}
            name="package"
            label={t.newPackage}
            hint={t.present(change.package.before)}
            value={change.package.after}
            choices={PACKAGES.map((value) => ({ value, label: value }))}
          />
          <div class="form-foot">
            <Submit main={chosen === undefined}>{t.look}</Submit>
            <a class="button" href={at.path}>
              {t.stop}
            </a>
          </div>
        </form>
        {chosen === undefined ? null : <Difference at={at} change={change} />}
      </div>
    </Card>
  )
}

function Difference({ at, change }: { at: View; change: Change }) {
  const t = at.texts.accounts
  const wanted = change.package.after
  if (change.package.before === wanted) return <Notice tone="info" title={t.same} />
  const onOff = (value: boolean | string) => (typeof value === 'string' ? value : value ? t.yes : t.no)
  const names = Object.keys(t.rows) as (keyof typeof t.rows)[]
  const rows = names.map((name) => ({ name, ...change[name] })).filter(({ before, after }) => before !== after)
  return (
    <>
      {change.stopsAgents ? (
        <Notice tone="warn" title={t.stopsAgents}>
          {t.stopsAgentsText}
        </Notice>
      ) : null}
      <Table
        caption={t.diff}
        isCaptionShown
        rows={rows}
        columns={[
          { label: t.what, kind: 'head', cell: ({ name }) => t.rows[name] },
          { label: t.before, cell: ({ before }) => onOff(before) },
          { label: t.after, cell: ({ after }) => onOff(after) },
        ]}
      />
      <ActionForm
        at={at}
        action="change"
        about={{ storeId: change.storeId, package: wanted, expectedPackage: change.package.before }}
      >
        <p class="soft">{t.atOnce}</p>
        <div>
          <Submit>{t.confirm(wanted)}</Submit>
        </div>
      </ActionForm>
    </>
  )
}
