import type { z } from 'zod'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { endRecall, fetchRecalls, recallProducts } from '../../protection/recalls/recall-operations.ts'
import { Badge, Card, Pairs, EmptyState } from '../components/card.tsx'
import { Confirm, ActionForm, Submit } from '../components/form.tsx'
import { Select, TextField } from '../components/fields.tsx'
import { Live } from '../components/live.tsx'
import { List } from '../components/table.tsx'
import { storeNames } from '../components/all-stores.tsx'
import { NO_FORM } from '../frame/form.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Recall = z.output<typeof fetchRecalls.response>['recalls'][number]

interface Recalls {
  active: readonly Recall[]
  /** The newest of those that have ended. */
  ended: readonly Recall[]
}

const ACTIVE_LIMIT = 100
const ENDED_LIMIT = 10
const MANAGERS = rolesFrom('manager')

/** Recalled goods, and what to do with them. A manager starts and ends recalls. */
export const recallsPage = page<Recalls>({
  path: '/console/recalls',
  roles: rolesFrom('associate'),
  scope: 'account',
  live: ['protection'],
  navigation: { group: 'goods', icon: 'recall' },
  title: (texts) => texts.recalls.title,
  lead: (at) => at.texts.recalls.lead,
  actions: {
    recall: {
      operation: recallProducts,
      roles: MANAGERS,
      input: (form, at) => ({
        ...(at.store && form.text('where') !== 'all' && { storeIds: [at.store.storeId] }),
        ean: form.text('ean'),
        lot: form.text('lot'),
        expiry: form.text('expiry'),
        serial: form.text('serial'),
        reason: form.text('reason'),
      }),
      done: (texts) => texts.recalls.started,
    },
    end: {
      operation: endRecall,
      roles: MANAGERS,
      input: (form) => ({ recallId: form.text('recallId') }),
      done: (texts) => texts.recalls.ended,
    },
  },
  async load(at) {
    const store = at.store ? { storeId: at.store.storeId } : {}
    const list = async (state: 'active' | 'ended', limit: number) =>
      (await at.runIfAllowed(fetchRecalls, { ...store, state, limit }))?.recalls ?? []
    return { active: await list('active', ACTIVE_LIMIT), ended: await list('ended', ENDED_LIMIT) }
  },
  view(at) {
    const t = at.texts.recalls
    const { active, ended } = at.data
    return (
      <div class="stack wide">
        <Live at={at} id="recalls">
          {active.length === 0 ? (
            <Card>
              <EmptyState title={t.nothing}>{t.nothingText}</EmptyState>
            </Card>
          ) : (
            <>
              <ToDo at={at} />
              {active.map((recall) => (
                <RecallCard at={at} recall={recall} />
              ))}
            </>
          )}
        </Live>
        {at.has(MANAGERS) ? <NewRecall at={at} /> : null}
        {ended.length === 0 ? null : (
          <Card title={t.endedList} flush>
            <List>
              {ended.map((recall) => (
                <li>
                  <div>
                    <strong>{goodsOf(at, recall)}</strong>
                    <span class="sub">{recall.reason}</span>
                  </div>
                  <span class="sub">{t.endedOn(at.formats.moment(Date.parse(recall.endedAt ?? '')))}</span>
                </li>
              ))}
            </List>
          </Card>
        )}
      </div>
    )
  },
})

/** What staff do with the goods, also with those that a customer has paid. */
function ToDo({ at }: { at: ViewContext }) {
  const t = at.texts.recalls
  return (
    <Card title={t.toDo} flush>
      <List>
        {Object.values(t.steps).map((step) => (
          <li>{step}</li>
        ))}
      </List>
    </Card>
  )
}

function RecallCard({ at, recall }: { at: ViewContext<Recalls>; recall: Recall }) {
  const t = at.texts.recalls
  const { recallId, ean, lot, expiry, serial, startedAt, items, soldItems } = recall
  const pairs: (readonly [string, string | undefined])[] = [
    [t.ean, ean],
    [t.lot, lot],
    [t.expiry, expiry && at.formats.date(Date.parse(expiry))],
    [t.serial, serial],
    [t.stores, storesOf(at, recall)],
    [t.since, at.formats.moment(Date.parse(startedAt))],
    [
      t.items,
      items === undefined || soldItems === undefined
        ? undefined
        : t.count(at.formats.number(items), at.formats.number(soldItems)),
    ],
  ]
  return (
    <Card title={recall.name || ean} aside={<Badge tone="warn">{t.isActive}</Badge>}>
      <div class="stack">
        <p>
          <strong>{recall.reason}</strong>
        </p>
        <Pairs pairs={pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))} />
        {at.has(MANAGERS) ? (
          <div>
            <Confirm
              at={at}
              action="end"
              about={{ recallId }}
              label={t.end}
              question={t.endQuestion(goodsOf(at, recall))}
              explanation={t.endText}
              confirm={t.end}
            />
          </div>
        ) : null}
      </div>
    </Card>
  )
}

function NewRecall({ at }: { at: ViewContext<Recalls> }) {
  const t = at.texts.recalls
  const form = at.form.id === 'recall' ? at.form : NO_FORM
  return (
    <Card title={t.add}>
      <ActionForm at={at} action="recall">
        <TextField form={form} name="ean" label={t.ean} hint={t.eanHint} maxlength={200} required />
        <TextField form={form} name="lot" label={t.optional(t.lot)} hint={t.lotHint} maxlength={20} />
        <TextField form={form} name="expiry" type="date" label={t.optional(t.expiry)} />
        <TextField form={form} name="serial" label={t.optional(t.serial)} maxlength={20} />
        <TextField form={form} name="reason" label={t.reason} hint={t.reasonHint} maxlength={300} required />
        {at.store === undefined ? null : (
          <Select
            form={form}
            name="where"
            label={t.stores}
            value="store"
            choices={[
              { value: 'store', label: at.store.tradingName },
              { value: 'all', label: t.allStores },
            ]}
          />
        )}
        <p class="small soft">{t.addText}</p>
        <div>
          <Submit>{t.recall}</Submit>
        </div>
      </ActionForm>
    </Card>
  )
}

/** Product, lot, expiry and serial in a line. */
function goodsOf(at: PageContext, { name, ean, lot, expiry, serial }: Recall): string {
  const t = at.texts.recalls
  const day = expiry && at.formats.date(Date.parse(expiry))
  const unit = [lot && `${t.lot} ${lot}`, day && `${t.expiry} ${day}`, serial && `${t.serial} ${serial}`]
  return [name || ean, ...unit].filter(Boolean).join(', ')
}

function storesOf(at: PageContext, { storeIds }: Recall): string {
  if (storeIds === undefined) return at.texts.recalls.allStores
  return storeNames(at, storeIds)
}
