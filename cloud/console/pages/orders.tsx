import type { z } from 'zod'
import {
  fetchClickCollectOrders,
  updateClickCollectStatus,
  verifyPickupCode,
} from '../../sales/click-and-collect/operations.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { Badge, Card, EmptyState } from '../components/card.tsx'
import { Confirm, ActionButton, ActionForm, Submit } from '../components/form.tsx'
import { Checkbox, Select, TextField } from '../components/fields.tsx'
import { Live } from '../components/live.tsx'
import { storeName } from '../components/all-stores.tsx'
import { rowsOfLists, storeColumn, storesByName, type RowsOfStores } from '../components/rows-of-stores.tsx'
import { Moment, Pagination, Table } from '../components/table.tsx'
import { deviceLabel } from '../components/device-label.ts'
import { page, type PageContext, type ViewContext } from '../frame/page.ts'

type Order = z.output<typeof fetchClickCollectOrders.response>['orders'][number]

/** Columns of the board, and the status to which one tap moves an order. */
const NEXT = { pending: 'confirmed', confirmed: 'preparing', preparing: 'ready', ready: 'picked_up' } as const
type Column = keyof typeof NEXT
const COLUMNS = ['pending', 'confirmed', 'preparing', 'ready'] as const satisfies readonly Column[]
/** Orders in a column: what fits a board. */
const IN_COLUMN = 30
/** Maximum number of devices among which the page looks for lockers. */
const DEVICES = 500

interface Locker {
  readonly deviceId: string
  readonly name: string
}

/** What the page shows. `found` is the order of a pick-up code. */
interface OrdersView {
  /** Instead of `columns`, while all stores are chosen. */
  readonly ofStores?: RowsOfStores<Order>
  readonly columns: Readonly<Record<Column, { orders: readonly Order[]; total: number }>>
  readonly found: Order | undefined
  readonly lockers: readonly Locker[]
}

/** Board of the orders for click and collect. */
export const ordersPage = page<OrdersView>({
  path: '/console/orders',
  roles: rolesFrom('viewer'),
  scope: 'stores',
  navigation: { group: 'work', icon: 'orders', tasks: ['order'] },
  live: ['click and collect'],
  title: (texts) => texts.orders.title,
  lead: (at) => (at.store ? at.texts.orders.lead : at.texts.orders.leadOfStores),
  actions: {
    find: {
      operation: verifyPickupCode,
      roles: rolesFrom('associate'),
      input: (form, at) => ({ storeId: at.store?.storeId, pickupCode: form.text('pickupCode') }),
      done: (texts) => texts.orders.codeFits,
      notFound: (texts) => texts.orders.noOrder,
      next: ({ orderId }, at) => `${at.path}?order=${String(orderId)}`,
    },
    move: {
      operation: updateClickCollectStatus,
      roles: rolesFrom('associate'),
      input: (form) => ({
        orderId: form.text('orderId'),
        status: form.text('status'),
        lockerDeviceId: form.text('lockerDeviceId'),
        paid: form.isSet('paid') || undefined,
      }),
      done: (texts) => texts.orders.moved,
      next: (_, at) => at.path,
    },
    handOver: {
      operation: updateClickCollectStatus,
      roles: rolesFrom('associate'),
      input: (form) => ({
        orderId: form.text('orderId'),
        status: NEXT.ready,
        paid: form.isSet('paid') || undefined,
      }),
      done: (texts) => texts.orders.handedOver,
      next: (_, at) => at.path,
    },
    cancel: {
      operation: updateClickCollectStatus,
      roles: rolesFrom('associate'),
      input: (form) => ({ orderId: form.text('orderId'), status: 'cancelled', reason: form.text('reason') }),
      done: (texts) => texts.orders.cancelled,
      next: (_, at) => at.path,
    },
  },
  async load(at) {
    if (!at.store) return { columns: NO_COLUMNS, found: undefined, lockers: [], ofStores: await ordersOfStores(at) }
    const { storeId } = at.store
    const read = async (status: Column) => {
      const found = await at.runIfAllowed(fetchClickCollectOrders, { storeId, status, limit: IN_COLUMN })
      return { orders: (found?.orders ?? []).toReversed(), total: found?.total ?? 0 }
    }
    const columns = {
      pending: await read('pending'),
      confirmed: await read('confirmed'),
      preparing: await read('preparing'),
      ready: await read('ready'),
    }
    const chosen = at.query.get('order')
    const found = COLUMNS.flatMap((name) => columns[name].orders).find(({ orderId }) => orderId === chosen)
    return { columns, found, lockers: await lockersOf(at, storeId) }
  },
  view(at) {
    const t = at.texts.orders
    const { found, columns, ofStores } = at.data
    if (ofStores) return <OrdersOfStores at={at} {...ofStores} />
    return (
      <div class="stack wide">
        {at.has(rolesFrom('associate')) ? <PickUp at={at} found={found} /> : null}
        <Live at={at} id="orders">
          <div class="board">
            {COLUMNS.map((name) => (
              <section class="stack tight">
                <h2 class="row between">
                  {t.columns[name]} <Badge>{at.formats.number(columns[name].total)}</Badge>
                </h2>
                {columns[name].orders.length === 0 ? <p class="soft">{t.none}</p> : null}
                {columns[name].orders.map((order) => (
                  <OrderCard at={at} order={order} column={name} />
                ))}
              </section>
            ))}
          </div>
        </Live>
      </div>
    )
  },
})

