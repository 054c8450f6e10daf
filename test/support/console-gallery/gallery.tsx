/** @jsxImportSource hono/jsx */
import { fetchStores } from '../../../cloud/sales/store-operations/read-stores.ts'
import { BarTable, ColumnChart } from '../../../cloud/console/components/bars.tsx'
import { Badge, Card, Figures, Pairs, EmptyState } from '../../../cloud/console/components/card.tsx'
import { Confirm, ActionForm, Submit } from '../../../cloud/console/components/form.tsx'
import { Checkbox, Choices, Select, TextArea, TextField } from '../../../cloud/console/components/fields.tsx'
import { FilterBar, Results, Pagination, List, Table, Timeline } from '../../../cloud/console/components/table.tsx'
import { Notice } from '../../../cloud/console/components/notice.tsx'
import { ROLES } from '../../../cloud/platform/foundation/caller.ts'
import type { FormState } from '../../../cloud/console/frame/form.ts'
import { galleryTexts } from './texts.ts'
import { page, type ViewContext } from '../../../cloud/console/frame/page.ts'

const HOUR = 3_600_000

/** Shows each component once, with made-up data. Its form sends nothing that changes data. */
export const galleryPage = page({
  path: '/console/components',
  roles: ROLES,
  scope: 'account',
  title: () => galleryTexts.en.title,
  lead: (at) => galleryTexts[at.language].lead,
  actions: {
    try: {
      operation: fetchStores,
      // The gallery shows what happens to a wrong value: `limit` must be a number from 1.
      input: (form) => ({ limit: form.number('limit') }),
      done: (texts) => texts.frame.done,
    },
  },
  load: () => Promise.resolve(undefined),
  view: (at) => (
    <div class="stack wide">
      <States at={at} />
      <Lists at={at} />
      <Forms at={at} />
    </div>
  ),
})

function States({ at }: { at: ViewContext }) {
  const t = galleryTexts[at.language]
  return (
    <>
      <Figures
        figures={[
          { label: t.sales, value: at.formats.money(12_480.5), note: t.comparedWithYesterday },
          { label: t.purchases, value: at.formats.number(1_204), href: '/console' },
          { label: t.share, value: at.formats.percent(0.984) },
          { label: t.alarms, value: at.formats.number(2), tone: 'alarm', note: t.onlyAlarmsAreRed },
        ]}
      />
      <Card title={t.badges} aside={<Badge tone="info">{t.info}</Badge>}>
        <div class="row">
          <Badge>{t.plain}</Badge>
          <Badge tone="ok">{t.ok}</Badge>
          <Badge tone="info">{t.info}</Badge>
          <Badge tone="warn">{t.waiting}</Badge>
          <Badge tone="alarm">{t.alarm}</Badge>
        </div>
      </Card>
      <div class="stack">
        <Notice title={t.noticeTitle}>{t.noticeText}</Notice>
        <Notice tone="warn" title={t.waiting}>
          {t.noticeText}
        </Notice>
        <Notice tone="ok" title={t.ok}>
          {t.noticeText}
        </Notice>
        <Notice tone="alarm" title={t.alarm}>
          {t.noticeText}
        </Notice>
      </div>
    </>
  )
}

const ROWS = [
  { name: 'Wollmantel', gtin: '4006381333931', quantity: 3, euros: 189.9, isSold: true },
  { name: 'Lederhandschuhe', gtin: '4006381333948', quantity: 12, euros: 49.95, isSold: false },
]

