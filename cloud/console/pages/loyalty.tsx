import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { asFailure } from '../../service/http/as-failure.ts'
import { getLoyaltyAnalytics } from '../../shop/loyalty/analytics-operations.ts'
import {
  createLoyaltyProgram,
  getLoyaltyProgram,
  getLoyaltyPrograms,
  getStoreLoyaltyPrograms,
  updateLoyaltyProgram,
} from '../../shop/loyalty/program-operations.ts'
import { PROGRAM_TYPES, type LoyaltyProgram, type ProgramType } from '../../shop/loyalty/schema.ts'
import { Badge, Card, EmptyState, Figures, Pairs, PrintButton, type FigureView } from '../components/card.tsx'
import { Checkbox, Choices } from '../components/fields.tsx'
import { ActionForm, Submit } from '../components/form.tsx'
import { programInput, ProgramFields } from '../components/loyalty-fields.tsx'
import { Pagination, Table } from '../components/table.tsx'
import { NO_FORM, VERSION } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Analytics = z.output<typeof getLoyaltyAnalytics.response>
type Programs = Pick<z.output<typeof getLoyaltyPrograms.response>, 'programs' | 'total' | 'nextCursor'>

interface Loyalty {
  readonly list: Programs
  readonly analytics: Analytics
}

const LIST = '/console/loyalty'
const MANAGERS = rolesFrom('manager')
const PAGE_SIZE = 50
const programHref = (programId: string) => `${LIST}/${programId}`

/** Programs of a store or of all, with what members earned and redeemed. */
export const loyaltyPage = page<Loyalty>({
  path: LIST,
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'goods', icon: 'gift' },
  title: (texts) => texts.loyalty.title,
  lead: (at) => at.texts.loyalty.lead,
  async load(at) {
    const store = at.store && { storeId: at.store.storeId }
    const cursor = at.query.get('cursor') ?? undefined
    const list = store
      ? await at.run(getStoreLoyaltyPrograms, store)
      : await at.run(getLoyaltyPrograms, { limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) })
    return { list, analytics: await at.run(getLoyaltyAnalytics, { ...store }) }
  },
  view(at) {
    const t = at.texts.loyalty
    const { list, analytics } = at.data
    return (
      <div class="stack wide">
        {at.opens(`${LIST}/new`) ? (
          <div>
            <a class="button main" href={`${LIST}/new`}>
              {t.add}
            </a>
          </div>
        ) : null}
        {list.programs.length === 0 ? (
          <Card>
            <EmptyState icon="gift" title={t.nothing}>
              {t.nothingText}
            </EmptyState>
          </Card>
        ) : (
          <>
            <Figures figures={figuresOf(at, analytics, [...new Set(list.programs.map(({ type }) => type))])} />
            <ProgramTable at={at} list={list} analytics={analytics} />
            <Months at={at} analytics={analytics} types={[...new Set(list.programs.map(({ type }) => type))]} />
          </>
        )}
      </div>
    )
  },
})

/** The unit in which a kind of program counts. Tiers count points. */
const unitOf = (type: ProgramType) => (type === 'tier' ? 'points' : type)

/** Issued and redeemed amounts of a unit, in total or of a month. */
function amountsOf(of: Analytics | Analytics['monthly'][number], unit: ReturnType<typeof unitOf>) {
  return unit === 'points' ? { issued: of.pointsIssued, redeemed: of.pointsRedeemed } : of[unit]
}

/** An amount of a program: EUR of cashback, else points or stamps. */
const amountOf = (at: PageContext, type: ProgramType, amount: number) =>
  type === 'cashback' ? at.formats.money(amount) : at.formats.number(amount)

function figuresOf(at: PageContext, analytics: Analytics, types: readonly ProgramType[]): FigureView[] {
  const t = at.texts.loyalty
  return [
    { label: t.members, value: at.formats.number(analytics.members) },
    { label: t.redemptions, value: at.formats.number(analytics.redemptions) },
    ...[...new Set(types.map(unitOf))].flatMap((unit) => {
      const { issued, redeemed } = amountsOf(analytics, unit)
      return [
        { label: t.ofUnit(t[unit], t.issued), value: amountOf(at, unit, issued) },
        { label: t.ofUnit(t[unit], t.redeemed), value: amountOf(at, unit, redeemed) },
      ]
    }),
  ]
}