const EMPTY = { orders: [], total: 0 }
const NO_COLUMNS = { pending: EMPTY, confirmed: EMPTY, preparing: EMPTY, ready: EMPTY }

/** The open orders of all stores, the new ones first. */
function ordersOfStores(at: PageContext): Promise<RowsOfStores<Order>> {
  const lists = COLUMNS.flatMap((status) =>
    storesByName(at).map((storeId) => ({
      name: `${status}-${storeId}`,
      storeId,
      read: async (about: { limit: number; cursor?: string }) => {
        const found = await at.runIfAllowed(fetchClickCollectOrders, { storeId, status, ...about })
        return found && { rows: found.orders, nextCursor: found.nextCursor }
      },
    })),
  )
  return rowsOfLists(at, lists)
}

/** The orders of all stores as a list. They are packed and handed over on the board of their store. */
function OrdersOfStores({ at, rows, nextCursor }: { at: ViewContext<OrdersView> } & RowsOfStores<Order>) {
  const t = at.texts.orders
  return (
    <div class="stack wide">
      <Live at={at} id="orders">
        <Card flush>
          {rows.length === 0 ? (
            <EmptyState icon="orders" title={t.none} />
          ) : (
            <Table
              caption={t.title}
              rows={rows}
              columns={[
                {
                  label: t.title,
                  kind: 'head',
                  cell: ({ orderId }) => t.order(orderId.slice(-6)),
                },
                ...storeColumn(at),
                { label: at.texts.frame.state, cell: ({ status }) => <Badge>{t.columns[status as Column]}</Badge> },
                { label: t.due, cell: (order) => <Due at={at} order={order} /> },
                { label: t.goods, cell: (order) => <Goods at={at} order={order} /> },
                {
                  label: at.texts.today.open,
                  kind: 'actions',
                  cell: ({ orderId, storeId }) => (
                    <a
                      class="button"
                      href={`${at.path}?store=${storeId}`}
                      aria-label={`${at.texts.today.open}: ${t.order(orderId.slice(-6))}, ${storeName(at, storeId)}`}
                    >
                      {at.texts.today.open}
                    </a>
                  ),
                },
              ]}
            />
          )}
        </Card>
        <Pagination at={at} shown={rows.length} nextCursor={nextCursor} />
      </Live>
    </div>
  )
}

/** When the customer comes. */
function Due({ at, order }: { at: ViewContext; order: Order }) {
  const dueMs = Date.parse(order.pickupTime ?? order.estimatedPickupAt)
  return (
    <>
      <Moment ms={dueMs} text={at.formats.moment(dueMs)} />{' '}
      {dueMs < at.nowMs ? <Badge tone="warn">{at.texts.orders.late}</Badge> : null}
    </>
  )
}

/** Cabinets of the store that may hold an order. */
async function lockersOf(at: PageContext, storeId: string): Promise<Locker[]> {
  const found = await at.runIfAllowed(fetchDevices, { storeId, limit: DEVICES })
  return (found?.devices ?? []).flatMap(({ deviceId, name, deviceType, workflowType, decommissionedAt }) =>
    deviceType === 'cabinet_unlocker' && workflowType !== 'self_service' && decommissionedAt === undefined
      ? [{ deviceId, name: deviceLabel(at, { deviceId, deviceType, name }) }]
      : [],
  )
}

/** Finds an order by the code of the customer, and hands it over. */
function PickUp({ at, found }: { at: ViewContext<OrdersView>; found: Order | undefined }) {
  const t = at.texts.orders
  const isReady = found?.status === 'ready'
  return (
    <Card title={t.pickUp}>
      {found === undefined ? (
        <ActionForm at={at} action="find">
          <div class="row bottom-aligned">
            <TextField form={at.form} name="pickupCode" label={t.code} hint={t.codeHint} maxlength={40} required />
            <Submit>{t.find}</Submit>
          </div>
        </ActionForm>
      ) : (
        <div class="stack">
          <p>
            <Badge tone={isReady ? 'ok' : 'warn'}>{t.columns[found.status as Column]}</Badge>{' '}
            {isReady ? t.handOverText : t.notReady}
          </p>
          <Goods at={at} order={found} />
          <Facts at={at} order={found} />
          <div class="row">
            {isReady ? (
              <ActionForm at={at} action="handOver" about={{ orderId: found.orderId }}>
                <PaidFirst at={at} order={found} id="found" />
                <Submit>{t.moves.ready}</Submit>
              </ActionForm>
            ) : null}
            <a class="button" href="/console/orders">
              {t.otherCode}
            </a>
          </div>
        </div>
      )}
    </Card>
  )
}

