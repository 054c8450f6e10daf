import type { Randomness } from '../../policy/platform.ts'
import { secretsEqual } from '../../policy/secrets-equal.ts'
import { OSDP_REPLY } from '../../device-drivers/protocols/osdp/messages.ts'
import {
  DEFAULT_KEY,
  deviceCryptogram,
  firstReplyMac,
  panelCryptogram,
  SCS,
  secureChannel,
  sessionKeys,
} from '../../device-drivers/protocols/osdp/secure-channel.ts'
import type { SecureChannel, SessionKeys } from '../../device-drivers/protocols/osdp/secure-channel.ts'

/** A reply of the handshake with its security block; null for a refusal. */
export type HandshakeReply = { readonly code: number; readonly data: Uint8Array; readonly security: Uint8Array } | null

/** What real devices do with the flag that names the kind of key. */
export interface KeyQuirks {
  /** The device always reports the default key (OSDP.Net#193). */
  readonly wrongKeyFlag?: boolean
  /** A device without a key of its own answers with the default key instead of a refusal, and says so. */
  readonly offersDefaultKey?: boolean
}

/** The device's side of the handshake. */
export interface DeviceChannel {
  challenge(security: Uint8Array, panelRandom: Uint8Array, key: Uint8Array | null, quirks?: KeyQuirks): HandshakeReply
  /** Checks the panel's proof. If the proof is right, the frames after the reply use the channel. */
  prove(cryptogram: Uint8Array): HandshakeReply
  /** The secure channel; null before the handshake. */
  readonly channel: SecureChannel | null
  /** True if the channel uses the default key. */
  readonly isDefault: boolean
  drop(): void
}

const NAME = Uint8Array.of(0x5a, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07)

/** Makes the device's side; it has no channel yet. */
export function deviceChannel(random: Randomness): DeviceChannel {
  let channel: SecureChannel | null = null
  let isDefault = false
  let begun: { keys: SessionKeys; panelRandom: Uint8Array; deviceRandom: Uint8Array; kind: number } | null = null

  return {
    challenge(security, panelRandom, own, quirks = {}) {
      channel = null
      const requested = security[1] ?? 0
      const kind = quirks.offersDefaultKey && !own ? 0 : requested
      const key = kind === 1 ? own : DEFAULT_KEY
      if (!key || panelRandom.length !== 8) return null
      const deviceRandom = random.bytes(8)
      const keys = sessionKeys(key, panelRandom)
      begun = { keys, panelRandom, deviceRandom, kind }
      const data = Uint8Array.from([...NAME, ...deviceRandom, ...deviceCryptogram(keys, panelRandom, deviceRandom)])
      return {
        code: OSDP_REPLY.deviceCryptogram,
        data,
        security: Uint8Array.of(SCS.deviceCryptogram, quirks.wrongKeyFlag ? 0 : kind),
      }
    },
    prove(cryptogram) {
      const from = begun
      begun = null
      if (!from || !secretsEqual(cryptogram, panelCryptogram(from.keys, from.panelRandom, from.deviceRandom)))
        return null
      const first = firstReplyMac(from.keys, cryptogram)
      channel = secureChannel(from.keys, first)
      isDefault = from.kind === 0
      return { code: OSDP_REPLY.firstMac, data: first, security: Uint8Array.of(SCS.firstMac, 1) }
    },
    get channel() {
      return channel
    },
    get isDefault() {
      return isDefault
    },
    drop() {
      channel = null
      begun = null
    },
  }
}
