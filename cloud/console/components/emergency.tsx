import type { z } from 'zod'
import { fetchExceptions } from '../../protection/records/exception-operations.ts'
import type { PageContext } from '../frame/page.ts'
import { storeName } from './all-stores.tsx'
import { shortId } from './device-label.ts'
import { Notice } from './notice.tsx'

type Exception = z.output<typeof fetchExceptions.response>['exceptions'][number]

/** Devices that emergencies opened and that a page reads. A store has a few. */
const LIMIT = 100

/** An emergency that runs now: what each of its devices reported. */
export type ActiveEmergencies = readonly (Exception & { emergency: { startedAt: string } })[]

/** The emergencies that run now in the chosen store, or in all, also those that somebody acknowledged. */
export async function activeEmergencies(at: PageContext): Promise<ActiveEmergencies> {
  const about = { ...(at.store && { storeId: at.store.storeId }), kind: 'emergency_started', limit: LIMIT }
  const found = await at.runIfAllowed(fetchExceptions, about)
  return (found?.exceptions ?? []).flatMap((exception) => {
    const { emergency } = exception
    return emergency && emergency.endedAt === undefined ? [{ ...exception, emergency }] : []
  })
}

/** Says above everything else that an emergency runs, since when and where. */
export function ActiveEmergency({ at, active }: { at: PageContext; active: ActiveEmergencies }) {
  if (active.length === 0) return null
  const t = at.texts.exceptions
  const since = Math.min(...active.map(({ emergency }) => Date.parse(emergency.startedAt)))
  const names = active.map(({ deviceName, deviceId, storeId }) => {
    const device = deviceName ?? (deviceId === undefined ? t.unnamedDevice : `${t.device} ${shortId(deviceId)}`)
    return at.store ? device : `${storeName(at, storeId)}: ${device}`
  })
  return (
    <Notice tone="alarm" title={t.activeSince(momentOf(at, since))} isUrgent>
      {at.texts.exceptionSteps.emergency_started} {t.openedDevices([...new Set(names)].join(', '))}
    </Notice>
  )
}

/** When the last emergency of an exception began and ended. */
export function emergencyText(at: PageContext, { emergency }: Exception): string | undefined {
  if (!emergency) return undefined
  const { startedAt, endedAt } = emergency
  const started = momentOf(at, Date.parse(startedAt))
  const t = at.texts.exceptions
  return endedAt === undefined ? t.activeSince(started) : t.lastEmergency(started, momentOf(at, Date.parse(endedAt)))
}

/** The time of day, with the day if it is not today. */
function momentOf(at: PageContext, ms: number): string {
  return at.formats.date(ms) === at.formats.date(at.nowMs) ? at.formats.clock(ms) : at.formats.moment(ms)
}
