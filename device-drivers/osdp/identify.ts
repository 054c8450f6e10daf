import type { Platform } from '../../policy/platform.ts'
import { bytesOfHex } from '../kit/protocol/hex.ts'
import { decodeIdentity, nakText, OSDP_COMMAND, OSDP_REPLY, osdpCommand, setKey } from './protocol/messages.ts'
import type { OsdpCommand, OsdpIdentity } from './protocol/messages.ts'
import { DEFAULT_KEY } from './protocol/secure-channel.ts'
import type { Dialogue } from './dialogue.ts'
import { secureDialogue } from './handshake.ts'
import type { OsdpSettings } from './settings.ts'

export interface IdentifyOptions {
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
