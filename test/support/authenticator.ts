import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { encode } from 'cborg'
import type { Json } from './cloud.ts'

const FLAGS = { present: 0x01, verified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 }
const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest()

/** What a test may change about a response. */
export interface Faults {
  origin?: string
  /** Origin of the page around the frame that made the response; null: the frame names none. */
  topOrigin?: string | null
  rpId?: string
  isVerified?: boolean
  /** Signature counter of the response. */
  counter?: number
  userHandle?: string
  credentialId?: string
  /** Attestation other than none. */
  attestation?: { fmt: string; attStmt: Map<string, unknown> }
}

/** An authenticator in software: keys of P-256, attestation `none`, and a counter of signatures. */
export class SoftwareAuthenticator {
  readonly #origin: string
  readonly id = base64url(randomBytes(32))
  #key: KeyObject | undefined
  #userHandle = ''
  #counter = 0

  constructor(origin = 'https://shop.example') {
    this.#origin = origin
  }

  /** What `navigator.credentials.create` answers. */
  create(options: Json, faults: Faults = {}): Json {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#key = privateKey
    this.#userHandle = options.user.id
    const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
    const coordinate = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'))
    const cose = new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, coordinate(x)],
      [-3, coordinate(y)],
    ])
    const id = Buffer.from(this.id, 'base64url')
    const attested = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, encode(cose)])
    const authData = new Uint8Array(Buffer.concat([this.#authData(options.rp.id, FLAGS.attested, faults), attested]))
    const { fmt, attStmt } = faults.attestation ?? { fmt: 'none', attStmt: new Map<string, unknown>() }
    const attestation = new Map<string, unknown>([
      ['fmt', fmt],
      ['attStmt', attStmt],
      ['authData', authData],
    ])
    return {
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      response: {
        clientDataJSON: base64url(this.#clientData('webauthn.create', options.challenge, faults)),
        attestationObject: base64url(encode(attestation)),
        transports: ['internal'],
      },
    }
  }

  /** What `navigator.credentials.get` answers. */
  sign(options: Json, faults: Faults = {}): Json {
    if (!this.#key) throw new Error('create a key first')
    this.#counter++
    const clientData = this.#clientData('webauthn.get', options.challenge, faults)
    const authData = this.#authData(options.rpId, 0, faults)
    const signature = sign('sha256', Buffer.concat([authData, sha256(clientData)]), this.#key)
    const id = faults.credentialId ?? this.id
    return {
      id,
      rawId: id,
      type: 'public-key',
      response: {
        clientDataJSON: base64url(clientData),
        authenticatorData: base64url(authData),
        signature: base64url(signature),
        userHandle: faults.userHandle ?? this.#userHandle,
      },
    }
  }

  #clientData(type: string, challenge: string, { origin = this.#origin, topOrigin }: Faults): Buffer {
    const frame = { crossOrigin: topOrigin !== undefined, ...(typeof topOrigin === 'string' && { topOrigin }) }
    return Buffer.from(JSON.stringify({ type, challenge, origin, ...frame }))
  }

  #authData(rpId: string, more: number, faults: Faults): Buffer {
    const verified = faults.isVerified === false ? 0 : FLAGS.verified
    const flags = FLAGS.present | FLAGS.backupEligible | FLAGS.backedUp | verified | more
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(faults.counter ?? this.#counter)
    return Buffer.concat([sha256(faults.rpId ?? rpId), Buffer.from([flags]), counter])
  }
}