function Goods({ at, order }: { at: ViewContext; order: Order }) {
  return (
    <ul class="stack tight">
      {order.items.map(({ name, quantity }) => (
        <li>
          <span class="number">{at.formats.number(quantity)} ×</span> {name}
        </li>
      ))}
    </ul>
  )
}

/** What to know at the hand-over: the payment, and the locker. */
function Facts({ at, order }: { at: ViewContext<OrdersView>; order: Order }) {
  const t = at.texts.orders
  const { paid, lockerDeviceId } = order
  const locker = at.data.lockers.find(({ deviceId }) => deviceId === lockerDeviceId)
  return (
    <>
      <span>
        <Badge tone={paid ? 'ok' : 'warn'}>{paid ? t.paid : t.notPaid}</Badge>
      </span>
      {lockerDeviceId === undefined ? null : <span>{t.inLocker(locker?.name ?? lockerDeviceId)}</span>}
    </>
  )
}

/** An order that is not paid is handed over only after staff confirmed the payment. */
function PaidFirst({ at, order: { paid, total }, id }: { at: ViewContext; order: Order; id: string }) {
  const t = at.texts.orders
  if (paid) return null
  const label = t.paidAtCounter(at.formats.money(total))
  return <Checkbox form={at.form} name="paid" id={`handed-${id}`} label={label} required />
}

/** Packed goods go to the counter or into a locker. */
function Packed({ at, order }: { at: ViewContext<OrdersView>; order: Order }) {
  const t = at.texts.orders
  const { orderId, paid } = order
  const about = { orderId, status: NEXT.preparing }
  const { lockers } = at.data
  if (lockers.length === 0)
    return (
      <ActionButton at={at} action="move" about={about} main>
        {t.moves.preparing}
      </ActionButton>
    )
  const choices = [
    { value: '', label: t.counter },
    ...lockers.map(({ deviceId, name }) => ({ value: deviceId, label: name })),
  ]
  return (
    <Confirm
      at={at}
      action="move"
      about={about}
      label={t.moves.preparing}
      question={t.where(orderId.slice(-6))}
      explanation={t.whereText}
      confirm={t.moves.preparing}
      main
    >
      <Select form={at.form} name="lockerDeviceId" id={`locker-${orderId}`} label={t.locker} choices={choices} />
      {paid ? null : <Checkbox form={at.form} name="paid" id={`paid-${orderId}`} label={t.isPaid} />}
    </Confirm>
  )
}

function OrderCard({ at, order, column }: { at: ViewContext<OrdersView>; order: Order; column: Column }) {
  const t = at.texts.orders
  const { orderId, total, note } = order
  const orderedMs = Date.parse(order.createdAt)
  return (
    <article class="card stack tight">
      <h3>{t.order(orderId.slice(-6))}</h3>
      <Goods at={at} order={order} />
      <Facts at={at} order={order} />
      {note === undefined || note === '' ? null : <p class="soft">{t.note(note)}</p>}
      <span class="sub">
        {t.ordered} <Moment ms={orderedMs} text={at.formats.moment(orderedMs)} />
      </span>
      <span class="sub">
        {t.due} <Due at={at} order={order} /> · {at.formats.money(total)}
      </span>
      {at.has(rolesFrom('associate')) ? (
        <>
          {column === 'preparing' ? <Packed at={at} order={order} /> : null}
          {column === 'ready' || column === 'preparing' ? null : (
            <ActionButton at={at} action="move" about={{ orderId, status: NEXT[column] }} main>
              {t.moves[column]}
            </ActionButton>
          )}
          {column === 'ready' ? (
            <Confirm
              at={at}
              action="handOver"
              about={{ orderId }}
              label={t.moves.ready}
              question={t.withoutCode(orderId.slice(-6))}
              explanation={t.withoutCodeText}
              confirm={t.moves.ready}
            >
              <PaidFirst at={at} order={order} id={orderId} />
            </Confirm>
          ) : null}
          <Confirm
            at={at}
            action="cancel"
            about={{ orderId }}
            label={t.cancel}
            question={t.cancelQuestion(orderId.slice(-6))}
            explanation={t.cancelText}
            confirm={t.cancel}
          >
            <TextField form={at.form} name="reason" id={`reason-${orderId}`} label={t.reason} maxlength={300} />
          </Confirm>
        </>
      ) : null}
    </article>
  )
}
