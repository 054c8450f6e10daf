import type { Symbology } from '../../policy/gs1/symbology.ts'
import type { Outcome, TagTechnology } from '../../policy/vocabulary.ts'

/** A command to a device. */
export type DeviceCommand =
  /**
   * Pulses the main output (lock, detacher, deactivator, gate) and watches the confirm input. `tag` names the tag, for
   * devices that write to it (EAS bit, kill).
   */
  | { readonly kind: 'release'; readonly tag?: TagName }
  /** Switches a siren or lamp for some seconds; 0 means off now. This command does not wait for a running release. */
  | { readonly kind: 'signal'; readonly signal: Signal; readonly seconds: number }
  /**
   * Sets the state of an emergency until the next such command. `open`: the main output stays on. `silent`: the siren
   * stays off. The device accepts this command in any state, and keeps the state over reconnects and releases.
   */
  | { readonly kind: 'emergency'; readonly open: boolean; readonly silent: boolean }

export const SIGNALS = ['siren', 'amber', 'green'] as const
export type Signal = (typeof SIGNALS)[number]

/** Maximum duration of one signal command, s. */
export const LONGEST_SIGNAL_S = 3_600

/**
 * Code of a command result; `detail` begins with the code.
 *
 * - `input_changed`: the confirm input changed (confirmed)
 * - `already_open`: an emergency holds the device open (confirmed, nothing commanded)
 * - `acknowledged`: the device accepted the command and has no confirm input (confirmed)
 * - `no_confirmation`: the device executed the command, but the confirm input did not change (failed)
 * - `input_stuck`: the confirm input was already 1, and stayed 1 (failed, nothing commanded)
 * - `refused`: the device refused the command (failed)
 * - `not_ready`: the device is not connected (failed, nothing commanded)
 * - `not_supported`: the device has no such output (failed, nothing commanded)
 * - `silenced`: an emergency keeps the siren off (failed, nothing commanded)
 * - `queue_full`: too many commands wait (failed, nothing commanded)
 * - `cancelled`: the caller aborted (failed if nothing was commanded, else unknown)
 * - `answer_lost`: the command was sent and its answer was lost (unknown)
 */
type ResultCode =
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
  /** True as soon as the first byte of the command was passed to the link. */
  readonly commanded: boolean
  /** A `ResultCode`. A text for a person may follow after `: `. */
  readonly detail: string
}

/** Makes a result; its detail begins with the code. */
export function result(outcome: Outcome, commanded: boolean, code: ResultCode, text?: string): CommandResult {
  return { outcome, commanded, detail: text ? `${code}: ${text}` : code }
}

/** Id of a tag, in upper-case hex. */
export type TagName = { readonly epc: string } | { readonly tagUid: string }

/** One read of one tag by one antenna. */
export interface TagRead {
  readonly tag: TagName
  /** Technology of the chip, if the reader reports it (NFC and HF). */
  readonly technology?: TagTechnology
  /** Number of the antenna in the reader's numbering, which starts at 1. */
  readonly antenna?: number
  readonly rssiDbm?: number
  /**
   * Time of the first sighting, ms on the agent's elapsed clock. To the reader's timestamp, the driver adds the offset
   * that it measured at connect. Without a timestamp, the driver uses the time of the report. Buffered reads have old
   * times.
   */
  readonly seenAtMs: number
}

/** `forced`: opened without a release. `left_open`: open for longer than the setting allows. */
export type DoorState = 'shut' | 'open' | 'forced' | 'left_open'

/** What a finding is about. The reference of the drivers lists them. */
export const FINDING_CODES = [
  /** The reader or the software between drops reads that the gate needs. */
  'reader_filters',
  /** The reader is in a mode that a gate cannot use. */
  'reader_mode',
  /** Tags stay silent for longer than a walk takes. */
  'reader_session',
  /** A side of the gate reads nothing: an antenna is not connected, or its number differs from the settings. */
  'reader_antenna',
  /** The device sends only data that the driver does not understand. */
  'unreadable_data',
  /** The line repeats what the agent sends, so that no answer proves the device. */
  'echo',
  /** Another unit or address answers than the configured one. */
  'wrong_address',
  /** More tags are at the reader of a lane than the lane handles. */
  'too_many_tags',
  /** No device reads tags at an exit gate: it opens, and does not see which goods leave. */
  'no_tag_reader',
] as const
export type FindingCode = (typeof FINDING_CODES)[number]

/**
 * Something that a person must change at a connected device. It makes the device `degraded`: it reads, and drives
 * sirens, lamps and emergency outputs, but a gate must not rely on it, and it releases nothing. A warning leaves the
 * device `ready`.
 */
export interface Finding {
  readonly code: FindingCode
  /** Names what is wrong, the setting to change, and its new value. */
  readonly detail: string
  readonly isWarning: boolean
}

