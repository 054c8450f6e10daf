import { type Platform, type Randomness, pause } from '../../policy/platform.ts'
import { bytesOfHex } from '../kit/protocol/hex.ts'
import {
  decodeIdentity,
  nakText,
  OSDP_COMMAND,
  OSDP_REPLY,
  osdpCommand,
  setKey,
  type OsdpCommand,
  type OsdpIdentity,
  buzzer,
  led,
  outputOff,
  outputOnFor,
  decodeCard,
  type OsdpCard,
} from './protocol/messages.ts'
import {
  DEFAULT_KEY,
  deviceCryptogram,
  firstReplyMac,
  panelCryptogram,
  SCS,
  secureChannel,
  sessionKeys,
} from './protocol/secure-channel.ts'
import type { Dialogue, OsdpAnswer } from './dialogue.ts'
import type { OsdpSettings } from './settings.ts'
import { secretsEqual } from '../../policy/secrets-equal.ts'
import type { Signal } from '../kit/device.ts'
import type { SwitchAnswer } from '../kit/release.ts'

interface WatchDeviceOptions {
  readonly dialogue: Dialogue
  readonly platform: Platform
  /** Pause between two polls, ms. */
  readonly pollMs: number
  /** Ends the polling. */
  readonly over: AbortSignal
  /** The releasing output. `isOn` returns true while a pulse or an emergency may have switched the output on. */
  readonly release: { readonly output: number; isOn(): boolean } | null
  /** Called for each card; two reads of a card cause two calls. */
  onCard(card: OsdpCard): void
  onFault(detail: string): void
}

/**
 * Interval of the requests for tamper, power and output status, ms. Some devices also report tamper and power by
 * themselves.
 */
const CHECK_EVERY_MS = 2_000

const STATES = ['its housing is open or its sensor says so (tamper)', 'its power fails'] as const

/** Polls a device until `over` aborts. The device reports cards and tampering only in the answers. */
export async function watchDevice(o: WatchDeviceOptions): Promise<void> {
  const { clock, timers } = o.platform
  const reported = [0, 0]
  const refused = new Set<number>()
  let lastCheckMs = -CHECK_EVERY_MS

  function onAnswer(answer: OsdpAnswer): void {
    if (answer.kind !== 'reply') return
    if (answer.code === OSDP_REPLY.card) {
      const card = decodeCard(answer.data)
      if (card) o.onCard(card)
      else o.onFault('the device reports a malformed card')
    }
    if (answer.code !== OSDP_REPLY.localStatus) return
    STATES.forEach((text, i) => {
      const now = answer.data[i] ?? 0
      if (now !== reported[i] && now !== 0) o.onFault(text)
      reported[i] = now
    })
  }

  async function requestIfSupported(code: number): Promise<OsdpAnswer | null> {
    if (refused.has(code)) return null
    const answer = await o.dialogue.send(osdpCommand(code), { lane: 'poll' })
    // If a device lacks this command, the agent does not send the command again.
    if (answer.kind === 'nak') refused.add(code)
    return answer
  }

  async function checkOutput(): Promise<void> {
    const { release } = o
    if (!release || release.isOn()) return
    const answer = await requestIfSupported(OSDP_COMMAND.outputStatus)
    if (
      answer?.kind !== 'reply' ||
      answer.code !== OSDP_REPLY.outputStatus ||
      !answer.data[release.output] ||
      release.isOn()
    )
      return
    o.onFault(`output ${release.output} was on and is switched off again`)
    await o.dialogue.send(outputOff(release.output))
  }

  while (!o.over.aborted) {
    onAnswer(await o.dialogue.send(osdpCommand(OSDP_COMMAND.poll), { lane: 'poll' }))
    if (clock.elapsed() - lastCheckMs >= CHECK_EVERY_MS) {
      lastCheckMs = clock.elapsed()
      const status = await requestIfSupported(OSDP_COMMAND.localStatus)
      if (status) onAnswer(status)
      await checkOutput()
    }
    if (!o.over.aborted) await pause(timers, o.pollMs, o.over).catch(() => {})
  }
}

/** Converts the answer to an output command into a `SwitchAnswer`. */
export function switchAnswerOf(answer: OsdpAnswer): SwitchAnswer {
  if (answer.kind === 'lost') return answer
  if (answer.kind === 'nak')
    return { kind: 'refused', detail: nakText(answer.code), outputMayHaveMoved: answer.repeated }
  if (answer.code === OSDP_REPLY.ack || answer.code === OSDP_REPLY.outputStatus) return { kind: 'done' }
  return { kind: 'refused', detail: `an answer of another kind (code ${answer.code})`, outputMayHaveMoved: true }
}

/** The command that starts a signal for `ms`, or ends it with 0. Null if the signal is not configured. */
export function signalCommand(settings: OsdpSettings, signal: Signal, ms: number): OsdpCommand | null {
  const { siren } = settings
  if (signal === 'siren') {
    if (!siren) return null
    if ('buzzer' in siren) return buzzer(ms)
    return ms > 0 ? outputOnFor(siren.output, ms) : outputOff(siren.output)
  }
  const lamp = settings[signal]
  return lamp ? led(lamp.led, signal, ms) : null
}

/** `wrong key`: the device answered, but does not have this key. */
type Handshake = { readonly kind: 'secured' } | { readonly kind: 'wrong key' | 'failed'; readonly detail: string }

/** Kind of key in the security block. */
const KEY_KIND = { default: 0, own: 1 } as const

