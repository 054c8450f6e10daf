import type { z } from 'zod'
import type { ProtectionAction } from '../../../policy/vocabulary.ts'
import type { ProtectionEventType } from '../../../policy/protection-events.ts'
import { fetchAlarms } from '../../protection/records/alarm-operations.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchOperators } from '../../protection/operators/operator-operations.ts'
import { fetchProtectionEvents } from '../../protection/records/event-operations.ts'
import type { fetchPurchaseHistory } from '../../sales/checkout/history-operations.ts'
import { alarmHref, gateOf, whatOf } from '../components/alarm-card.tsx'
import type { Tone } from '../components/card.tsx'
import type { TimelineEntry } from '../components/table.tsx'
import { deviceLabel } from '../components/device-label.ts'
import type { PageContext } from '../frame/page.ts'

/** A purchase as the API lists it. */
export type Purchase = z.output<typeof fetchPurchaseHistory.response>['purchases'][number]

/** Statuses in which money may be returned. */
export const REFUNDABLE: ReadonlySet<Purchase['status']> = new Set(['SUCCESS', 'UNLOADED', 'CANCELLED'])

/** True if the refund is paid or may be paid. */
export function isEffective({ status, inDoubt }: Purchase['refunds'][number]): boolean {
  return status !== 'failed' || inDoubt === true
}

/** True if a till voided the sale. After a return at the till, the sale stays valid. */
export function isVoided({ status, receipt }: Pick<Purchase, 'status' | 'receipt'>): boolean {
  return status === 'CANCELLED' && receipt.till !== undefined
}

/** Events of a purchase that the page lists, and devices whose names it shows. */
const EVENTS_LIMIT = 200
const DEVICES_LIMIT = 500

type Titles = PageContext['texts']['purchases']['events']

/** Events that people at the desk understand. Requests and grants only precede them. */
const EVENTS: Readonly<Partial<Record<ProtectionEventType, { title: keyof Titles; tone: Tone }>>> = {
  'protection.action.completed': { title: 'released', tone: 'ok' },
  'protection.action.failed': { title: 'failed', tone: 'warn' },
  'protection.authorization.denied': { title: 'denied', tone: 'warn' },
  'protection.exception.raised': { title: 'raised', tone: 'warn' },
}

/** The same events of goods that leave: no tag comes off at an exit. */
const EXITS: typeof EVENTS = {
  'protection.action.completed': { title: 'left', tone: 'ok' },
  'protection.action.failed': { title: 'leavingFailed', tone: 'warn' },
  'protection.authorization.denied': { title: 'stopped', tone: 'warn' },
}

/** What the page says of an event; undefined for requests and grants. */
export function kindOfEvent({
  type,
  protectionAction,
}: {
  type: ProtectionEventType
  protectionAction?: ProtectionAction | undefined
}) {
  return (protectionAction === 'authorize_exit' ? EXITS[type] : undefined) ?? EVENTS[type]
}

/** Payment, releases and refunds of a purchase, with device and operator, in the order of their times. */
export async function historyOf(at: PageContext, purchase: Purchase): Promise<TimelineEntry[]> {
  const t = at.texts.purchases
  const { storeId, transactionId: purchaseId } = purchase
  const found = await at.runIfAllowed(fetchProtectionEvents, { storeId, purchaseId, limit: EVENTS_LIMIT })
  const names = await namesIn(at, storeId)
  const reasons: Readonly<Record<string, string>> = at.texts.rules.reasons
  const lines = new Map(purchase.items.map(({ itemLineId, name }) => [itemLineId, name]))
  const events = (found?.events ?? []).flatMap((event): TimelineEntry[] => {
    const kind = kindOfEvent(event)
    if (!kind) return []
    const { itemLineId = '', deviceId = '', operatorId = '', offline = false } = event
    const about = [
      event.type === 'protection.authorization.denied' ? reasons[event.reason ?? ''] : undefined,
      lines.get(itemLineId),
      names.get(deviceId),
      names.get(operatorId),
      offline ? t.offline : undefined,
    ]
    const text = about.filter((part) => part !== undefined).join(' · ')
    return [{ atMs: Date.parse(event.occurredAt), title: t.events[kind.title], text, tone: kind.tone }]
  })
  const raised = await at.runIfAllowed(fetchAlarms, { storeId, purchaseId })
  const alarms = (raised?.alarms ?? []).map((alarm): TimelineEntry => ({
    atMs: Date.parse(alarm.occurredAt),
    title: at.texts.alarms.one,
    text: [whatOf(at, alarm), gateOf(at, alarm)].join(' · '),
    tone: alarm.state === 'disposed' ? ('plain' as const) : ('alarm' as const),
    href: alarmHref(alarm.eventId),
  }))
  const refunds = purchase.refunds.filter(isEffective).map((refund) => ({
    atMs: Date.parse(refund.completedAt ?? refund.createdAt),
    title: titleOfRefund(at, purchase, refund),
    text: [
      at.formats.money(refund.amount),
      ...(refund.lines ?? []).map(
        ({ itemLineId, quantity, part = quantity }) =>
          `${at.formats.number(part)} × ${lines.get(itemLineId) ?? itemLineId}`,
      ),
      requesterOf(at, purchase, refund),
    ]
      .filter((part) => part !== undefined)
      .join(' · '),
  }))
  const title = REFUNDABLE.has(purchase.status) ? t.events.paid : t.events.started
  return [{ atMs: Date.parse(purchase.timestamp), title }, ...events, ...alarms, ...refunds].toSorted(
    (a, b) => a.atMs - b.atMs,
  )
}

/** Tills pay the money of their sales back, and only report it. */
function titleOfRefund({ texts }: PageContext, purchase: Purchase, { kind }: Purchase['refunds'][number]): string {
  const t = texts.purchases
  if (kind === 'whole' && isVoided(purchase)) return t.isVoided
  return purchase.receipt.till === undefined ? t.events.refunded : t.events.returned
}

/** Person or system that began a refund; of a till's sale, the till that sold. */
function requesterOf(
  { texts }: PageContext,
  { receipt: { till } }: Purchase,
  { outside, requestedBy, requestedByName }: Purchase['refunds'][number],
): string | undefined {
  const t = texts.purchases.refundedBy
  if (till) return till.tillId === undefined ? undefined : texts.purchases.soldAt(till.tillId)
  if (outside !== undefined) return t.provider
  if (requestedBy === undefined) return undefined
  return requestedByName ?? (requestedBy.startsWith('key_') ? t.program : t.untag)
}

/** Names of the store's devices and operators, by id. */
export async function namesIn(at: PageContext, storeId: string): Promise<ReadonlyMap<string, string>> {
  const devices = (await at.runIfAllowed(fetchDevices, { storeId, limit: DEVICES_LIMIT }))?.devices ?? []
  const operators = (await at.runIfAllowed(fetchOperators, { storeId }))?.operators ?? []
  return new Map([
    ...devices.map((device) => [device.deviceId, deviceLabel(at, device)] as const),
    ...operators.map(({ operatorId, name }) => [operatorId, name] as const),
  ])
}