export type DeviceEvent =
  /** Tags in the field, in the order of the reader's report; at most 1,000 in one event. */
  | { readonly type: 'tags'; readonly reads: readonly TagRead[] }
  /** A tag has left. Only readers that report presence send this event (PC/SC, pads). */
  | { readonly type: 'tag_gone'; readonly tag: TagName }
  /** A code was read; `symbology` is set only if the scanner reports the kind of code. */
  | { readonly type: 'scan'; readonly text: string; readonly symbology?: Symbology }
  /** A person passed: the passage input rose. */
  | { readonly type: 'passage' }
  /** A people counter saw a person enter or leave. With direction `out` the device also emits a `passage`. */
  | { readonly type: 'person'; readonly direction: 'in' | 'out' }
  /** A watched input changed. */
  | { readonly type: 'input'; readonly input: number; readonly on: boolean }
  /** The level of the wired emergency input. A device emits this event after each connect and at each change. */
  | { readonly type: 'emergency'; readonly on: boolean }
  /** The door behind a lock changed its state. */
  | { readonly type: 'door'; readonly state: DoorState }
  /** A fault that a person must look at. */
  | { readonly type: 'fault'; readonly detail: string }
  /** A finding that the driver makes after `identify`. It replaces an older one with the same code. */
  | { readonly type: 'finding'; readonly finding: Finding }
  /** The finding with this code no longer holds. */
  | { readonly type: 'finding_over'; readonly code: FindingCode }
  /** Bytes that are no valid frame. A device emits this event at most once a second. */
  | { readonly type: 'noise'; readonly bytes: number; readonly detail: string }

/** Result of `identify`. */
export interface DeviceIdentity {
  /** Kind and address of the device, as a text for a person, such as `Modbus unit 1 at tcp:10.0.0.7:502`. */
  readonly description: string
  /** Firmware version, as the device reports it. */
  readonly firmwareVersion?: string
  readonly serialNumber?: string
  /** What a person must change at this device. Each code at most once. Default: nothing. */
  readonly findings?: readonly Finding[]
}

/** Requests of the longest set-up. */
const SET_UP_REQUESTS = 20

/** Limit of a set-up, ms, for a device that may take this time for each answer. A slow reader becomes ready, too. */
export function setUpLimit(requestTimeoutMs: number): number {
  return Math.max(DEFAULT_SET_UP_MS, SET_UP_REQUESTS * requestTimeoutMs)
}

/** The error of a set-up that ended while the driver waited for `what`. */
export function setUpEnded(what: string, signal: AbortSignal): Error {
  const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason)
  return new Error(`waiting for ${what}: ${reason}`)
}

/** Limit of a set-up without requests of its own, ms. */
export const DEFAULT_SET_UP_MS = 5_000

/**
 * One configured device, for as long as the agent runs. Each time the device is lost, the supervisor calls `connect`,
 * `identify` and `untilLost` again. The device stores commands that still apply, such as a running siren, and writes
 * them at the next `identify`.
 */
export interface ProtectionDevice {
  /** Maximum duration of `identify`, ms; see `setUpLimit`. Default: 5,000. */
  readonly setUpLimitMs?: number | undefined
  /**
   * Leaves the old link and resolves when a new link is open. Retries until `signal` aborts, and reports each failure.
   */
  connect(signal: AbortSignal, onFailure: (detail: string) => void): Promise<void>
  /** Identifies the device and writes its outputs. Rejects if no device or another device answers. */
  identify(signal: AbortSignal): Promise<DeviceIdentity>
  /** Resolves with the reason when the identified device is gone. */
  untilLost(): Promise<string>
  /**
   * Never rejects. After the first byte was sent, the outcome is `unknown` until an answer or an input shows the
   * result.
   */
  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  /** Events of all connections, for one consumer. At most 1,000 events wait. */
  readonly events: AsyncIterable<DeviceEvent>
  /** Switches reachable outputs off and leaves the link, within about 2 s. */
  close(): Promise<void>
}

/** Result of writing one output. */
export type WriteAnswer =
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer. `possiblySent`: the device may have received the command. */
  | { readonly kind: 'lost'; readonly possiblySent: boolean; readonly detail: string }

/** Result for a siren that an emergency keeps off. */
export const SILENCED = result('failed', false, 'silenced', 'an emergency keeps the siren off')

/**
 * Makes the result of a write that the agent repeats. `until` is a text for a person: how long the agent repeats the
 * write.
 */
export function writeResult(answer: WriteAnswer, until: string): CommandResult {
  if (answer.kind === 'answered') return result('confirmed', true, 'acknowledged')
  if (answer.kind === 'refused') return result('failed', true, 'refused', answer.detail)
  if (answer.possiblySent)
    return result('unknown', true, 'answer_lost', `${answer.detail}; it is written again ${until}`)
  return result('failed', false, 'not_ready', `${answer.detail}; it is written as soon as the device is back ${until}`)
}