function failed(answer: OsdpAnswer, what: string): Handshake {
  if (answer.kind === 'lost') return { kind: 'failed', detail: answer.detail }
  return {
    kind: 'failed',
    detail: `the device answers ${what} with ${answer.kind === 'nak' ? nakText(answer.code) : 'something else'}`,
  }
}

/** Agent and device prove to each other that they have `key`. After that, the dialogue uses the secure channel. */
async function secureDialogue(dialogue: Dialogue, key: Uint8Array, random: Randomness): Promise<Handshake> {
  const kind = secretsEqual(key, DEFAULT_KEY) ? KEY_KIND.default : KEY_KIND.own
  const panelRandom = random.bytes(8)
  const challenged = await dialogue.send(osdpCommand(OSDP_COMMAND.challenge, panelRandom), {
    security: [SCS.challenge, kind],
  })
  if (challenged.kind === 'nak')
    return { kind: 'wrong key', detail: `the device takes no such key: ${nakText(challenged.code)}` }
  if (challenged.kind !== 'reply' || challenged.code !== OSDP_REPLY.deviceCryptogram || challenged.data.length !== 32) {
    return failed(challenged, 'the challenge')
  }

  const keys = sessionKeys(key, panelRandom)
  const deviceRandom = challenged.data.subarray(8, 16)
  if (!secretsEqual(deviceCryptogram(keys, panelRandom, deviceRandom), challenged.data.subarray(16))) {
    // Only the cryptogram proves the key. Some devices set the flag wrongly (OSDP.Net#193).
    const isDefault = kind === KEY_KIND.own && challenged.security?.[1] === KEY_KIND.default
    return {
      kind: 'wrong key',
      detail: isDefault ? 'the device has the default key only' : 'the device has another key',
    }
  }
  const cryptogram = panelCryptogram(keys, panelRandom, deviceRandom)
  const proven = await dialogue.send(osdpCommand(OSDP_COMMAND.panelCryptogram, cryptogram), {
    security: [SCS.panelCryptogram, kind],
  })
  if (proven.kind !== 'reply' || proven.code !== OSDP_REPLY.firstMac) return failed(proven, 'the cryptogram')
  const firstMac = firstReplyMac(keys, cryptogram)
  if (proven.security?.[1] !== 1 || !secretsEqual(firstMac, proven.data)) {
    return { kind: 'failed', detail: 'the device does not accept the cryptogram' }
  }
  dialogue.secure(secureChannel(keys, firstMac))
  return { kind: 'secured' }
}

interface IdentifyOptions {
  readonly settings: OsdpSettings
  readonly platform: Platform
  /** Starts a dialogue with sequence number 0. */
  start(): Dialogue
  onFault(detail: string): void
}

/** Sends a command and returns the data of the expected reply. Rejects with the reason why the device is not usable. */
export async function expectReply(
  dialogue: Dialogue,
  command: OsdpCommand,
  codes: readonly number[],
  what: string,
): Promise<Uint8Array> {
  const answer = await dialogue.send(command)
  if (answer.kind === 'lost') throw new Error(answer.detail)
  if (answer.kind === 'nak') throw new Error(`the device refuses ${what}: ${nakText(answer.code)}; check its settings`)
  if (!codes.includes(answer.code)) throw new Error(`the device answers ${what} with something else`)
  return answer.data
}

async function readIdentity(dialogue: Dialogue): Promise<OsdpIdentity> {
  const identity = decodeIdentity(
    await expectReply(dialogue, osdpCommand(OSDP_COMMAND.id, [0]), [OSDP_REPLY.id], 'to report its identity'),
  )
  if (!identity) throw new Error('the device does not report its identity')
  return identity
}

/** Stores the device's own key on the device. The agent uses the default key only here. */
async function installKey({ settings, platform, start, onFault }: IdentifyOptions, key: Uint8Array): Promise<void> {
  const dialogue = start()
  await readIdentity(dialogue)
  const first = await secureDialogue(dialogue, DEFAULT_KEY, platform.random)
  if (first.kind !== 'secured') throw new Error(`neither its own key nor the default key: ${first.detail}`)
  onFault(`${settings.deviceId} used the public default key, and receives its own key now`)
  await expectReply(dialogue, setKey(key), [OSDP_REPLY.ack], 'its own key')
}

/**
 * Reads the device's identity and opens a dialogue in the secure channel. If the settings allow it, the dialogue may be
 * unencrypted.
 */
export async function identifyDevice(o: IdentifyOptions): Promise<{ identity: OsdpIdentity; dialogue: Dialogue }> {
  const { settings, platform, start, onFault } = o
  const dialogue = start()
  const identity = await readIdentity(dialogue)
  if (settings.key === undefined) {
    onFault(`${settings.deviceId} has no secure channel: anybody with access to its line can open it`)
    return { identity, dialogue }
  }
  if (settings.installMode)
    onFault(`${settings.deviceId} is in install mode: remove "installMode" from its settings when it works`)
  const key = bytesOfHex(settings.key)
  const own = await secureDialogue(dialogue, key, platform.random)
  if (own.kind === 'secured') return { identity, dialogue }
  if (own.kind === 'failed' || !settings.installMode) {
    const fix = own.kind === 'wrong key' ? '; check "key", or set "installMode" while a new device is installed' : ''
    throw new Error(`${own.detail}${fix}`)
  }
  await installKey(o, key)
  const secondDialogue = start()
  await readIdentity(secondDialogue)
  const again = await secureDialogue(secondDialogue, key, platform.random)
  if (again.kind !== 'secured') throw new Error(`the device took its own key and does not use it: ${again.detail}`)
  return { identity, dialogue: secondDialogue }
}
