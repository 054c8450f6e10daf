import { createCipheriv, createDecipheriv } from 'node:crypto'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { FIRST_WITH_MAC, osdpBody } from './frame.ts'
import type { OsdpFrame } from './frame.ts'

/**
 * The secure channel of OSDP v2 (SIA OSDP 2.2, Annex D) with AES-128. The session keys depend on the device's base key
 * (SCBK) and a random number of the panel. Each side proves its key by a cryptogram. After that, each frame has a MAC
 * that depends on the frame before it.
 *
 *     panel                                       device
 *     CHLNG  SCS_11  random A            ───▶
 *                                        ◀───     CCRYPT SCS_12  name, random B, cryptogram of A B
 *     SCRYPT SCS_13  cryptogram of B A   ───▶
 *                                        ◀───     RMAC_I SCS_14  first MAC of the replies
 *     … SCS_15 no data, SCS_17 encrypted ───▶
 *                                        ◀───     … SCS_16 no data, SCS_18 encrypted
 */
export const SCS = {
  challenge: 0x11,
  deviceCryptogram: 0x12,
  panelCryptogram: 0x13,
  firstMac: 0x14,
  command: 0x15,
  reply: 0x16,
  commandData: 0x17,
  replyData: 0x18,
} as const

/** The public key of every device in factory state. Use it only to set a secret key. */
export const DEFAULT_KEY = Uint8Array.from({ length: 16 }, (_, i) => 0x30 + i)

const BLOCK = 16
const END_OF_DATA = 0x80
const ZERO_BLOCK = new Uint8Array(BLOCK)

export interface SessionKeys {
  readonly enc: Uint8Array
  readonly mac1: Uint8Array
  readonly mac2: Uint8Array
}

function encryptBlocks(key: Uint8Array, iv: Uint8Array, blocks: Uint8Array): Uint8Array {
  const cipher = createCipheriv('aes-128-cbc', key, iv).setAutoPadding(false)
  return Uint8Array.from(cipher.update(blocks))
}

/** Encrypts one block: CBC with a zero vector is ECB. */
const encryptBlock = (key: Uint8Array, block: Uint8Array): Uint8Array => encryptBlocks(key, ZERO_BLOCK, block)

const joined = (one: Uint8Array, other: Uint8Array): Uint8Array => Uint8Array.from([...one, ...other])
const inverted = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => ~byte)

/** Derives the keys of one session; `panelRandom` has 8 bytes, of which 6 are used. */
export function sessionKeys(baseKey: Uint8Array, panelRandom: Uint8Array): SessionKeys {
  const derived = (kind: number) => {
    const block = new Uint8Array(BLOCK)
    block.set([0x01, kind])
    block.set(panelRandom.subarray(0, 6), 2)
    return encryptBlock(baseKey, block)
  }
  return { enc: derived(0x82), mac1: derived(0x01), mac2: derived(0x02) }
}

/** The device's proof of its key. */
export function deviceCryptogram({ enc }: SessionKeys, panelRandom: Uint8Array, deviceRandom: Uint8Array): Uint8Array {
  return encryptBlock(enc, joined(panelRandom, deviceRandom))
}

/** The panel's proof of its key. */
export function panelCryptogram({ enc }: SessionKeys, panelRandom: Uint8Array, deviceRandom: Uint8Array): Uint8Array {
  return encryptBlock(enc, joined(deviceRandom, panelRandom))
}

/** The first MAC of the replies; the MAC of the first command depends on it. */
export function firstReplyMac({ mac1, mac2 }: SessionKeys, cryptogramOfPanel: Uint8Array): Uint8Array {
  return encryptBlock(mac2, encryptBlock(mac1, cryptogramOfPanel))
}

function padded(bytes: Uint8Array): Uint8Array {
  const blocks = new Uint8Array((Math.floor(bytes.length / BLOCK) + 1) * BLOCK)
  blocks.set(bytes)
  blocks[bytes.length] = END_OF_DATA
  return blocks
}

/**
 * The MAC of `bytes`; `before` is the previous MAC. Encrypts the blocks in CBC mode with the first key, but the last
 * block with the second key. An incomplete block is padded.
 */
export function osdpMac({ mac1, mac2 }: SessionKeys, before: Uint8Array, bytes: Uint8Array): Uint8Array {
  const blocks = bytes.length > 0 && bytes.length % BLOCK === 0 ? bytes : padded(bytes)
  const head = blocks.subarray(0, blocks.length - BLOCK)
  const iv = head.length > 0 ? encryptBlocks(mac1, before, head).subarray(-BLOCK) : before
  return encryptBlocks(mac2, iv, blocks.subarray(-BLOCK))
}

/** Encrypts data; the IV is the last MAC of the other direction, inverted. */
export function encryptData({ enc }: SessionKeys, before: Uint8Array, data: Uint8Array): Uint8Array {
  return encryptBlocks(enc, inverted(before), padded(data))
}

/** Decrypts data; null if its padding is invalid. */
export function decryptData({ enc }: SessionKeys, before: Uint8Array, data: Uint8Array): Uint8Array | null {
  if (data.length % BLOCK !== 0) return null
  if (data.length === 0) return data
  const decipher = createDecipheriv('aes-128-cbc', enc, inverted(before)).setAutoPadding(false)
  const plain = Uint8Array.from(decipher.update(data))
  let end = plain.length - 1
  while (end > 0 && plain[end] === 0) end--
  return plain[end] === END_OF_DATA ? plain.slice(0, end) : null
}

/** A session after the handshake. Each side has a session, and must pass each frame to it exactly once and in order. */
export interface SecureChannel {
  /** Adds security block, encryption and MAC to a plain frame. */
  seal(frame: OsdpFrame): OsdpFrame
  /** Returns the plain frame. If its MAC or data is invalid, returns null and leaves the session unchanged. */
  open(frame: OsdpFrame): OsdpFrame | null
}

/** Makes a session; `replyMac` is the first MAC of the replies. */
export function secureChannel(keys: SessionKeys, replyMac: Uint8Array): SecureChannel {
  /** The last MAC of each direction. The MAC of a frame depends on the last MAC of the other direction. */
  const last = { command: replyMac, reply: replyMac }
  const sides = (frame: OsdpFrame) => (frame.reply ? (['reply', 'command'] as const) : (['command', 'reply'] as const))

  return {
    seal(frame) {
      const [own, other] = sides(frame)
      const type =
        frame.data.length > 0 ? (frame.reply ? SCS.replyData : SCS.commandData) : frame.reply ? SCS.reply : SCS.command
      const data = frame.data.length > 0 ? encryptData(keys, last[other], frame.data) : frame.data
      const sealed = { ...frame, security: Uint8Array.of(type), data }
      last[own] = osdpMac(keys, last[other], osdpBody(sealed))
      return { ...sealed, mac: last[own].slice(0, 4) }
    },
    open(frame) {
      const [own, other] = sides(frame)
      const type = frame.security?.[0] ?? 0
      if (type < FIRST_WITH_MAC || !frame.mac) return null
      const mac = osdpMac(keys, last[other], osdpBody(frame))
      if (!secretsEqual(mac.subarray(0, 4), frame.mac)) return null
      const isEncrypted = type === SCS.commandData || type === SCS.replyData
      const data = isEncrypted ? decryptData(keys, last[other], frame.data) : frame.data
      if (!data) return null
      last[own] = mac
      return { ...frame, security: null, data, mac: null }
    },
  }
}
