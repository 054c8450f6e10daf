import type { DeviceType } from '../../../policy/vocabulary.ts'
import type { PageContext } from '../frame/page.ts'

const SHOWN = 6

/** The end of an id, which tells devices apart without being read out. */
export function shortId(id: string): string {
  return `…${id.slice(-SHOWN)}`
}

/** Name of a device; without one, its kind and the end of its id. */
export function deviceLabel(
  { texts }: Pick<PageContext, 'texts'>,
  { deviceId, deviceType, name }: { deviceId: string; deviceType: DeviceType; name?: string | undefined },
): string {
  return name ?? `${texts.agents.types[deviceType]} ${shortId(deviceId)}`
}
