import type { CloudSession } from './cloud-session.ts'

/**
 * Reports a heartbeat of each device. If a device has no agent yet, the cloud then assigns the device to this agent.
 */
export async function bindDevices(
  session: Pick<CloudSession, 'call'>,
  deviceIds: readonly string[],
  onRefused: (what: string) => void,
): Promise<void> {
  for (const deviceId of deviceIds) {
    const answer = await session.call('reportDeviceHeartbeat', { deviceId })
    if (answer.kind === 'unreachable') return
    // A scanner that only serves another device (`feeds`) need not be registered, so 404 is no fault.
    if (answer.kind === 'refused' && answer.status !== 404) onRefused(`device ${deviceId}: ${answer.message}`)
  }
}
