import type { Session } from './session.ts'

/** Tells the cloud that these devices are this agent's. */
export async function bindDevices(
  session: Pick<Session, 'call'>,
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
