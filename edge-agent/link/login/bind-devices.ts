import type { CloudSession } from './cloud-session.ts'

/** Reports a heartbeat of each device, which binds it to this agent in the cloud. */
export async function bindDevices(
  session: Pick<CloudSession, 'call'>,
  deviceIds: readonly string[],
  onRefused: (what: string) => void,
): Promise<void> {
  for (const deviceId of deviceIds) {
    const answer = await session.call('reportDeviceHeartbeat', { deviceId })
    if (answer.kind === 'unreachable') return
    // A scanner that only feeds another device need not be in the registry.
    if (answer.kind === 'refused' && answer.status !== 404) onRefused(`device ${deviceId}: ${answer.message}`)
  }
}