function State({ at, isActive }: { at: PageContext; isActive: boolean }) {
  const t = at.texts.loyalty
  return isActive ? <Badge tone="ok">{t.active}</Badge> : <Badge>{t.inactive}</Badge>
}

function ProgramTable({ at, list, analytics }: { at: ViewContext } & Loyalty) {
  const t = at.texts.loyalty
  const stores = new Map(at.stores.map(({ storeId, tradingName }) => [storeId, tradingName]))
  const figures = new Map(analytics.programs.map((each) => [each.programId, each]))
  return (
    <>
      <Card title={t.title} flush>
        <Table
          caption={t.title}
          rows={list.programs}
          columns={[
            {
              label: t.program,
              kind: 'head',
              cell: ({ programId, name }) => <a href={programHref(programId)}>{name}</a>,
            },
            { label: t.type, cell: ({ type }) => t.types[type] },
            { label: t.store, cell: ({ storeId }) => stores.get(storeId) ?? storeId },
            { label: at.texts.frame.state, cell: ({ isActive }) => <State at={at} isActive={isActive} /> },
            {
              label: t.members,
              kind: 'number',
              cell: ({ programId }) => at.formats.number(figures.get(programId)?.members ?? 0),
            },
            {
              label: t.issued,
              kind: 'number',
              cell: ({ programId, type }) => amountOf(at, type, figures.get(programId)?.pointsIssued ?? 0),
            },
            {
              label: t.rate,
              kind: 'number',
              cell: ({ programId }) => at.formats.percent((figures.get(programId)?.redemptionRate ?? 0) / 100),
            },
          ]}
        />
      </Card>
      <Pagination at={at} shown={list.programs.length} total={list.total} nextCursor={list.nextCursor} />
    </>
  )
}

function Months({ at, analytics, types }: { at: ViewContext; analytics: Analytics; types: readonly ProgramType[] }) {
  const t = at.texts.loyalty
  const name = new Intl.DateTimeFormat(at.language, { month: 'long', year: 'numeric', timeZone: 'UTC' })
  const units = [...new Set(types.map(unitOf))]
  return (
    <Card title={t.months} flush>
      <Table
        caption={t.months}
        rows={analytics.monthly.toReversed()}
        columns={[
          { label: t.month, kind: 'head', cell: ({ month }) => name.format(Date.parse(`${month}-01`)) },
          { label: t.newMembers, kind: 'number', cell: ({ newMembers }) => at.formats.number(newMembers) },
          { label: t.redemptions, kind: 'number', cell: ({ redemptions }) => at.formats.number(redemptions) },
          ...units.flatMap((unit) =>
            (['issued', 'redeemed'] as const).map((what) => ({
              label: t.ofUnit(t[unit], t[what]),
              kind: 'number' as const,
              cell: (month: Analytics['monthly'][number]) => amountOf(at, unit, amountsOf(month, unit)[what]),
            })),
          ),
        ]}
      />
    </Card>
  )
}

/** The form of a new program of the chosen store. */
export const newProgramPage = page<undefined>({
  path: '/console/loyalty/new',
  roles: MANAGERS,
  scope: 'store',
  title: (texts) => texts.loyalty.addTitle,
  lead: (at) => at.texts.loyalty.addLead(at.store?.tradingName ?? ''),
  actions: {
    create: {
      operation: createLoyaltyProgram,
      input: (form, at) => ({ storeId: at.store?.storeId, type: form.text('type'), ...programInput(form) }),
      done: (texts) => texts.loyalty.created,
      next: ({ programId }) => programHref(String(programId)),
    },
  },
  load: () => Promise.resolve(undefined),
  view(at) {
    const t = at.texts.loyalty
    return (
      <Card>
        <ActionForm at={at} action="create">
          <Choices
            form={at.form}
            name="type"
            label={t.type}
            value="stamps"
            choices={PROGRAM_TYPES.map((value) => ({ value, label: t.types[value], hint: t.typeHints[value] }))}
          />
          <ProgramFields at={at} form={at.form} />
          <div class="form-foot">
            <Submit>{t.create}</Submit>
            <a class="button" href={LIST}>
              {t.back}
            </a>
          </div>
        </ActionForm>
      </Card>
    )
  },
})

