import type { ProtectionEvent, ProtectionEventType } from '../../policy/protection-events.ts'
import { newId } from '../../policy/ids.ts'
import { GATE_ALARMS, type ExceptionKind } from '../../policy/vocabulary.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'

/**
 * Collects device events and writes many of them in one commit. Signals and outputs never wait for these writes (P2).
 */
export interface DeviceJournal {
  /** Returns the id of the event. Undefined if a limit drops the event. `budget`: the events with which it competes. */
  add(event: DeviceRecord, budget?: EventBudget): string | undefined
  /**
   * Writes the collected events now. Resolves when the events are durable. If the disk is full, the events stay in
   * memory.
   */
  write(): Promise<void>
  /** Writes the collected events before the agent stops. If the disk is full, the events are lost. */
  flush(): Promise<void>
}

type RecordedFields = Omit<ProtectionEvent, 'type' | 'reason' | 'eventId' | 'occurredAt' | 'storeId'> & {
  deviceId: string
}

/** An event of a device. An exception has a kind that people can look up. */
export type DeviceRecord = RecordedFields &
  (
    | { type: 'protection.exception.raised'; reason: ExceptionKind }
    | { type: Exclude<ProtectionEventType, 'protection.exception.raised'>; reason?: string }
  )

interface DeviceJournalParts {
  platform: Platform
  ledger: Pick<Ledger, 'commits' | 'journal'>
  storeId: string
  /** Trusted time, ms. */
  nowMs(): number
  /** True while a wired emergency input is active. */
  isEmergency(): boolean
  log: Log
}

const FLUSH_MS = 250
/** Interval between attempts to write while the disk is full, ms. */
const RETRY_MS = 5_000
/**
 * Maximum stored events per device, budget and minute. A faulty reader must not fill the disk, and anyone may carry blank
 * tags: those must not displace the alarms of the store's goods.
 */
const EVENTS_PER_MINUTE = { alarm: 600, unregistered: 100, other: 600 } as const
/** `alarm`: alarms of registered items. `unregistered`: events of tags without an item. */
export type EventBudget = keyof typeof EVENTS_PER_MINUTE
const WHAT: Readonly<Record<EventBudget, string>> = {
  alarm: 'alarms',
  unregistered: 'events of tags that are not registered',
  other: 'events',
}
const WAITING_LIMIT = 5_000
/** Of these, events of tags that are not registered. */
const UNREGISTERED_WAITING_LIMIT = 1_000

/** Opens an empty journal that collects events for 250 ms before each commit. */
export function openDeviceJournal({
  platform,
  ledger,
  storeId,
  nowMs,
  isEmergency,
  log,
}: DeviceJournalParts): DeviceJournal {
  let waiting: { atMs: number; event: ProtectionEvent }[] = []
  let timer: Cancel | undefined
  const minutes = new Map<string, { minute: number; count: number }>()

  /** Counts an event of this device, and returns the device's count in this minute and budget. */
  function countOf(deviceId: string, budget: EventBudget): number {
    const key = `${budget} ${deviceId}`
    const minute = Math.floor(platform.clock.elapsed() / 60_000)
    const seen = minutes.get(key)
    const count = seen?.minute === minute ? seen.count + 1 : 1
    minutes.set(key, { minute, count })
    return count
  }

  async function flush(isLast = false): Promise<void> {
    timer?.()
    timer = undefined
    const rows = waiting
    waiting = []
    if (rows.length === 0) return
    try {
      await ledger.commits.durably(() => {
        for (const { atMs, event } of rows) ledger.journal.append({ atMs, event })
      })
    } catch (error) {
      if (error instanceof LedgerFull && !isLast) return retryLater(rows)
      log.error({ err: error, events: rows.length }, 'device events could not be stored and are lost')
    }
  }

  /** Returns events to the queue after the full disk rejected them, up to `WAITING_LIMIT` events. */
  function retryLater(rows: typeof waiting): void {
    log.warn({ events: rows.length }, 'the disk is full: device events are stored when there is room')
    waiting = [...rows, ...waiting].slice(0, WAITING_LIMIT)
    timer ??= platform.timers.after(RETRY_MS, () => void flush())
  }

  function enqueue(event: DeviceRecord): string {
    const atMs = nowMs()
    const { type, ...fields } = event
    const eventId = newId('evt', platform)
    // In a fire people leave with goods: staff must see which alarms were raised then.
    const emergency = GATE_ALARMS.has(event.reason ?? '') && isEmergency() ? { emergency: true } : {}
    const occurredAt = new Date(atMs).toISOString()
    waiting.push({ atMs, event: { type, eventId, occurredAt, storeId, ...fields, ...emergency } })
    timer ??= platform.timers.after(FLUSH_MS, () => void flush())
    return eventId
  }

  return {
    add(event, budget = 'other') {
      const count = countOf(event.deviceId, budget)
      const limit = EVENTS_PER_MINUTE[budget]
      const room = budget === 'unregistered' ? UNREGISTERED_WAITING_LIMIT : WAITING_LIMIT
      if (count > limit + 1 || waiting.length >= room) return undefined
      if (count <= limit) return enqueue(event)
      enqueue({
        type: 'protection.exception.raised',
        deviceId: event.deviceId,
        reason: 'gate_events_dropped',
        detail: `over ${limit} ${WHAT[budget]} in a minute: the others of this minute are signalled but not stored`,
      })
      return undefined
    },
    write: () => flush(),
    flush: () => flush(true),
  }
}
