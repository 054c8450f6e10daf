import type { Outcome, TagTechnology } from '../../policy/vocabulary.ts'

/** What a device is told to do. */
export type DeviceCommand =
  /**
   * Pulse the main output (lock, detacher, deactivator, gate) and see the confirming input. `tag`: the
   * tag it is about, for devices that write to the tag itself (EAS bit, kill).
   */
  | { readonly kind: 'release'; readonly tag?: TagName }
  /** Sound or light; 0 seconds = off now. Protective: never waits for a release. */
  | { readonly kind: 'signal'; readonly signal: Signal; readonly seconds: number }
  /**
   * What the device does until the next command of this kind. `open`: the main output stays on. `silent`: the siren
   * stays off. The device keeps it over every connection and over releases, and accepts it in any state.
   */
  | { readonly kind: 'emergency'; readonly open: boolean; readonly silent: boolean }

export const SIGNALS = ['siren', 'amber', 'green'] as const
export type Signal = (typeof SIGNALS)[number]

/** The longest time in seconds that one signal command may ask for. */
export const LONGEST_SIGNAL_S = 3_600

/**
 * Why a command ended as it did; `detail` begins with one of these.
 *
 * - `input_changed`: the confirming input was seen to change (confirmed)
 * - `already_open`: an emergency holds the device open (confirmed, nothing commanded)
 * - `acknowledged`: the board took the command and no input confirms it (confirmed)
 * - `no_confirmation`: the board did everything, the input did not change (failed)
 * - `input_stuck`: the confirming input was 1 already and stayed so (failed, nothing commanded)
 * - `refused`: the board refused (failed)
 * - `not_ready`: the device is not there now (failed, nothing commanded)
 * - `not_supported`: this device has no such output (failed, nothing commanded)
 * - `silenced`: an emergency keeps the siren off (failed, nothing commanded)
 * - `queue_full`: too many commands wait (failed, nothing commanded)
 * - `cancelled`: the caller gave up (failed when nothing was commanded, else unknown)
 * - `answer_lost`: an answer was lost after the command went out (unknown)
 */
export type ResultCode =
  | 'input_changed'
  | 'already_open'
  | 'acknowledged'
  | 'no_confirmation'
  | 'input_stuck'
  | 'refused'
  | 'not_ready'
  | 'not_supported'
  | 'silenced'
  | 'queue_full'
  | 'cancelled'
  | 'answer_lost'

export interface CommandResult {
  readonly outcome: Outcome
  /** True as soon as the first byte of the command was handed to the link. */
  readonly commanded: boolean
  /** A `ResultCode`, and after `: ` what a person should know. */
  readonly detail: string
}

/** A result with its code in front. */
export function result(outcome: Outcome, commanded: boolean, code: ResultCode, text?: string): CommandResult {
  return { outcome, commanded, detail: text ? `${code}: ${text}` : code }
}

/** What a tag is called: upper-case hex, as everywhere outside the drivers. */
export type TagName = { readonly epc: string } | { readonly tagUid: string }

/** One sighting of one tag by one antenna. */
export interface TagRead {
  readonly tag: TagName
  /** What the chip is, where the reader can tell (NFC and HF). */
  readonly technology?: TagTechnology
  /** As the reader numbers them, from 1. */
  readonly antenna?: number
  readonly rssiDbm?: number
  /**
   * When the reader saw it first, ms on the agent's elapsed clock: the reader's own stamp put right by
   * the offset measured at connect, else when the report came. Reads that a reader kept while the network was away are old.
   */
  readonly seenAtMs: number
}

/** `forced`: opened without a release. `left_open`: open for longer than allowed. */
export type DoorState = 'shut' | 'open' | 'forced' | 'left_open'

export type DeviceEvent =
  /** Tags in the field, in the order of the reader's report. At most 1,000 in one event. */
  | { readonly type: 'tags'; readonly reads: readonly TagRead[] }
  /** A tag that is there until taken away (PC/SC, pads) has gone. */
  | { readonly type: 'tag_gone'; readonly tag: TagName }
  /** A code was read; `symbology` only where the scanner tells it. */
  | { readonly type: 'scan'; readonly text: string; readonly symbology?: string }
  /** Somebody went through: the passage input rose. */
  | { readonly type: 'passage' }
  /** A people counter saw somebody come in or go out; out is a `passage` too. */
  | { readonly type: 'person'; readonly direction: 'in' | 'out' }
  /** A watched input changed. */
  | { readonly type: 'input'; readonly input: number; readonly on: boolean }
  /** The level of the wired emergency input: at every connection, and at every change. */
  | { readonly type: 'emergency'; readonly on: boolean }
  /** The door behind a lock: shut, open, or open as it should not be. */
  | { readonly type: 'door'; readonly state: DoorState }
  /** Something is wrong that a person should look at. */
  | { readonly type: 'fault'; readonly detail: string }
  /** Bytes that made no sense; at most one such event a second. */
  | { readonly type: 'noise'; readonly bytes: number; readonly detail: string }

/** What was found at the other end. */
export interface DeviceIdentity {
  /** For a person: what it is and where, such as `Modbus unit 1 at tcp:10.0.0.7:502`. */
  readonly description: string
  /** As the device tells it. */
  readonly firmwareVersion?: string
  readonly serialNumber?: string
}

/**
 * One device for as long as the agent runs. The supervisor calls, again after every loss,
 * `connect` → `identify` → (ready) → `untilLost`. What the device shall do meanwhile (a siren that
 * still has to sound) is kept by the device and carried out by the next `identify`.
 */
export interface ProtectionDevice {
  /** Lets go of the link it had and resolves when a new one is open; tries for ever, telling each failure, until `signal` aborts. */
  connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void>
  /** Proves that the right thing answers and puts its outputs as wanted. Rejects when it does not. */
  identify(signal: AbortSignal): Promise<DeviceIdentity>
  /** Resolves, with the reason, when what `identify` found is gone. */
  untilLost(): Promise<string>
  /** Never throws. After the first byte went out, only an answer or an input makes it other than `unknown`. */
  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  /** For one reader, over all connections. At most 1,000 wait. */
  readonly events: AsyncIterable<DeviceEvent>
  /** Outputs off where they can be reached, then lets go. Takes at most about 2 seconds. */
  close(): Promise<void>
}