interface OneProgram {
  readonly program: LoyaltyProgram & { readonly qrCodeImage: string }
  readonly analytics: Analytics
}

/** The program of the page; undefined if the user may see none with this id. */
async function programOfPage(at: PageContext): Promise<OneProgram['program'] | undefined> {
  try {
    return await at.run(getLoyaltyProgram, { programId: at.params['programId'] ?? '' })
  } catch (error) {
    if (!['not-found', 'invalid-argument'].includes(asFailure(error).code)) throw error
    return undefined
  }
}

/** One program: its code to print, its figures, its settings. */
export const programPage = page<OneProgram | undefined>({
  path: '/console/loyalty/:programId',
  roles: rolesFrom('viewer'),
  scope: 'account',
  title: (texts) => texts.loyalty.program,
  lead: (at) => at.data?.program.name,
  actions: {
    change: {
      operation: updateLoyaltyProgram,
      roles: MANAGERS,
      input: async (form, at) => ({
        programId: at.params['programId'],
        ...programInput(form, await programOfPage(at)),
        isActive: form.isSet('isActive'),
        [VERSION]: form.text(VERSION),
      }),
      done: (texts) => texts.loyalty.saved,
    },
  },
  async load(at) {
    const program = await programOfPage(at)
    return program && { program, analytics: await at.run(getLoyaltyAnalytics, { programId: program.programId }) }
  },
  view(at) {
    const t = at.texts.loyalty
    const back = (
      <a class="button" href={LIST}>
        {t.back}
      </a>
    )
    if (!at.data)
      return (
        <Card>
          <EmptyState icon="gift" title={t.unknown} />
          <div class="empty">{back}</div>
        </Card>
      )
    const { program, analytics } = at.data
    return (
      <div class="stack wide">
        <nav class="row" aria-label={t.back}>
          {back}
        </nav>
        <Figures figures={figuresOf(at, analytics, [program.type])} />
        <Code at={at} program={program} />
        {at.has(MANAGERS) ? <Change at={at} program={program} /> : <Settings at={at} program={program} />}
        <Months at={at} analytics={analytics} types={[program.type]} />
      </div>
    )
  },
})

function Code({ at, program }: { at: ViewContext; program: OneProgram['program'] }) {
  const t = at.texts.loyalty
  return (
    <Card title={t.code} aside={<PrintButton label={t.print} />}>
      <div class="stack">
        <p>{t.codeText}</p>
        <img class="qr" src={`data:image/png;base64,${program.qrCodeImage}`} alt={t.codeAlt} width={200} height={200} />
        <p class="small soft">
          <code>{program.checkInCode}</code>
        </p>
      </div>
    </Card>
  )
}

/** The settings for users who may not change them. */
function Settings({ at, program }: { at: ViewContext; program: LoyaltyProgram }) {
  const t = at.texts.loyalty
  const entries = (list: readonly (readonly [string, number])[]) =>
    list.map(([name, amount]) => `${name}: ${amountOf(at, program.type, amount)}`).join(', ')
  return (
    <Card title={program.name} aside={<State at={at} isActive={program.isActive} />}>
      <Pairs
        pairs={[
          [t.type, t.types[program.type]],
          [t.methods, program.earningMethods.map((method) => t.methodNames[method]).join(', ')],
          [t.rewards, entries(program.rewards.map(({ name, cost }) => [name, cost]))],
          [t.tiers, entries(program.tiers.map(({ name, threshold }) => [name, threshold]))],
        ]}
      />
    </Card>
  )
}

function Change({ at, program }: { at: ViewContext; program: LoyaltyProgram }) {
  const t = at.texts.loyalty
  const form = at.form.id === 'change' ? at.form : NO_FORM
  return (
    <Card title={t.change} aside={<Badge>{t.types[program.type]}</Badge>}>
      <ActionForm at={at} action="change">
        <input type="hidden" name={VERSION} value={program.updatedAt} />
        <ProgramFields at={at} form={form} program={program} />
        <Checkbox
          form={form}
          name="isActive"
          label={t.isActive}
          hint={t.isActiveHint}
          value={program.isActive ? 'yes' : undefined}
        />
        <div class="form-foot">
          <Submit>{t.save}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}
