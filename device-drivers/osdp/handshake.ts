import type { Randomness } from '../../policy/platform.ts'
import { secretsEqual } from '../../policy/secrets-equal.ts'
import { nakText, OSDP_COMMAND, OSDP_REPLY, osdpCommand } from './protocol/messages.ts'
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

/** `wrong key`: the device answered, but does not have this key. */
export type Handshake =
  | { readonly kind: 'secured' }
  | { readonly kind: 'wrong key' | 'failed'; readonly detail: string }

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
export async function secureDialogue(dialogue: Dialogue, key: Uint8Array, random: Randomness): Promise<Handshake> {
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
