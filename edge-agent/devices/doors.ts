import type { DoorState } from '../../device-drivers/drivers/device.ts'
import type { DeviceRecord } from './device-journal.ts'

/** The doors behind locks: their sensor states, and an exception for each door that is open without a reason. */
export interface Doors {
  onDoor(deviceId: string, state: DoorState): void
  /** Undefined if the device has no door, or no sensor has reported yet. */
  stateOf(deviceId: string): DoorState | undefined
}

export type DoorAlarm = 'door_forced' | 'door_left_open'

export interface DoorsParts {
  record(event: DeviceRecord): void
  isOnline(): boolean
  /** For the pages. */
  onAlarm(deviceId: string, alarm: DoorAlarm): void
  onChange(): void
}

const ALARMS: Partial<Record<DoorState, { reason: DoorAlarm; detail: string }>> = {
  forced: { reason: 'door_forced', detail: 'the door was opened without a release' },
  left_open: { reason: 'door_left_open', detail: 'the door was not shut in time' },
}

/** Starts without any door state. */
export function openDoors({ record, isOnline, onAlarm, onChange }: DoorsParts): Doors {
  const states = new Map<string, DoorState>()
  return {
    onDoor(deviceId, state) {
      states.set(deviceId, state)
      const alarm = ALARMS[state]
      if (alarm) {
        record({
          type: 'protection.exception.raised',
          deviceId,
          protectionAction: 'unlock_fixture',
          offline: !isOnline(),
          ...alarm,
        })
        onAlarm(deviceId, alarm.reason)
      }
      onChange()
    },
    stateOf: (deviceId) => states.get(deviceId),
  }
}