function MoreLists({ at }: { at: ViewContext }) {
  const t = galleryTexts[at.language]
  const first = at.nowMs - 4 * HOUR
  return (
    <div class="grid">
      <Card title={t.list} flush>
        <List>
          <li>
            <div>
              <strong>{t.noticeTitle}</strong>
              <span class="sub">{at.formats.ago(first, at.nowMs)}</span>
            </div>
            <Confirm
              at={at}
              action="try"
              about={{ limit: '1' }}
              label={t.remove}
              question={t.removeQuestion}
              explanation={t.removeExplanation}
              confirm={t.remove}
            />
          </li>
        </List>
      </Card>
      <Card title={t.timeline}>
        <Timeline
          formats={at.formats}
          entries={[
            { atMs: first + HOUR, title: t.alarm, text: t.noticeText, tone: 'alarm' },
            { atMs: first, title: t.waiting, tone: 'warn' },
            { atMs: first - HOUR, title: t.ok, tone: 'ok' },
          ]}
        />
      </Card>
      <Card title={t.pairs}>
        <Pairs
          pairs={[
            [t.product, 'Wollmantel'],
            [t.price, at.formats.money(189.9)],
          ]}
        />
      </Card>
      <Card title={t.emptyState}>
        <EmptyState title={t.nothingWaits}>{t.noticeText}</EmptyState>
      </Card>
    </div>
  )
}

function Lists({ at }: { at: ViewContext }) {
  const t = galleryTexts[at.language]
  return (
    <>
      <FilterBar at={at}>
        <TextField
          form={at.form}
          id="filter-text"
          name="text"
          label={t.search}
          type="search"
          value={at.query.get('text') ?? ''}
        />
        <Select
          form={at.form}
          name="state"
          label={at.texts.frame.state}
          value={at.query.get('state') ?? 'all'}
          choices={[
            { value: 'all', label: t.all },
            { value: 'open', label: t.waiting },
          ]}
        />
      </FilterBar>
      <Results>
        <Card title={t.table} flush>
          <Table
            caption={t.table}
            rows={ROWS}
            columns={[
              {
                label: t.product,
                kind: 'head',
                cell: (row) => (
                  <>
                    {row.name}
                    <span class="sub number">{row.gtin}</span>
                  </>
                ),
              },
              { label: t.quantity, kind: 'number', cell: (row) => at.formats.number(row.quantity) },
              { label: t.price, kind: 'number', cell: (row) => at.formats.money(row.euros) },
              {
                label: at.texts.frame.state,
                cell: (row) => <Badge tone={row.isSold ? 'ok' : 'warn'}>{row.isSold ? t.ok : t.waiting}</Badge>,
              },
            ]}
          />
        </Card>
        <Card title={t.quantity}>
          <BarTable
            at={at}
            caption={t.quantity}
            name={t.product}
            value={t.quantity}
            bars={ROWS.map(({ name, quantity }) => ({ label: name, value: quantity }))}
          />
          <ColumnChart
            at={at}
            caption={t.quantity}
            bars={ROWS.map(({ gtin, quantity }) => ({ label: gtin.slice(-2), value: quantity }))}
          />
        </Card>
        <Pagination at={at} shown={2} total={40} nextCursor="next" />
      </Results>
      <MoreLists at={at} />
    </>
  )
}

function Forms({ at }: { at: ViewContext }) {
  const t = galleryTexts[at.language]
  const wrong: FormState = { ...at.form, errors: { email: at.texts.errors.fields.missing } }
  return (
    <Card title={t.form}>
      <ActionForm at={at} action="try">
        <TextField form={at.form} name="limit" label={t.quantity} hint={t.quantityHint} inputmode="numeric" required />
        <TextField form={wrong} name="email" label={t.email} type="email" />
        <Select
          form={at.form}
          name="kind"
          label={t.product}
          choices={ROWS.map(({ gtin, name }) => ({ value: gtin, label: name }))}
        />
        <Choices
          form={at.form}
          name="choice"
          label={t.choice}
          value="a"
          choices={[
            { value: 'a', label: t.ok, hint: t.noticeText },
            { value: 'b', label: t.waiting },
          ]}
        />
        <Checkbox form={at.form} name="agree" label={t.agree} />
        <TextArea form={at.form} name="note" label={t.note} hint={at.texts.frame.optional} />
        <div class="form-foot">
          <Submit>{t.save}</Submit>
          <a class="button" href={at.path}>
            {at.texts.frame.cancel}
          </a>
        </div>
      </ActionForm>
    </Card>
  )
}
